"""What waits in a downloader middleware: for the end of a hold, or for one of a number of places.

What waits for a hold doesn't count for CONCURRENT_REQUESTS, up to a limit for other schedulers. The
wire lets it pass when a place is free.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from scrapy.crawler import Crawler

from scrapy_rep.admission.hold import Hold
from scrapy_rep.admission.ticket import Source
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.concurrency import Clock, Promise, Timer
from scrapy_rep.utils.scrapy_internals import raised_concurrency, wake_engine

K = TypeVar("K", bound=Hashable)

_MOST_UNCOUNTED: Final = 1_000
"""Number of requests of another scheduler that wait here beside CONCURRENT_REQUESTS."""
_CLOSING_TIME: Final = 120.0
"""Seconds in which the hold of a direct request must end if the crawl closes. Scrapy waits."""


class Waits:
    """Lets requests wait until a hold may have changed, or the crawl closes."""

    def __init__(self, crawler: Crawler, clock: Clock) -> None:
        self._crawler = crawler
        self._clock = clock
        self._by_origin: dict[Origin, dict[Promise[None], float]] = {}
        """What waits, and until when; infinity if only until the crawl closes."""
        self._latest = math.inf
        """Once the crawl closes, the end of the last wait that goes on."""
        self.uncounted: int = 0
        """How many requests of another scheduler wait, and don't count for CONCURRENT_REQUESTS."""

    async def wait(self, origin: Origin, hold: Hold, source: Source) -> None:
        """Wait until ``hold`` may have changed.

        Raises CrawlClosingError if the crawl closes, but for a direct request only if the wait ends
        after _CLOSING_TIME. An infinite hold, for a probe, counts as short.
        """
        ends = 0.0 if hold.until == math.inf else hold.until
        ends = ends if source is Source.DIRECT else math.inf
        if ends > self._latest:
            raise CrawlClosingError
        waiter: Promise[None] = Promise()
        waiters = self._by_origin.setdefault(origin, {})
        waiters[waiter] = ends
        timer: Timer | None = None
        if hold.until < math.inf:
            seconds = max(0.0, hold.until - self._clock.monotonic())
            timer = self._clock.call_later(seconds, waiter.set_result, None)
        try:
            with self.not_counted(source):
                await waiter
        finally:
            if timer is not None:
                timer.cancel()
            del waiters[waiter]
            if not waiters:
                del self._by_origin[origin]

    @contextmanager
    def not_counted(self, source: Source) -> Iterator[None]:
        """Let another request be in progress in the ``with`` block.

        Another scheduler would send all its requests here: above _MOST_UNCOUNTED, they count.
        """
        is_scheduled = source is Source.SCHEDULER
        if is_scheduled and self.uncounted >= _MOST_UNCOUNTED:
            yield
            return
        self.uncounted += is_scheduled
        try:
            with raised_concurrency(self._crawler):
                wake_engine(self._crawler)  # which may have seen the limit before it was raised
                yield
        finally:
            self.uncounted -= is_scheduled

    def hold_changed(self, origin: Origin) -> None:
        for waiter in self._by_origin.get(origin, ()):
            waiter.set_result(None)

    def close(self) -> None:
        """End all waits, but those of direct requests that end in _CLOSING_TIME."""
        self._latest = min(self._latest, self._clock.monotonic() + _CLOSING_TIME)
        for waiters in self._by_origin.values():
            for waiter, ends in waiters.items():
                if ends > self._latest:
                    waiter.set_exception(CrawlClosingError())


class Places(Generic[K]):
    """``most`` places, and ``most_of(key)`` of them for each key."""

    def __init__(self, most_of: Callable[[K], float], most: float = math.inf) -> None:
        self._most_of = most_of
        self._most = most
        self._all = 0
        self._taken: dict[K, int] = {}
        self._lines: dict[K, deque[Promise[None]]] = {}

    def take(self, key: K) -> bool:
        """Take a place, and return True, if one is free."""
        if self._all >= self._most:
            return False
        taken = self._taken.get(key, 0)
        if taken and taken >= self._most_of(key):
            return False
        self._all += 1
        self._taken[key] = taken + 1
        return True

    async def wait(self, key: K) -> None:
        """Return with a place, at once or when it is this caller's turn."""
        if self.take(key):
            return
        place: Promise[None] = Promise()
        self._lines.setdefault(key, deque()).append(place)
        try:
            await place
        except BaseException:
            if place.is_set:  # cancelled just when it got the place
                self.leave(key)
            raise

    def leave(self, key: K) -> None:
        """Free a place, or pass it on to the first in a line; the lines take turns."""
        self._all -= 1
        if taken := self._taken.pop(key) - 1:
            self._taken[key] = taken
        for other in [*self._lines] if self._lines else ():  # most often none
            line = self._lines.pop(other)
            while line and line[0].is_done:  # cancelled
                line.popleft()
            is_passed_on = bool(line) and self.take(other)
            if is_passed_on:
                line.popleft().set_result(None)
            if line:
                self._lines[other] = line
            if is_passed_on:
                return
