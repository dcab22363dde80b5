"""Where a request comes from, noted in its meta on the way from the scheduler to the middleware."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from scrapy import Request

NOTE_KEY: Final = "_robotstxt"
"""Private key of ``Request.meta``: a list, as it may go to disk.

The source; of a request that was given back, its own ``dont_filter`` and priority too."""


class Source(str, Enum):
    """Who handed a request to the engine."""

    QUEUE = "queue"
    """Our queue, which keeps it while its origin is unreachable."""
    OVERDUE = "overdue"
    """Our queue, which has kept it for REP_DEFER_TIMEOUT."""
    SCHEDULER = "scheduler"
    """Some other queue or scheduler, which knows nothing of robots.txt."""
    DIRECT = "direct"
    """Nobody that it may be given back to: a component awaits ``download_async``."""


class Note(NamedTuple):
    """What was noted of a request."""

    source: Source
    returned: bool
    """Whether it was given back to the scheduler, and comes again."""
    put_off: bool
    """Whether that was because too many waited."""


DIRECT: Final = Note(Source.DIRECT, returned=False, put_off=False)
"""Of a request of which nothing was noted."""


def note_source(request: Request, source: Source) -> None:
    """Note where ``request`` comes from; what was changed of it stays noted."""
    request.meta[NOTE_KEY] = [source.value, *request.meta.get(NOTE_KEY, ())[1:]]


def note_returned(request: Request, *, less: int = 0) -> Request:
    """Return ``request`` as it goes back to the scheduler, its priority lower by ``less``."""
    # Whoever hands it on next says so; ``download_async`` comes again at once, and for ever.
    noted = [Source.DIRECT.value, request.dont_filter, request.priority]
    # It is in the dupefilter already.
    return request.replace(
        dont_filter=True,
        priority=request.priority - less,
        meta={**request.meta, NOTE_KEY: noted},
    )


def read_note(request: Request, noted: list[Any]) -> Note:
    """Return what was noted, taken off the meta of ``request``, and undo what was changed."""
    source, *before = noted
    put_off = False
    if before:
        put_off = request.priority != before[1]
        request.dont_filter, request.priority = before
    return Note(Source(source), bool(before), put_off)
