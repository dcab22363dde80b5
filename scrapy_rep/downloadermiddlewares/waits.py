"""The requests that wait in the middleware: for an answer, for a turn, or before they go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep import stats
from scrapy_rep.utils.concurrency import sleep
from scrapy_rep.utils.scrapy_internals import beside_the_pages

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.decision.decider import Decider, Decision
    from scrapy_rep.scheduler.gate import Gate
    from scrapy_rep.scheduler.turns import Turns

_MAX_WAITING: Final = 16
"""How many requests of a scheduler wait where CONCURRENT_REQUESTS sets no limit."""
_PAUSE: Final = 1.0
_SHORT_PAUSE: Final = 0.05
"""Seconds before a request is given back again."""


class Waits:
    """How long, and how many."""

    def __init__(self, crawler: Crawler, decider: Decider, gate: Gate, turns: Turns | None) -> None:
        self._crawler = crawler
        self._decider = decider
        self._gate = gate
        self._turns = turns
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._most = limit if limit > 0 else _MAX_WAITING
        self._pausing = 0
        self.waiting = 0
        """Requests that wait for an answer."""

    @property
    def is_full(self) -> bool:
        """Whether so many wait for an answer that those of a scheduler go back to it."""
        return self.waiting >= self._most

    async def find_out(self, request: Request, decision: Decision) -> Decision:
        """Return what is decided of ``request`` when it is known, or tried again.

        Raises CrawlClosingError.
        """
        stats.count(self._crawler, stats.WAITED)
        self.waiting += 1
        try:
            with beside_the_pages(self._crawler):
                if decision.verdict and decision.entry and decision.origin:
                    await self._gate.next_try(decision.origin, decision.entry, request)
                return await self._decider.find_out(request, decision)
        finally:
            self.waiting -= 1

    def seconds_before(self, request: Request, decision: Decision) -> float:
        """Return the delay that the fleet keeps before ``request``."""
        return 0.0 if self._turns is None else self._turns.seconds_before(request, decision)

    async def take_turn(self, request: Request, decision: Decision, seconds: float) -> None:
        """Wait until it is this worker's turn. Raises CrawlClosingError."""
        if self._turns is not None and decision.origin is not None:
            await self._turns.take(request, decision.origin, seconds)

    async def pause(self) -> None:
        """Wait before a request is given back that has come back at once.

        The scheduler has nothing better, and the two are not to keep each other busy. Up to half of
        CONCURRENT_REQUESTS wait longer, the others shortly.
        """
        long = 2 * self._pausing < self._most - 1
        self._pausing += long
        try:
            await sleep(_PAUSE if long else _SHORT_PAUSE)
        finally:
            self._pausing -= long
