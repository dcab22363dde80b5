"""The ticket of a request: the private key of its meta, with what was decided about it so far.

Until ``RobotsTxtMiddleware`` gets the request, the ticket is a list, a ``Note``: from where the
request comes. It can be written to disk with the request. When the request is allowed, the ticket
is a tuple, a ``Grant``: what the request may be sent as, and until when. The last middleware and
the wire compare that with what is sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from scrapy import Request

TICKET_KEY: Final = "_robotstxt"
"""Private key of ``Request.meta``."""


class Source(str, Enum):
    """The component from which the engine got a request."""

    QUEUE = "queue"
    """A queue of scrapy-rep, which holds requests as long as they have to wait."""
    OVERDUE = "overdue"
    """A queue of scrapy-rep, which doesn't defer the request any longer, because the next try of
    robots.txt comes after REP_DEFER_TIMEOUT."""
    SCHEDULER = "scheduler"
    """Another queue or scheduler, which holds no requests because of robots.txt."""
    DIRECT = "direct"
    """A component that awaits ``engine.download_async``, without the scheduler. The request can't
    be given back."""


class Note(NamedTuple):
    """Where a request comes from, and whether it was given back, put off, or is decided again."""

    source: Source
    returned: bool = False
    """Whether the request was given back to the scheduler before."""
    put_off: bool = False
    """Whether the request was given back because too many requests waited."""
    again: bool = False
    """Whether the decision is repeated, just before the request is sent."""


class Grant(NamedTuple):
    """What a request may be sent as, until when, and on which terms."""

    url: str
    tokens: tuple[str, ...] | None
    """The product tokens that were decided on; None if the decision is valid for all tokens."""
    end: float = math.inf
    """Until when the decision is valid, in seconds since the epoch; infinity if no robots.txt
    decides on the request."""
    terms: Mapping[str, Any] | None = None
    """What each reason to wait asks of the request, by its key; None if nothing."""
    returned: bool = False
    """Whether the request was given back to the scheduler before. Then it is not given back for a
    lookup again, as the result may expire each time before the request is sent."""


DIRECT: Final = Note(Source.DIRECT)
"""The note for a request whose meta has none."""
_AGAIN: Final = "again"
_NOTES: Final = {
    **{source.value: Note(source) for source in Source},
    _AGAIN: DIRECT._replace(again=True),
}
"""The note of a request that was not given back, by the first value of its ticket."""


def read_and_restore(request: Request, ticket: object) -> Note:
    """Return the note of ``request``; restore its original dont_filter and priority.

    ``ticket`` is the ticket that its meta had. Without a note, the request counts as direct.
    """
    # A callback may have copied the meta of a response, with a grant.
    if not isinstance(ticket, list):
        return DIRECT
    note = _NOTES[ticket[0]]
    if len(ticket) == 1:
        return note
    _, dont_filter, priority = ticket
    put_off = request.priority != priority
    request.dont_filter, request.priority = dont_filter, priority
    return note._replace(returned=True, put_off=put_off)


def grant_of(request: Request) -> Grant | None:
    """Return what ``request`` may be sent as; None if nothing was decided about it."""
    ticket = request.meta.get(TICKET_KEY)
    return Grant(*ticket) if isinstance(ticket, tuple) else None


def store_grant(
    request: Request,
    url: str,
    tokens: tuple[str, ...] | None,
    end: float = math.inf,
    terms: Mapping[str, Any] | None = None,
    *,
    returned: bool = False,
) -> None:
    """Store in the meta of ``request`` the values of a ``Grant``."""
    # A plain tuple: Scrapy's marshal queues write no other.
    request.meta[TICKET_KEY] = url, tokens, end, terms, returned


def store_source(request: Request, source: Source) -> None:
    """Store in the meta of ``request`` from which queue it came.

    The values of a request that was given back don't change.
    """
    noted = request.meta.get(TICKET_KEY)
    before = noted[1:] if isinstance(noted, list) else []
    request.meta[TICKET_KEY] = [source.value, *before]


def store_again(request: Request) -> None:
    """Store in the meta of ``request`` that its decision is repeated just before it is sent."""
    request.meta[TICKET_KEY] = [_AGAIN]


def copy_for_scheduler(request: Request, *, priority_cut: int = 0) -> Request:
    """Return a copy for the scheduler: not filtered, its priority lower, both old values noted."""
    # DIRECT is replaced when a scheduler returns the request. If none does, the request counts as
    # direct, and is not given back again and again.
    noted = [Source.DIRECT.value, request.dont_filter, request.priority]
    # The dupefilter has seen the request, and would drop it.
    return request.replace(
        dont_filter=True,
        priority=request.priority - priority_cut,
        meta={**request.meta, TICKET_KEY: noted},
    )
