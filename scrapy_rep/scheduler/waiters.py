"""Who waits at the gate, for which origin and until when."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from twisted.internet.defer import Deferred

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.utils.scrapy_internals import nudge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.utils.clock import Clock, Timer

MARGIN: Final = 0.02
"""Seconds that a timer is set too late, so that it doesn't find its time still to come."""


class Waiter(Protocol):
    """Requests of one origin that are kept in the scheduler."""

    size: int
    """How many they are."""
    since: float | None
    """Since when they are deferred, by the monotonic clock."""
    overdue: bool
    """Whether that has been for REP_DEFER_TIMEOUT, and they are to leave."""

    def head(self) -> Request:
        """Return the request that would leave next."""

    def wake(self) -> None:
        """Ask again whether the origin is open."""


class Calling:
    """A request that calls ``wake``; it may stand for others of its origin in another queue."""

    size = 0
    since: float | None = None
    overdue = False

    def __init__(self, request: Request, wake: Callable[[], None]) -> None:
        self._request = request
        self.wake = wake

    def head(self) -> Request:
        """Return the request."""
        return self._request


class Alone(Calling):
    """A request that waits by itself: ``turn`` is awaited."""

    def __init__(self, request: Request) -> None:
        super().__init__(request, self._let_it_come)
        self.turn: Deferred[None] = Deferred()

    def _let_it_come(self) -> None:
        if not self.turn.called:
            self.turn.callback(None)


class Waiters:
    """Who waits for which origin, and until when."""

    def __init__(self, crawler: Crawler, clock: Clock) -> None:
        self._crawler = crawler
        self._clock = clock
        self._waiting: dict[Origin, list[Waiter]] = {}
        self._due_at: dict[Origin, float] = {}
        """When those that wait for an unreachable origin are woken, by the monotonic clock."""
        self._due: list[tuple[float, Origin]] = []
        """The same as a heap; what is woken sooner stays in it until its time has come."""
        self._timer: Timer | None = None
        self._timer_at = math.inf

    def __contains__(self, origin: Origin) -> bool:
        return origin in self._waiting

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._waiting)

    def add(self, origin: Origin, waiter: Waiter, seconds: float = math.inf) -> None:
        """Let ``waiter`` wait for ``origin``, and wake it in so many seconds."""
        self._waiting.setdefault(origin, []).append(waiter)
        at = self._clock.monotonic() + max(0.0, seconds) + MARGIN
        if at < self._due_at.get(origin, math.inf):
            self._due_at[origin] = at
            heappush(self._due, (at, origin))
            self._set_timer()

    def take(self, origin: Origin) -> list[Waiter]:
        """Return those that waited for ``origin``."""
        self._due_at.pop(origin, None)
        return self._waiting.pop(origin, [])

    def hurry(self, origin: Origin) -> None:
        """Wake those that wait for the next try of ``origin`` now."""
        if origin in self._due_at:
            for waiter in self.take(origin):
                waiter.wake()

    def close(self) -> None:
        """Wake no more; what waits by itself gets CrawlClosingError."""
        self._due.clear()
        self._due_at.clear()
        for waiters in list(self._waiting.values()):
            for waiter in list(waiters):
                if isinstance(waiter, Alone) and not waiter.turn.called:
                    waiter.turn.errback(CrawlClosingError())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = -math.inf  # no other comes before it

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
            at, origin = heappop(self._due)
            if self._due_at.get(origin) == at:
                self.hurry(origin)
        self._set_timer()
        nudge(self._crawler)
