"""The one place that looks at what Scrapy keeps to itself: of its engine, and of a request."""

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

logger = logging.getLogger(__name__)

_INTERVAL: Final = 0.25
"""Seconds between two looks at the engine."""


def user_agents_of(request: Request) -> list[bytes] | None:
    """Return the values of the User-Agent header of a request; None where it has none yet.

    Asked twice for every request. Newer versions of Scrapy make the object that holds the headers
    when they are first looked at, and its own methods bring the name of a header into the form
    that it has here: either takes a fifth of all that is done for a request whose origin is known.
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
"""What queue and gate need of Scrapy's engine that has no public API, and why."""


def missing(crawler: Crawler) -> str | None:
    """Return what of NEEDED is not there, and what it would be for; None if all is."""
    for path, reason in NEEDED.items():
        found: Any = crawler.engine
        for name in path.split("."):
            if not hasattr(found, name):
                return f"Scrapy's engine has no {path}, which {reason}"
            found = getattr(found, name)
    return None


def downloader_of(crawler: Crawler) -> Any:
    """Return Scrapy's downloader; None where there is none."""
    return getattr(crawler.engine, "downloader", None)


def is_closing(crawler: Crawler) -> bool:
    """Return whether the engine has begun to close the spider.

    No signal tells: ``spider_closed`` is sent only when every request in progress has ended, and
    those that wait for a robots.txt that hangs are in progress.
    """
    slot = getattr(crawler.engine, "_slot", None)
    return getattr(slot, "closing", None) is not None


def in_progress(crawler: Crawler) -> set[Request]:
    """Return the requests that the engine has: being downloaded, or with their callback."""
    slot = getattr(crawler.engine, "_slot", None)
    return set() if slot is None else slot.inprogress


def nudge(crawler: Crawler) -> None:
    """Let the engine ask the scheduler again, soon.

    It asks by itself only when a request ends or is scheduled, and else every five seconds; a
    robots.txt that came, or a time that is over, is neither.
    """
    slot = getattr(crawler.engine, "_slot", None)
    schedule = getattr(getattr(slot, "nextcall", None), "schedule", None)
    if schedule is not None and not is_closing(crawler):
        schedule()


def is_waiting(crawler: Crawler, but_for: str) -> bool:
    """Return whether nothing is left to do for the engine but what the scheduler may keep back.

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
    """Return what the scheduler says. Raises whatever it raises, as where it asks a database."""
    engine: Any = crawler.engine
    return bool(engine._slot.scheduler.has_pending_requests())


@contextmanager
def beside_the_pages(crawler: Crawler) -> Iterator[None]:
    """Give back the place that a request takes of CONCURRENT_REQUESTS, as long as this lasts.

    Whatever goes through the engine counts as being downloaded, a page that waits for a robots.txt
    just as the robots.txt itself. The downloader's limit is the only way to say that it is none of
    the pages. A limit of 0 or less is none (Scrapy 2.19), and stays.
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
        # Less by one, not back to what it was: others come and go in the meantime.
        downloader.total_concurrency -= 1


def lift_pool_limits(crawler: Crawler) -> None:
    """Let Scrapy's handlers of aiohttp and httpx have as many connections as there are requests.

    They have CONCURRENT_REQUESTS of them, and the files of sites that hang would take them all. The
    downloader limits how many pages there are.
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
    """Lets requests leave the scheduler at their moment, though CONCURRENT_REQUESTS is reached.

    By a quarter of it at most, rounded up, and only those: what leaves next waits until there are
    places again.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._given = 0

    def give(self, requests: int) -> None:
        """Let so many requests leave from now on."""
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
    """Calls ``closing`` once, when the engine begins to close the spider, until then ``look``."""

    def __init__(
        self, crawler: Crawler, closing: Callable[[], None], look: Callable[[], None]
    ) -> None:
        self._crawler = crawler
        self._closing = closing
        self._look = look
        self._loop: AsyncioLoopingCall | LoopingCall | None = None

    def start(self) -> None:
        """Begin to look."""
        self._loop = create_looping_call(self._watch)
        self._loop.start(_INTERVAL, now=False)

    def stop(self) -> None:
        """Look no more."""
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
