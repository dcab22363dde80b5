"""The source of a request, noted in its meta between the scheduler and the middleware."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from scrapy import Request

NOTE_KEY: Final = "_robotstxt"
"""Private key of ``Request.meta``: a list, which can be written to disk.

It has the source, and for a request that was given back its original ``dont_filter`` and priority.
"""


class Source(str, Enum):
    """The component that passed a request to the engine."""

    QUEUE = "queue"
    """Our queue, which defers requests of unreachable origins."""
    OVERDUE = "overdue"
    """Our queue, after it has deferred the request for REP_DEFER_TIMEOUT."""
    SCHEDULER = "scheduler"
    """Another queue or scheduler, which doesn't know robots.txt."""
    DIRECT = "direct"
    """No scheduler: a component awaits ``download_async``. It can't be given back."""


class Note(NamedTuple):
    """The note on a request."""

    source: Source
    returned: bool
    """Whether it was given back to the scheduler before."""
    put_off: bool
    """Whether it was given back because too many requests waited."""


DIRECT: Final = Note(Source.DIRECT, returned=False, put_off=False)
"""The note on a request without one."""


def note_source(request: Request, source: Source) -> None:
    """Note the source of ``request``, and keep its original values."""
    request.meta[NOTE_KEY] = [source.value, *request.meta.get(NOTE_KEY, ())[1:]]


def note_returned(request: Request, *, less: int = 0) -> Request:
    """Return the copy of ``request`` for the scheduler, with its priority lowered by ``less``."""
    # The next scheduler notes itself. Without one it must not be given back again and again.
    noted = [Source.DIRECT.value, request.dont_filter, request.priority]
    # The dupefilter has seen it.
    return request.replace(
        dont_filter=True,
        priority=request.priority - less,
        meta={**request.meta, NOTE_KEY: noted},
    )


def read_note(request: Request, noted: list[Any]) -> Note:
    """Return the note that was in the meta of ``request``, and restore its original values."""
    source, *before = noted
    put_off = False
    if before:
        put_off = request.priority != before[1]
        request.dont_filter, request.priority = before
    return Note(Source(source), bool(before), put_off)
