"""Requests that wait in the middleware: for a lookup, for a turn, or before they are given back.

A turn is a time reserved for one request to a site with a delay. All requests of one origin and
download slot that wait for turns are in a queue, and only the first of them tries to use a turn. If
thousands of requests tried it each time, they would be sent late.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Final

from scrapy_rep import stats
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.scheduler.due import DueTimes
from scrapy_rep.utils.concurrency import Promise, sleep
from scrapy_rep.utils.download_slots import slot_name
from scrapy_rep.utils.scrapy_internals import raised_concurrency

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.decision.decider import Decider, Decision
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.gate import Gate
    from scrapy_rep.scheduler.turns import Turns
    from scrapy_rep.utils.clock import Clock

_MAX_WAITING: Final = 16
"""Maximum number of requests that wait for lookups if CONCURRENT_REQUESTS sets no limit."""
_PAUSE: Final = 1.0
"""Seconds before a request is given back again that the scheduler has returned at once."""
_SHORT_PAUSE: Final = 0.05
"""Seconds used in place of ``_PAUSE`` if half of CONCURRENT_REQUESTS wait for that already."""


class WaitingRequests:
    """Lets requests wait in the middleware, and limits how many of them wait for lookups."""

    def __init__(
        self,
        crawler: Crawler,
        decider: Decider,
        gate: Gate,
        turns: Turns | None,
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._decider = decider
        self._gate = gate
        self._turns = turns
        self._clock = clock
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._most = limit if limit > 0 else _MAX_WAITING
        self._pausing = 0
        self._due: DueTimes[Promise[None]] = DueTimes(clock, self._wake)
        self._waiters: dict[Promise[None], Origin] = {}
        self._turn_queues: dict[tuple[Origin, str], deque[Promise[None]]] = {}
        """Requests that wait in a queue for a turn, by origin and download slot. The first request
        of a queue, which tries to use the turn, is not included."""
        self._closing = False
        self.waiting: int = 0
        """Number of requests that wait for lookups."""
        gate.listen_for_hold_change(self._hold_changed)

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of requests waits; further ones go back to their scheduler."""
        return self.waiting >= self._most

    async def wait_for_decision(self, request: Request, decision: Decision) -> Decision:
        """Wait for the lookup of robots.txt, or its next try; return the decision on ``request``.

        Raises CrawlClosingError if the crawl closes before the decision is known.
        """
        stats.count(self._crawler, stats.WAITED)
        self.waiting += 1
        try:
            with raised_concurrency(self._crawler):
                if decision.verdict and decision.entry and decision.origin:
                    until = self._gate.next_try(decision.entry)
                    await self._wait(decision.origin, until)
                return await self._decider.decision(request, decision)
        finally:
            self.waiting -= 1

    def delay_before(self, request: Request, decision: Decision) -> float:
        """Return the delay before ``request`` in seconds; 0 if it needs no turn."""
        return 0.0 if self._turns is None else self._turns.delay_before(request, decision)

    async def wait_for_turn(
        self, request: Request, decision: Decision, *, direct: bool
    ) -> Decision:
        """Wait until ``request`` may be sent, and use a turn for it; return the newest decision.

        robots.txt may expire while the request waits, and may have changed. If ``direct``, the
        request doesn't come from a scheduler, and must not count for CONCURRENT_REQUESTS while it
        waits. Raises CrawlClosingError if the crawl closes before the turn.
        """
        origin = decision.origin
        if self._turns is None or origin is None:
            return decision
        name = origin, slot_name(self._crawler, request)
        with raised_concurrency(self._crawler) if direct else nullcontext():
            await self._join_turn_queue(name)
            try:
                while True:
                    if self._closing:
                        raise CrawlClosingError
                    decision = self._decider.known_decision(request) or decision
                    if decision.verdict is None:
                        decision = await self._decider.decision(request, decision)
                    seconds = self.delay_before(request, decision)
                    hold = self._turns.use(request, origin, seconds) if seconds else None
                    if hold is None:
                        return decision
                    await self._wait(origin, hold.until)
            finally:
                self._leave_turn_queue(name)

    async def pause_before_return(self) -> None:
        """Wait before a request that the scheduler has returned at once is given back again.

        Without the pause, the request would go back and forth all the time. Requests wait for
        _PAUSE, or for _SHORT_PAUSE if half of CONCURRENT_REQUESTS wait for _PAUSE already.
        """
        long = 2 * self._pausing < self._most - 1
        self._pausing += long
        try:
            await sleep(_PAUSE if long else _SHORT_PAUSE)
        finally:
            self._pausing -= long

    def close(self) -> None:
        """End all waits with CrawlClosingError."""
        self._closing = True
        self._due.close()
        for waiter in [*self._waiters, *chain.from_iterable(self._turn_queues.values())]:
            waiter.set_exception(CrawlClosingError())

    async def _join_turn_queue(self, name: tuple[Origin, str]) -> None:
        """Join the queue ``name``, and wait until this request is its first."""
        if self._closing:
            raise CrawlClosingError
        queue = self._turn_queues.get(name)
        if queue is None:
            self._turn_queues[name] = deque()
            return
        waiter: Promise[None] = Promise()
        queue.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.has_result:  # cancelled just when it became the first
                self._leave_turn_queue(name)
            raise

    def _leave_turn_queue(self, name: tuple[Origin, str]) -> None:
        queue = self._turn_queues[name]
        while queue:
            waiter = queue.popleft()
            if not waiter.is_done:
                waiter.set_result(None)
                return
        del self._turn_queues[name]

    async def _wait(self, origin: Origin, until: float) -> None:
        """Wait until ``until``, by the monotonic clock, or until the hold of ``origin`` changes."""
        if self._closing:
            raise CrawlClosingError
        waiter: Promise[None] = Promise()
        self._waiters[waiter] = origin
        self._due.set(waiter, until)
        try:
            await waiter
        finally:
            del self._waiters[waiter]
            self._due.discard(waiter)

    def _hold_changed(self, origin: Origin) -> None:
        self._wake([waiter for waiter, waits_for in self._waiters.items() if waits_for == origin])

    @staticmethod
    def _wake(waiters: list[Promise[None]]) -> None:
        for waiter in waiters:
            waiter.set_result(None)
