"""The source of a request, noted in its meta between the scheduler and the middleware."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from scrapy import Request

NOTE_KEY: Final = "_robotstxt"
"""Private key of ``Request.meta``. The value is a list, which can be written to disk.

It has the source of the request; if the request was given back to the scheduler, also its original
``dont_filter`` and priority.
"""


class Source(str, Enum):
    """The component from which the engine got a request."""

    QUEUE = "queue"
    """A queue of scrapy-rep, which defers requests of unreachable origins."""
    OVERDUE = "overdue"
    """A queue of scrapy-rep, which doesn't defer the request any longer, because the next try of
    robots.txt comes after REP_DEFER_TIMEOUT."""
    SCHEDULER = "scheduler"
    """Another queue or scheduler, which holds no requests because of robots.txt."""
    DIRECT = "direct"
    """A component that awaits ``engine.download_async``, without the scheduler. The request can't
    be given back."""


class Note(NamedTuple):
    """What ``Request.meta`` has about the source of a request."""

    source: Source
    returned: bool
    """Whether the request was given back to the scheduler before."""
    put_off: bool
    """Whether the request was given back because too many requests waited."""


DIRECT: Final = Note(Source.DIRECT, returned=False, put_off=False)
"""The note for a request whose meta has none."""


def store_source(request: Request, source: Source) -> None:
    """Store in the meta of ``request`` from which queue it came.

    The other values that are stored with it don't change.
    """
    request.meta[NOTE_KEY] = [source.value, *request.meta.get(NOTE_KEY, ())[1:]]


def copy_for_scheduler(request: Request, *, priority_cut: int = 0) -> Request:
    """Return a copy of ``request`` for the scheduler, with a note, and the priority lowered."""
    # DIRECT is replaced when a scheduler returns the request. If none does, the request counts as
    # direct, and is not given back again and again.
    noted = [Source.DIRECT.value, request.dont_filter, request.priority]
    # The dupefilter has seen the request, and would drop it.
    return request.replace(
        dont_filter=True,
        priority=request.priority - priority_cut,
        meta={**request.meta, NOTE_KEY: noted},
    )


def read_and_restore(request: Request, noted: list[Any]) -> Note:
    """Return ``noted`` as a note; restore the original dont_filter and priority of ``request``.

    ``noted`` is the list that the meta of the request had.
    """
    source, *before = noted
    put_off = False
    if before:
        put_off = request.priority != before[1]
        request.dont_filter, request.priority = before
    return Note(Source(source), bool(before), put_off)
