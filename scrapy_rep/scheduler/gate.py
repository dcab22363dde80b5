"""Which origins' requests may leave the scheduler, and which are to wait there."""

from __future__ import annotations

import logging
import math
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import stats
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.utils.lru import BoundedCache
from scrapy_rep.utils.per_crawl import PerCrawl
from scrapy_rep.utils.scrapy_internals import is_waiting, nudge

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.decision.decider import Decider
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.delays import Delays
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock, Timer

logger = logging.getLogger(__name__)

_MARGIN: Final = 0.02
"""Seconds that a timer is set too late, so that it doesn't find its time still to come."""
_LOOKS: Final = 2
"""Looks at the engine, one after the other, that are to find it waiting."""


class Waiter(Protocol):
    """Requests of one origin that are kept in the scheduler."""

    def head(self) -> Request:
        """Return the request that would leave next."""

    def wake(self) -> None:
        """Ask again whether the origin is open."""


class _Nobody:
    """Stands for a request that went back to a scheduler which doesn't ask here."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def head(self) -> Request:
        return self._request

    def wake(self) -> None:
        pass


_GATES: Final[PerCrawl[Gate]] = PerCrawl()


class Gate:
    """Finds out what is not known of an origin, and tells those that wait when it is."""

    def __init__(  # noqa: PLR0913 - all that it depends on, each by name
        self,
        *,
        crawler: Crawler,
        cache: Cache,
        decider: Decider,
        options: Options,
        delays: Delays | None,
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._cache = cache
        self._decider = decider
        self._options = options
        self._delays = delays
        self._clock = clock
        self._defers = options.unreachable_action == "defer" and not options.dry_run
        self.in_use = False
        """Whether a queue asks here, and so keeps the requests of unreachable origins."""
        self._waiting: dict[Origin, list[Waiter]] = {}
        self._to_ask: deque[tuple[Origin, Waiter]] = deque()
        self._asking = False
        self._asked: set[Origin] = set()
        """Origins of which it has been found out what could be, and nobody has come for it."""
        self._deferred: BoundedCache[Origin, float] = BoundedCache(options.memory_max_origins, 1)
        """Since when each unreachable origin is deferred."""
        self._due: list[tuple[float, Origin]] = []
        self._timer: Timer | None = None
        self._timer_at = math.inf
        self._looks = 0
        self.origin_governing = decider.origin_governing
        cache.when_slow(self.ask)
        _GATES.put(crawler, self)

    @classmethod
    def of(cls, crawler: Crawler) -> Gate | None:
        """Return that of a crawl; None where it doesn't obey robots.txt."""
        return _GATES.get(crawler)

    def opens(self, origin: Origin, waiter: Waiter) -> bool:
        """Return whether a request of ``origin`` may leave; if not, ``waiter`` is woken later."""
        if not self._decider.needs_robotstxt(origin):
            return True  # it waits on disk since a crawl that had no such override
        waiters = self._waiting.get(origin)
        if waiters is not None:
            waiters.append(waiter)
            return False
        entry = self._cache.known(origin)
        if entry is None:
            if origin in self._asked:
                # It was found out and is forgotten already: the middleware finds out by itself.
                self._asked.discard(origin)
                return True
            self._waiting[origin] = [waiter]
            self._to_ask.append((origin, waiter))
            return False
        self._asked.discard(origin)
        seconds = self._defer(origin, entry)
        if seconds is None:
            return True
        self._waiting[origin] = [waiter]
        self._wake_in(seconds, origin)
        return False

    def is_open(self, origin: Origin) -> bool:
        """Return whether a request of ``origin`` may leave; nobody waits and nothing is asked."""
        entry = self._cache.known(origin)
        return entry is not None and not (self._defers and entry.is_unreachable)

    def keeps(self, origin: Origin) -> bool:
        """Return whether requests of ``origin``, unreachable just now, are to wait in the queue."""
        entry = self._cache.known(origin)
        return self.in_use and entry is not None and self._defer(origin, entry) is not None

    def find_out(self, origin: Origin, request: Request) -> None:
        """Begin, as soon as there is room, to find out about ``origin``; nobody waits for it."""
        if origin not in self._waiting:
            nobody = _Nobody(request)
            self._waiting[origin] = [nobody]
            self._to_ask.append((origin, nobody))
            self.ask()

    def is_full(self, slot: str) -> bool:
        """Return whether a download slot has enough to do, for the delay that its site asks for.

        Whatever left the scheduler takes a place of CONCURRENT_REQUESTS as long as it waits for its
        turn in the slot, and a site that is slow on purpose is to hold up no other.
        """
        return self._delays is not None and self._delays.is_full(slot)

    def ask(self) -> None:
        """Begin to find out what is not known, as far as there is room."""
        engine = self._crawler.engine
        if self._asking or engine is None or engine.paused:
            return
        self._asking = True
        try:
            while self._to_ask and self._cache.has_room and not self._cache.closing:
                deferred_from_coro(self._find_out(*self._to_ask.popleft()))
        finally:
            self._asking = False

    async def _find_out(self, origin: Origin, waiter: Waiter) -> None:
        try:
            await self._decider.look_up(waiter.head())
        except CrawlClosingError:
            return
        except Exception:
            # The middleware meets the same error, and drops the request for it.
            logger.exception("Error while finding out what the robots.txt of %s says", origin)
        if self.in_use:
            self._asked.add(origin)
        self._wake(origin)
        self.ask()

    def _defer(self, origin: Origin, entry: Entry) -> float | None:
        """Return the seconds until ``origin`` is to be looked at again, None where it is open."""
        if not entry.is_unreachable or not self._defers:
            if len(self._deferred):
                self._deferred.drop(origin)
            return None
        now = self._clock.monotonic()
        since = self._deferred.get(origin)
        if since is None:
            since = now
            self._deferred.put(origin, since, 0)
            stats.count(self._crawler, stats.DEFERRED)
        left = since + self._options.defer_timeout - now
        return None if left <= 0 else min(left, max(0.0, entry.end - self._clock.time()))

    def _wake_in(self, seconds: float, origin: Origin) -> None:
        heappush(self._due, (self._clock.monotonic() + seconds + _MARGIN, origin))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._due or self._due[0][0] >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._due[0][0]
        self._timer = self._clock.call_later(
            max(0.0, self._timer_at - self._clock.monotonic()), self._time_has_come
        )

    def _time_has_come(self) -> None:
        self._timer = None
        self._timer_at = math.inf
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            self._wake(heappop(self._due)[1])
        self._set_timer()

    def _wake(self, origin: Origin) -> None:
        for waiter in self._waiting.pop(origin, ()):
            waiter.wake()
        nudge(self._crawler)

    def look(self) -> None:
        """Say, once, that the crawl goes on though all that is left of it waits."""
        if self._looks >= _LOOKS:
            return
        waits = self._due and not self._to_ask and not self._cache.flights
        self._looks = self._looks + 1 if waits and is_waiting(self._crawler) else 0
        if self._looks >= _LOOKS:
            logger.info(
                "Nothing is left to do but to wait for %d unreachable origins: the next try of a "
                "robots.txt is in %.0f s, and requests that have waited for REP_DEFER_TIMEOUT, "
                "%g s, are dropped",
                len(self._due),
                max(0.0, self._due[0][0] - self._clock.monotonic()),
                self._options.defer_timeout,
                extra={"spider": self._crawler.spider},
            )

    def close(self) -> None:
        """Ask and wake no more: who waits stays in the scheduler."""
        self._to_ask.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = -math.inf  # no other comes before it
