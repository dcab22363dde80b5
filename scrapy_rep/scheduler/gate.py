"""Which origins' requests may leave the scheduler, and which are to wait there."""

from __future__ import annotations

import logging
import math
from collections import deque
from typing import TYPE_CHECKING, Final

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep import stats
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.scheduler.idle import Idle, line_about, line_about_others
from scrapy_rep.scheduler.source import Source
from scrapy_rep.scheduler.waiters import MARGIN, Alone, Calling, Waiters
from scrapy_rep.utils.concurrency import trap_cancelled
from scrapy_rep.utils.per_crawl import PerCrawl
from scrapy_rep.utils.scrapy_internals import nudge
from scrapy_rep.utils.timeouts import timeout_of, timeout_of_crawl

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.decision.decider import Decider
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.delays import Delays
    from scrapy_rep.scheduler.turns import Turns
    from scrapy_rep.scheduler.waiters import Waiter
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock

logger = logging.getLogger(__name__)

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
        turns: Turns | None = None,
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._cache = cache
        self._decider = decider
        self._delays = delays
        self._turns = turns
        self._clock = clock
        self._would_defer = (
            options.unreachable_action == "defer"
            and options.defer_timeout > 0
            and not options.interactive
        )
        self._defers = self._would_defer and not options.dry_run
        self.in_use = False
        """Whether a queue asks here, which keeps requests of unreachable origins, and for turns."""
        self.is_shared = False
        """Whether workers share that queue, which has times of its own for what is deferred."""
        self.when_news: Callable[[Origin], None] = lambda _: None
        """What such a queue does when another worker has learned of an origin."""
        self.elsewhere: tuple[int, float] = (0, math.inf)
        """How many unreachable origins have requests there, and when the first is due."""
        self.defer_timeout = options.defer_timeout
        self._waiters = Waiters(crawler, clock)
        self._to_ask: deque[tuple[Origin, Waiter]] = deque()
        self._asking = False
        self._asked: set[Origin] = set()
        """Origins of which it has been found out what could be, and nobody has come for it."""
        self._news: set[Origin] = set()
        """Origins that are found out about, and have not been unreachable before."""
        self._deferred: set[Waiter] = set()
        """Those that wait for unreachable origins."""
        self.idle = Idle(crawler, self._only_deferred, self._waiting_line)
        """Tells spiders that all that is left of the crawl waits."""
        self.origin_governing = decider.origin_governing
        cache.when_slow(self.ask)
        _GATES.put(crawler, self)

    @classmethod
    def of(cls, crawler: Crawler) -> Gate | None:
        """Return that of a crawl; None where it doesn't obey robots.txt."""
        return _GATES.get(crawler)

    @property
    def loses(self) -> bool:
        """Whether requests of unreachable origins are to be kept, and there is nobody to do so."""
        return self._defers and not self.in_use

    def opens(self, origin: Origin, waiter: Waiter) -> bool:
        """Return whether a request of ``origin`` may leave; if not, ``waiter`` is woken later."""
        if not self._decider.needs_robotstxt(origin):
            self._end(waiter)
            return True  # it waits on disk since a crawl that had no such override
        entry = self._cache.known(origin)
        if entry is not None and not self._decider.lacks_tdmrep(origin, waiter.head):
            self._asked.discard(origin)
            if self._defer(origin, entry, waiter):
                return False
            turns = self._turns if entry.asks_for_delay else None
            return turns is None or turns.lets_go(origin, waiter)
        if origin in self._asked and origin not in self._waiters:
            # It was found out and is forgotten already: the middleware finds out by itself.
            self._asked.discard(origin)
            return True
        self._add(origin, waiter)
        return False

    def came(self, waiter: Waiter) -> None:
        """Note that a request came to those of ``waiter``, which may be deferred already."""
        self.idle.came()
        if waiter.since is not None:
            stats.count(self._crawler, stats.DEFERRED)

    def is_due(self, origin: Origin | None) -> bool:
        """Return whether this worker's turn to send a request to ``origin`` has just come."""
        return self._turns is not None and origin is not None and self._turns.is_due(origin)

    # What a queue asks that workers share.

    @property
    def has_room(self) -> bool:
        """Whether another origin would soon be looked up."""
        return self._cache.has_room and not self._to_ask

    def keeps_for(self, origin: Origin, head: Callable[[], Request]) -> float | None:
        """Return for how many seconds requests of ``origin`` are to be kept: 0 if they may leave.

        None where that is to be found out. ``head`` returns the first of them.
        """
        if not self._decider.needs_robotstxt(origin):
            return 0.0
        entry = self._cache.known(origin)
        if entry is None or self._decider.lacks_tdmrep(origin, head):
            return 0.0 if origin in self._asked else None
        self._asked.discard(origin)
        if not (entry.is_unreachable and self._defers):
            return 0.0
        return max(0.0, entry.end - self._clock.time()) + MARGIN

    def has_turn(self, origin: Origin, waiter: Waiter) -> bool:
        """Return whether the request of ``waiter`` waits for no turn; if it does, wake it later."""
        entry = self._cache.known(origin)
        if self._turns is None or entry is None or not entry.asks_for_delay:
            return True
        return self._turns.lets_go(origin, waiter, alone=True)

    def leaves(self, origin: Origin) -> None:
        """Tell that a request of ``origin`` leaves."""
        self._asked.discard(origin)

    def wait_for(self, origin: Origin, waiter: Waiter) -> None:
        """Find out about ``origin``, as soon as there is room; then ``waiter`` is woken."""
        self._add(origin, waiter)
        self.ask()

    def _add(self, origin: Origin, waiter: Waiter) -> None:
        if origin not in self._waiters:
            self._to_ask.append((origin, waiter))
            if waiter.since is None:
                self._news.add(origin)
        self._waiters.add(origin, waiter)

    def defers(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return whether ``request``, whose origin is unreachable, is to wait for the next try.

        One that comes directly waits as long as its download might have taken, and not longer, as
        somebody awaits it.
        """
        return self._defers and self.would_defer(source, request, entry)

    def would_defer(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return what ``defers`` does where this is no dry run."""
        if source is not Source.DIRECT:
            return self._would_defer and self.in_use
        if not self._would_defer or entry is None:
            return False
        seconds = timeout_of(request) or timeout_of_crawl(self._crawler)
        return entry.end - self._clock.time() <= seconds

    async def next_try(self, origin: Origin, entry: Entry, request: Request) -> None:
        """Wait until an unreachable origin may be tried again. Raises CrawlClosingError."""
        if self._cache.closing:
            raise CrawlClosingError
        waiter = Alone(request)
        self._waiters.add(origin, waiter, entry.end - self._clock.time())
        await maybe_deferred_to_future(waiter.turn)

    def find_out(self, origin: Origin, request: Request) -> None:
        """Begin, as soon as there is room, to find out about ``origin``; nobody waits for it."""
        if origin not in self._waiters:
            self.wait_for(origin, Calling(request, lambda: None))

    def look_again(self, origin: Origin) -> None:
        """Let those ask again who wait for the next try of ``origin``."""
        self._waiters.hurry(origin)
        self.when_news(origin)
        nudge(self._crawler)

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
                task = deferred_from_coro(self._find_out(*self._to_ask.popleft()))
                task.addErrback(trap_cancelled)
        finally:
            self._asking = False

    async def _find_out(self, origin: Origin, waiter: Waiter) -> None:
        entry = None
        try:
            entry = await self._decider.look_up(waiter.head())
        except CrawlClosingError:
            return
        except LookupError:
            pass  # none of its requests could be read
        except Exception:
            # The middleware meets the same error, and drops the request for it.
            logger.exception("Error while looking up robots.txt of %s", origin)
        finally:
            if not self._cache.closing:
                self._found(origin, entry)
        self.ask()

    def _found(self, origin: Origin, entry: Entry | None) -> None:
        """Wake those that need not wait for the next try, whether or not ``entry`` is kept."""
        waiters = self._waiters.take(origin)
        self._news.discard(origin)
        if entry is not None:
            waiters = [each for each in waiters if not self._defer(origin, entry, each)]
        if waiters and self.in_use:
            self._asked.add(origin)
        for waiter in waiters:
            waiter.wake()
        nudge(self._crawler)

    def _defer(self, origin: Origin, entry: Entry, waiter: Waiter) -> bool:
        """Return whether ``waiter`` is to wait until ``origin`` is tried again; let it, if so."""
        if not (entry.is_unreachable and self._defers and self.in_use) or self.is_shared:
            self._end(waiter)
            return False
        now = self._clock.monotonic()
        if waiter.since is None:
            waiter.since = now
            self._deferred.add(waiter)
            stats.count(self._crawler, stats.DEFERRED, waiter.size)
            self.idle.begin()
        left = waiter.since + self.defer_timeout - now
        if left <= 0:
            waiter.overdue = True
            self._deferred.discard(waiter)
            return False
        self._waiters.add(origin, waiter, min(left, entry.end - self._clock.time()))
        return True

    def _end(self, waiter: Waiter) -> None:
        """Defer ``waiter`` no longer."""
        if waiter.since is not None:
            self._deferred.discard(waiter)
            waiter.since, waiter.overdue = None, False

    def _only_deferred(self) -> bool:
        """Return whether all that waits is of unreachable origins."""
        return bool(self._deferred or self.elsewhere[0]) and not self._news

    def _waiting_line(self) -> str:
        origins, first = self.elsewhere
        if origins:
            return line_about_others(origins, first - self._clock.monotonic())
        entries = [(origin, self._cache.known(origin)) for origin in self._waiters]
        outages = [(origin, None if entry is None else entry.outage) for origin, entry in entries]
        first = min(each.since for each in self._deferred if each.since is not None)
        left = first + self.defer_timeout - self._clock.monotonic()
        return line_about(outages, self._clock.time(), self.defer_timeout, left)

    def close(self) -> int:
        """Ask and wake no more: who waits stays in the scheduler. Return how many were deferred."""
        deferred = sum(waiter.size for waiter in self._deferred)
        if deferred:
            stats.count(self._crawler, stats.DEFERRED_WAITING, deferred)
        self._deferred.clear()
        if self._turns is not None:
            self._turns.close()
        if self._delays is not None:
            self._delays.close()
        self._to_ask.clear()
        self._waiters.close()
        return deferred
