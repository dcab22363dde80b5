"""Requests that wait in the middleware: for a lookup, or for what else the admission says.

Requests of one origin and download slot that wait for the admission stand in a line, and only the
first of them asks. If thousands of requests asked each time, they would be sent late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.reason import Hold
from scrapy_rep.admission.waiting import Waiting
from scrapy_rep.decision.decider import Decider, Decision
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import Promise, sleep
from scrapy_rep.utils.download_settings import concurrent_requests
from scrapy_rep.utils.download_slots import slot_name
from scrapy_rep.utils.scrapy_internals import raised_concurrency, wake_engine

_PAUSE: Final = 1.0
"""Seconds before a request is given back again that the scheduler has returned at once."""
_SHORT_PAUSE: Final = 0.05
"""Seconds used in place of ``_PAUSE`` if half of CONCURRENT_REQUESTS wait for that already."""


class WaitingRequests:
    """Lets requests wait in the middleware and at the wire; counts those in the middleware.

    While a request waits, it doesn't count for CONCURRENT_REQUESTS. After ``close``, all waits end
    at once with CrawlClosingError.
    """

    def __init__(
        self, crawler: Crawler, decider: Decider, admission: Admission, clock: Clock
    ) -> None:
        self._crawler = crawler
        self._decider = decider
        self._admission = admission
        self._most = concurrent_requests(crawler.settings)
        self._pausing = 0
        self._waiting: Waiting[Promise[None]] = Waiting(clock, self._wake)
        self._lines: dict[tuple[Origin, str], deque[Promise[None]]] = {}
        """Requests that stand in a line, by origin and download slot. The first request of a line,
        which asks the admission, is not included."""
        self._closing = False
        self.waiting: int = 0
        admission.listen_for_hold_change(self._waiting.hold_changed)

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of requests waits; further ones go back to their scheduler."""
        return self.waiting >= self._most

    async def wait_for_decision(
        self, request: Request, decision: Decision, *, on_wire: bool
    ) -> Decision:
        """Wait for the lookup of robots.txt; return the decision on ``request``.

        With a verdict in ``decision``, which is that of an unreachable robots.txt, wait for the
        next try first. If the host has a pause, the lookup begins after it, as for requests in the
        queue. Not so if ``request`` is ``on_wire``: there it would wait for long, and is given back
        instead. Raises CrawlClosingError if the crawl closes before the decision is known.
        """
        stats.count(self._crawler, stats.WAITED)
        with self._counted(1):
            if decision.verdict and decision.entry and decision.origin:
                deferral = self._admission.deferral
                until = deferral.next_try(decision.entry)
                await self._wait(decision.origin, Hold(deferral, until))
            if (origin := decision.origin) is not None and not on_wire:
                while (hold := self._admission.pause_of(origin, request)) is not None:
                    await self._wait(origin, hold)
            return await self._decider.decision(request, decision)

    def admit(self, request: Request, decision: Decision) -> bool:
        """Return whether an allowed request may leave now, and none waits before it.

        If so, it must leave. ``decision`` is that which allows it.
        """
        origin = decision.origin
        if origin is None or decision.entry is None:
            return True
        if (origin, slot_name(self._crawler, request)) in self._lines:
            return False
        return self._admission.admit(origin, lambda: request, decision.entry) is None

    async def wait_for_admission(
        self, request: Request, decision: Decision, *, direct: bool
    ) -> Decision:
        """Wait until ``request`` may leave; return the newest decision on it.

        robots.txt may expire meanwhile, and disallow it then. A ``direct`` request, which can't be
        given back, isn't counted. Raises CrawlClosingError if the crawl closes before.
        """
        origin = decision.origin
        if origin is None:
            return decision
        line = origin, slot_name(self._crawler, request)
        with self._counted(0 if direct else 1):
            await self._join(line)
            try:
                while True:
                    decision = self._decider.known_decision(request) or decision
                    if decision.verdict is None:
                        decision = await self._decider.decision(request, decision)
                    if decision.verdict is None or not decision.verdict.allowed:
                        return decision
                    hold = self._admission.admit(origin, lambda: request, decision.entry)
                    if hold is None:
                        return decision
                    await self._wait(origin, hold)
            finally:
                self._leave(line)

    async def wait_at_wire(self, origin: Origin, hold: Hold) -> None:
        """Wait until ``hold`` may have changed; raise CrawlClosingError if the crawl closes."""
        with self._counted(0):
            await self._wait(origin, hold)

    async def pause_before_return(self) -> None:
        """Wait for _PAUSE, else _SHORT_PAUSE, so that requests don't go to and fro all the time."""
        long = 2 * self._pausing < self._most - 1
        self._pausing += long
        try:
            await sleep(_PAUSE if long else _SHORT_PAUSE)
        finally:
            self._pausing -= long

    def close(self) -> None:
        """End all waits with CrawlClosingError."""
        self._closing = True
        for waiter in [*self._waiting.close(), *chain.from_iterable(self._lines.values())]:
            waiter.set_exception(CrawlClosingError())

    @contextmanager
    def _counted(self, requests: int) -> Iterator[None]:
        """Count ``requests`` as waiting in the ``with`` block, and let one more be in progress."""
        self.waiting += requests
        try:
            with raised_concurrency(self._crawler):
                wake_engine(self._crawler)  # which may have seen the limit before it was raised
                yield
        finally:
            self.waiting -= requests

    async def _join(self, name: tuple[Origin, str]) -> None:
        """Wait until the request is first in its line; then call ``_leave``, not after an error."""
        if self._closing:
            raise CrawlClosingError
        line = self._lines.get(name)
        if line is None:
            self._lines[name] = deque()
            return
        waiter: Promise[None] = Promise()
        line.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.has_result:  # cancelled just when it became the first
                self._leave(name)
            raise

    def _leave(self, name: tuple[Origin, str]) -> None:
        """Leave the line ``name``, and wake the next request in it."""
        line = self._lines[name]
        while line:
            waiter = line.popleft()
            if not waiter.is_done:
                waiter.set_result(None)
                return
        del self._lines[name]

    async def _wait(self, origin: Origin, hold: Hold) -> None:
        """Wait until ``hold`` may have changed, at its time or before. Raises CrawlClosingError."""
        if self._closing:
            raise CrawlClosingError
        waiter: Promise[None] = Promise()
        self._waiting.add(waiter, origin, hold)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    @staticmethod
    def _wake(waiters: list[Promise[None]]) -> None:
        for waiter in waiters:
            waiter.set_result(None)
