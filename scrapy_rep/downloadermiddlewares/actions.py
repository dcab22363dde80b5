"""The table of what the middleware does with a request, by its situation and source.

The situation is what is known about the request, the source is the component from which the engine
got it. The docs contain the table. In a dry run all requests pass. After an error in scrapy-rep, a
request is dropped in any situation.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from scrapy_rep.admission.ticket import Source


class Situation(Enum):
    """What is known about a request when the middleware gets it."""

    ALLOWED = "known, allowed"
    HELD = "known, allowed, the site has a delay or a pause"
    REFUSED = "known, allowed, the site has refused requests for too long"
    FORBIDDEN = "known, disallowed"
    DEFERRED = "unreachable, deferred"
    UNKNOWN = "not known"
    CROWDED = "not known or held, too many requests wait"
    CLOSING = "not known, the crawl closes"
    CLOSING_AGAIN = "the same, returned before"


class Action(Enum):
    """What the middleware does with a request."""

    PASS = "pass"  # noqa: S105 - no password
    """The request goes on to the downloader."""
    DROP = "drop"
    """RobotsTxtDisallowed is raised; IgnoreRequest if the site refused requests for too long."""
    WAIT = "wait"
    """The request waits in the middleware until its robots.txt is known, or was tried again."""
    GIVE_BACK = "return to the scheduler"
    """The request goes back to the scheduler, which keeps it."""
    GIVE_BACK_IF_KEPT = "return if the scheduler stores it, else drop"
    PUT_OFF = "return with a lower priority"
    """The request goes back to the scheduler with a lower priority."""


ACTIONS: Final[dict[Situation, dict[Source, Action]]] = {
    situation: dict(zip(Source, actions, strict=True))
    for situation, actions in {
        Situation.ALLOWED: (Action.PASS,) * len(Source),
        # The queues of scrapy-rep have held their requests already.
        Situation.HELD: (Action.PASS, Action.PASS, Action.WAIT, Action.WAIT),
        Situation.REFUSED: (Action.DROP,) * len(Source),
        Situation.FORBIDDEN: (Action.DROP,) * len(Source),
        # A request that comes directly waits for the next try, once.
        Situation.DEFERRED: (Action.GIVE_BACK, Action.DROP, Action.DROP, Action.WAIT),
        Situation.UNKNOWN: (Action.WAIT,) * len(Source),
        Situation.CROWDED: (Action.WAIT, Action.WAIT, Action.PUT_OFF, Action.WAIT),
        # A request that seems direct may come from the disk queue of an earlier crawl.
        Situation.CLOSING: (Action.GIVE_BACK_IF_KEPT,) * len(Source),
        # A direct request that is given back comes again at once. The second time it is dropped.
        Situation.CLOSING_AGAIN: (Action.DROP,) * len(Source),
    }.items()
}
