"""The ticket of a request: where it comes from, and what it may be sent as.

It is a tuple under a private key of the meta, always with the fields of ``Ticket``. The queue
writes it when a request leaves; the gate fills in what was decided; the wire compares that with
what is sent. It can be written to disk with the request.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Final, NamedTuple

from scrapy import Request

TICKET_KEY: Final = "_robotstxt"
"""Private key of ``Request.meta``."""


class Source(str, Enum):
    """Who brings a request to the gate, and what follows from that.

    =========  ================================  =========  ==============  ==============
    source     who                               held at    crawl closes    unreachable
    =========  ================================  =========  ==============  ==============
    QUEUE      a queue of scrapy-rep             the queue  goes back       goes back
    OVERDUE    the same: deferred no more        the queue  goes back       dropped
    SCHEDULER  another queue or scheduler        the gate   goes back       dropped
    DIRECT     who awaits ``download_async``     the gate   lookup goes on  waits once
    WIRE       the wire: the ticket doesn't fit  the wire   lookup goes on  goes back once
    RESPONSE   a response with another URL,      nowhere    lookup goes on  dropped
               which is only decided on
    =========  ================================  =========  ==============  ==============

    All wait at the gate for a lookup, and what is sent may be held at the wire, too. At the close,
    what no scheduler stores is dropped in place of going back.
    """

    QUEUE = "queue"
    OVERDUE = "overdue"
    SCHEDULER = "scheduler"
    DIRECT = "direct"
    WIRE = "wire"
    RESPONSE = "response"


QUEUED: Final = (Source.QUEUE, Source.OVERDUE)
"""Who has asked the admission already, as long as the crawl uses a queue of scrapy-rep."""
AGAIN: Final = (Source.WIRE, Source.RESPONSE)
"""Who asks about what has left already."""
STAYING: Final = (Source.DIRECT, *AGAIN)
"""Whose lookups go on when the crawl closes: Scrapy waits for what they wait for."""


class Ticket(NamedTuple):
    """What a request may be sent as, until when, and with which delay."""

    url: str | None = None
    """The URL that was allowed; None before that."""
    tokens: tuple[str, ...] | None = None
    """The product tokens that were decided on; None if the decision is valid for all."""
    end: float = math.inf
    """Until when the decision is valid, in seconds since the epoch."""
    delay: float = 0.0
    """Seconds until the next request to the site, at most REP_CRAWL_DELAY_MAX."""
    source: str = Source.DIRECT.value
    own_dont_filter: bool | None = None
    """The ``dont_filter`` of the request before it was given back; None if it never was."""

    @property
    def was_given_back(self) -> bool:
        return self.own_dont_filter is not None

    @property
    def was_counted(self) -> bool:
        """Whether the request has come to the gate before."""
        return self.was_given_back or self.source in AGAIN


DIRECT: Final = Ticket()
"""The ticket of a request that has none."""
_UNDECIDED: Final = {source.value: Ticket(source=source.value) for source in Source}


def ticket_of(request: Request) -> Ticket | None:
    """Return what ``request`` may be sent as; None until it is allowed."""
    found = request.meta.get(TICKET_KEY)
    return Ticket(*found) if found and found[0] is not None else None


def take_ticket(request: Request) -> Ticket:
    """Remove the ticket of a request that comes to the gate, and return it.

    One with a URL is of another request, whose meta was copied, as for a retry. What was given back
    gets its own ``dont_filter`` again, unless the wire asks.
    """
    found = request.meta.pop(TICKET_KEY, None)
    if not found or found[0] is not None:
        return DIRECT
    if found[5] is None:
        return _UNDECIDED[found[4]]
    ticket = Ticket(*found)
    if ticket.source != Source.WIRE:
        request.dont_filter = found[5]
    return ticket


def store_grant(request: Request, url: str) -> None:
    """Allow ``request`` to be sent to ``url``, for ever and without a delay."""
    request.meta[TICKET_KEY] = url, None, math.inf, 0.0, Source.DIRECT.value, None


def store_source(request: Request, source: Source) -> None:
    """Note who brings ``request``; that it was given back before stays noted."""
    found = request.meta.get(TICKET_KEY)
    is_stale = source is not Source.WIRE and found and found[0] is not None
    own_dont_filter = found[5] if found and not is_stale else None
    request.meta[TICKET_KEY] = None, None, math.inf, 0.0, source.value, own_dont_filter


def copy_for_scheduler(request: Request) -> Request:
    """Return a copy for the scheduler, whose dupefilter has seen ``request`` and would drop it."""
    noted = Ticket(own_dont_filter=request.dont_filter)
    return request.replace(dont_filter=True, meta={**request.meta, TICKET_KEY: tuple(noted)})
