"""The limit of concurrent fetches of robots.txt (REP_CONCURRENT_FETCHES).

A fetch that takes longer than a second no longer counts, so sites that hang do not block others. At
most REP_CONCURRENT_FETCHES fetches start per second, and REP_TIMEOUT bounds how many are slow.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from scrapy_rep.utils.concurrency import Promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_rep.utils.clock import Clock

_SLOW: Final = 1.0
"""Seconds after which a fetch is slow."""


class FetchLimit:
    """A semaphore: first come, first served."""

    def __init__(self, permits: int) -> None:
        self.permits = permits
        self.slow = 0
        """Number of slow fetches, which take no place."""
        self.when_slow: Callable[[], None] | None = None
        self._free = permits
        self._waiting: deque[Promise[None]] = deque()

    async def acquire(self) -> None:
        """Wait for a place, and take it."""
        if self._free:
            self._free -= 1
            return
        place: Promise[None] = Promise()
        self._waiting.append(place)
        try:
            await place
        except BaseException:
            # Cancelled after the place was assigned.
            if place.has_result:
                self.release()
            raise

    def release(self) -> None:
        """Free a place, for the next one that waits."""
        while self._waiting:
            place = self._waiting.popleft()
            place.set_result(None)
            if place.has_result:
                return
        self._free += 1


class Permit:
    """The place of one fetch. It is released early if the fetch is slow."""

    def __init__(self, limit: FetchLimit, clock: Clock) -> None:
        self._limit = limit
        self._slow = False
        self._timer = clock.call_later(_SLOW, self._give_up)

    def _give_up(self) -> None:
        self._slow = True
        self._limit.slow += 1
        self._limit.release()
        if self._limit.when_slow is not None:
            self._limit.when_slow()

    def release(self) -> None:
        """Release the place: the fetch has ended."""
        self._timer.cancel()
        if self._slow:
            self._limit.slow -= 1
        else:
            self._limit.release()
