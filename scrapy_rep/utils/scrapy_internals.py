"""All accesses to private attributes of Scrapy's engine and requests.

Those of download slots are in ``download_slots``.

They may be missing in another version of Scrapy. The queue and the gate are used only if
``missing`` finds all that they need; the other functions work without.
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
"""Seconds between two checks whether the engine closes the spider."""


def user_agents_of(request: Request) -> list[bytes] | None:
    """Return the values of the User-Agent header of a request; None if it has none yet.

    This is on the hot path, and called twice per request. Scrapy may create the headers object on
    first access, and its methods normalize the name of the header; each would take a fifth of the
    time that a request to a known origin takes here.
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
"""Private attributes of Scrapy's engine that the queue and the gate need, and why."""


def missing(crawler: Crawler) -> str | None:
    """Return a sentence about the first attribute of NEEDED that is missing; None if none is."""
    for path, reason in NEEDED.items():
        found: Any = crawler.engine
        for name in path.split("."):
            if not hasattr(found, name):
                return f"Scrapy's engine has no {path}, which {reason}"
            found = getattr(found, name)
    return None


def downloader_of(crawler: Crawler) -> Any:
    """Return Scrapy's downloader; None if there is none."""
    return getattr(crawler.engine, "downloader", None)


def is_closing(crawler: Crawler) -> bool:
    """Return whether the engine has begun to close the spider.

    There is no signal for this: ``spider_closed`` is sent only when all requests in progress have
    ended, and these include requests that wait for a robots.txt.
    """
    slot = getattr(crawler.engine, "_slot", None)
    return getattr(slot, "closing", None) is not None


def in_progress(crawler: Crawler) -> set[Request]:
    """Return the requests of the engine that are being downloaded or processed by a callback."""
    slot = getattr(crawler.engine, "_slot", None)
    return set() if slot is None else slot.inprogress


def nudge(crawler: Crawler) -> None:
    """Make the engine ask the scheduler for a request soon.

    By itself it asks when a request ends or is scheduled, and every five seconds. So it must be
    nudged when robots.txt has become known, or a wait has ended.
    """
    slot = getattr(crawler.engine, "_slot", None)
    schedule = getattr(getattr(slot, "nextcall", None), "schedule", None)
    if schedule is not None and not is_closing(crawler):
        schedule()


def has_only_waiting_requests(crawler: Crawler, ignored_key: str) -> bool:
    """Return whether the engine has nothing to do but the requests that wait in the scheduler.

    Downloads whose meta has the key ``ignored_key`` don't count.
    """
    engine: Any = crawler.engine
    slot = getattr(engine, "_slot", None)
    return (
        slot is not None
        and slot.closing is None
        and not engine.paused
        and all(ignored_key in request.meta for request in engine.downloader.active)
        and engine.scraper.slot.is_idle()
        and getattr(engine, "_start", None) is None
    )


def has_pending_requests(crawler: Crawler) -> bool:
    """Return whether the scheduler has requests. It may raise any error, as with a database."""
    engine: Any = crawler.engine
    return bool(engine._slot.scheduler.has_pending_requests())


@contextmanager
def raised_concurrency(crawler: Crawler) -> Iterator[None]:
    """Increase CONCURRENT_REQUESTS by one in the ``with`` block, so that one request is extra.

    The downloader counts all requests of the engine: also robots.txt, and pages that wait for it.
    Only its limit can be changed to make up for them. A limit of 0 or less means no limit (Scrapy
    2.19), and is not changed.
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
        # Not set to the value before, because other blocks may have changed it meanwhile.
        downloader.total_concurrency -= 1


def lift_pool_limits(crawler: Crawler) -> None:
    """Remove the connection limits of Scrapy's aiohttp and httpx download handlers.

    They allow CONCURRENT_REQUESTS connections, and robots.txt of sites that hang would take them
    all. The number of pages is still limited by the downloader.
    """
    engine: Any = crawler.engine
    with suppress(AttributeError):  # another version of Scrapy, or another downloader
        for handler in engine.downloader.handlers._handlers.values():
            modules = {base.__module__ for base in type(handler).__mro__}
            if "scrapy.core.downloader.handlers._aiohttp" in modules:
                connector = handler._session.connector
                connector._limit = connector._limit_per_host = 0
            elif "scrapy.core.downloader.handlers._httpx" in modules:
                kept = handler._limits.max_keepalive_connections
                handler._default_client._transport._pool._max_connections = math.inf
                # Clients for proxies are created later, with these limits.
                handler._limits = type(handler._limits)(max_keepalive_connections=kept)


class ExtraConcurrency:
    """Raises CONCURRENT_REQUESTS for requests that have waited for their turn, so that they leave.

    It is raised by a quarter of its value at most, rounded up.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._raised = 0

    def raise_for(self, requests: int) -> None:
        """Raise the limit so that ``requests`` can leave now; 0 resets it."""
        downloader = downloader_of(self._crawler)
        limit = getattr(downloader, "total_concurrency", 0)
        if not isinstance(limit, int) or limit <= 0 or not hasattr(downloader, "active"):
            return
        limit -= self._raised
        above = len(downloader.active) + requests - limit if requests else 0
        most = math.ceil(limit / 4) if limit > 1 else 0  # one at a time stays one at a time
        raised = min(most, max(0, above))
        downloader.total_concurrency += raised - self._raised
        self._raised = raised


class ClosingWatch:
    """Calls ``look`` at intervals, until the engine begins to close; then ``closing``, once."""

    def __init__(
        self, crawler: Crawler, closing: Callable[[], None], look: Callable[[], None]
    ) -> None:
        self._crawler = crawler
        self._closing = closing
        self._look = look
        self._loop: AsyncioLoopingCall | LoopingCall | None = None

    def start(self) -> None:
        """Begin to check."""
        self._loop = create_looping_call(self._watch)
        self._loop.start(_INTERVAL, now=False)

    def stop(self) -> None:
        """Stop checking."""
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
