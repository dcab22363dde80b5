"""The limit of concurrent fetches of robots.txt (REP_CONCURRENT_FETCHES).

A fetch that takes longer than a second is slow and no longer counts, so that sites that hang do not
block other sites. The number of slow fetches is limited nevertheless: at most
REP_CONCURRENT_FETCHES fetches become slow in a second, and each of them ends after REP_TIMEOUT.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import Promise

_SLOW: Final = 1.0
"""Seconds after which a fetch is slow."""


class FetchLimit:
    """A semaphore with ``permits`` permits. The fetch that has waited longest gets a free one."""

    def __init__(self, permits: int) -> None:
        self.permits = permits
        self.slow = 0
        """Number of slow fetches. They have released their permits."""
        self.on_free_lookup: Callable[[], None] | None = None
        """Called when a fetch becomes slow, or a lookup begins to wait for another worker."""
        self._free = permits
        self._waiting: deque[Promise[None]] = deque()

    async def acquire(self) -> None:
        """Wait until there is a free permit, and take it."""
        if self._free:
            self._free -= 1
            return
        permit: Promise[None] = Promise()
        self._waiting.append(permit)
        try:
            await permit
        except BaseException:
            # If the coroutine was cancelled after it had got a permit, the permit is passed on.
            if permit.has_result:
                self.release()
            raise

    def release(self) -> None:
        """Pass a permit to the next fetch that waits; if none waits, the permit is free."""
        while self._waiting:
            permit = self._waiting.popleft()
            permit.set_result(None)
            if permit.has_result:
                return
        self._free += 1


class Permit:
    """The permit of one fetch in a ``FetchLimit``. It is released after a second at the latest."""

    def __init__(self, limit: FetchLimit, clock: Clock) -> None:
        self._limit = limit
        self._slow = False
        self._timer = clock.call_later(_SLOW, self._release_as_slow)

    def _release_as_slow(self) -> None:
        self._slow = True
        self._limit.slow += 1
        self._limit.release()
        if self._limit.on_free_lookup is not None:
            self._limit.on_free_lookup()

    def release(self) -> None:
        """Release the permit, if the fetch still has it. Called when the fetch has ended."""
        self._timer.cancel()
        if self._slow:
            self._limit.slow -= 1
        else:
            self._limit.release()
