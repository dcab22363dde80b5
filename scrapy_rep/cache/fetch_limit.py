"""How many robots.txt fetches a crawl may have going (REP_CONCURRENT_FETCHES)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from scrapy_rep.utils.concurrency import Promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_rep.utils.clock import Clock

_SLOW: Final = 1.0
"""Seconds after which a fetch lets another one begin: sites that hang hold up no others.

So not more than REP_CONCURRENT_FETCHES begin in a second, and the deadline of a fetch bounds how
many go on."""


class FetchLimit:
    """A number of places, given to whoever asks in the order of asking."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.slow = 0
        """How many have given up their place and go on."""
        self.when_slow: Callable[[], None] | None = None
        self._free = places
        self._waiting: deque[Promise[None]] = deque()

    async def acquire(self) -> None:
        """Take a place, when there is one."""
        if self._free:
            self._free -= 1
            return
        turn: Promise[None] = Promise()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            # Cancelled in the moment in which the place was given.
            if turn.is_kept:
                self.release()
            raise

    def release(self) -> None:
        """Give a place to who is next."""
        while self._waiting:
            turn = self._waiting.popleft()
            turn.set_result(None)
            if turn.is_kept:
                return
        self._free += 1


class Permit:
    """The place of a fetch, which it gives up when it takes long."""

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
        """Leave it, as the fetch has ended."""
        self._timer.cancel()
        if self._slow:
            self._limit.slow -= 1
        else:
            self._limit.release()
