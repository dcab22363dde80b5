"""All access to private parts of Scrapy's engine and requests.

The private parts of the downloader are used in ``pace``.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from scrapy.utils.asyncio import create_looping_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.task import LoopingCall

logger: Final = logging.getLogger(__name__)

_INTERVAL: Final = 0.25
"""Seconds between two checks of the engine."""


def user_agents_of(request: Request) -> list[bytes] | None:
    """Return the values of the User-Agent header of a request; None if it has no headers yet.

    Called twice for every request. ``request.headers`` would create the object of the headers, and
    its methods would normalize the name of the header: each takes a fifth of the time of
    ``process_request`` for a request whose origin is known.
    """
    if getattr(request, "_headers", True) is None:
        return None
    return dict.get(request.headers, b"User-Agent")


NEEDED: Final = {
    "_slot.closing": "tells that the crawl begins to close",
    "_slot.nextcall.schedule": "lets the engine ask the scheduler when a robots.txt has come",
    "_slot.scheduler.has_pending_requests": "tells whether all that is left waits",
    "scraper.slot": "tells the same",
    "_slot.inprogress": "tells which requests the engine is done with",
    "downloader.active": "tells whether all that is left waits",
}
"""The private attributes of Scrapy's engine that the queues and the gate use, and why."""


def missing(crawler: Crawler) -> str | None:
    """Return a message about the first missing attribute of NEEDED; None if there is none."""
    for path, reason in NEEDED.items():
        found: Any = crawler.engine
        for name in path.split("."):
            if not hasattr(found, name):
                return f"Scrapy's engine has no {path}, which {reason}"
            found = getattr(found, name)
    return None


def downloader_of(crawler: Crawler) -> Any:
    """Return Scrapy's downloader; None before the engine is created."""
    return getattr(crawler.engine, "downloader", None)


def is_closing(crawler: Crawler) -> bool:
    """Return whether the engine has begun to close the spider.

    There is no signal for it: ``spider_closed`` is sent after all requests in progress have ended,
    and requests that wait for a robots.txt are in progress.
    """
    slot = getattr(crawler.engine, "_slot", None)
    return getattr(slot, "closing", None) is not None


def in_progress(crawler: Crawler) -> set[Request]:
    """Return the requests that are being downloaded or whose callback runs."""
    slot = getattr(crawler.engine, "_slot", None)
    return set() if slot is None else slot.inprogress


def nudge(crawler: Crawler) -> None:
    """Let the engine ask the scheduler for a request soon.

    By itself it asks when a request ends or is scheduled, else every five seconds. It doesn't know
    that a lookup has ended, or that a turn has come.
    """
    slot = getattr(crawler.engine, "_slot", None)
    schedule = getattr(getattr(slot, "nextcall", None), "schedule", None)
    if schedule is not None and not is_closing(crawler):
        schedule()


def is_waiting(crawler: Crawler, but_for: str) -> bool:
    """Return whether the engine has nothing to do but requests that the scheduler holds.

    Downloads whose meta has the key ``but_for`` don't count.
    """
    engine: Any = crawler.engine
    slot = getattr(engine, "_slot", None)
    return (
        slot is not None
        and slot.closing is None
        and not engine.paused
        and all(but_for in request.meta for request in engine.downloader.active)
        and engine.scraper.slot.is_idle()
        and getattr(engine, "_start", None) is None
    )


def has_pending_requests(crawler: Crawler) -> bool:
    """Return whether the scheduler has requests. Raises what the scheduler raises."""
    engine: Any = crawler.engine
    return bool(engine._slot.scheduler.has_pending_requests())


@contextmanager
def beside_the_pages(crawler: Crawler) -> Iterator[None]:
    """Leave a request out of CONCURRENT_REQUESTS while it waits, or fetches a robots.txt.

    The engine counts all requests in the downloader middlewares. Raising the limit of the
    downloader by one is the only way to leave one out. A limit of 0 or less means no limit (Scrapy
    2.19).
    """
    downloader = downloader_of(crawler)
    limit = getattr(downloader, "total_concurrency", 0)
    if not isinstance(limit, int) or limit <= 0:
        yield
        return
    downloader.total_concurrency += 1
    try:
        yield
    finally:
        # Others may have changed it in the meantime, so it isn't reset to the old value.
        downloader.total_concurrency -= 1


def lift_pool_limits(crawler: Crawler) -> None:
    """Remove the connection limit of Scrapy's aiohttp and httpx handlers.

    It is CONCURRENT_REQUESTS, and fetches of robots.txt from sites that hang could take all of it.
    The downloader limits the number of pages anyway.
    """
    engine: Any = crawler.engine
    with suppress(AttributeError):  # of another version of Scrapy, or another downloader
        for handler in engine.downloader.handlers._handlers.values():
            modules = {base.__module__ for base in type(handler).__mro__}
            if "scrapy.core.downloader.handlers._aiohttp" in modules:
                connector = handler._session.connector
                connector._limit = connector._limit_per_host = 0
            elif "scrapy.core.downloader.handlers._httpx" in modules:
                kept = handler._limits.max_keepalive_connections
                handler._default_client._transport._pool._max_connections = math.inf
                # Each proxy gets a client of its own later.
                handler._limits = type(handler._limits)(max_keepalive_connections=kept)


class PlacesBeside:
    """Lets requests with a turn leave the scheduler, although CONCURRENT_REQUESTS is reached.

    At most a quarter of it, rounded up, may leave so. Other requests wait until there are places.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._given = 0

    def give(self, requests: int) -> None:
        """Set the number of requests that may leave so from now on."""
        downloader = downloader_of(self._crawler)
        limit = getattr(downloader, "total_concurrency", 0)
        if not isinstance(limit, int) or limit <= 0 or not hasattr(downloader, "active"):
            return
        limit -= self._given
        above = len(downloader.active) + requests - limit if requests else 0
        most = math.ceil(limit / 4) if limit > 1 else 0  # one at a time stays one at a time
        given = min(most, max(0, above))
        downloader.total_concurrency += given - self._given
        self._given = given


class ClosingWatch:
    """Calls ``closing`` once when the engine begins to close the spider; ``look`` until then."""

    def __init__(
        self, crawler: Crawler, closing: Callable[[], None], look: Callable[[], None]
    ) -> None:
        self._crawler = crawler
        self._closing = closing
        self._look = look
        self._loop: AsyncioLoopingCall | LoopingCall | None = None

    def start(self) -> None:
        """Start the checks."""
        self._loop = create_looping_call(self._watch)
        self._loop.start(_INTERVAL, now=False)

    def stop(self) -> None:
        """Stop the checks."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        self._loop = None

    def _watch(self) -> None:
        if is_closing(self._crawler):
            self.stop()
            self._closing()
        else:
            try:
                self._look()
            except Exception:
                logger.exception("Error while looking at the engine")
