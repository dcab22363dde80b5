"""The limit of concurrent lookups, and with them of fetches of robots.txt (REP_CONCURRENT_FETCHES).

A lookup that takes longer than a second is slow and no longer counts, so that sites that hang do
not block other sites. A lookup that waits for another worker doesn't count either. Each lookup may
have a connection open, so lookups use at most half of the files that the process may open.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import Promise

if sys.platform != "win32":
    import resource

_SLOW: Final = 1.0


class Permit:
    """The permit of one lookup. It is passed on after a second, unless too many are slow.

    It must be released when the lookup ends, also if it was passed on.
    """

    __slots__ = ("_limit", "due", "is_held", "is_slow")

    def __init__(self, limit: LookupLimit, due: float) -> None:
        self._limit = limit
        self.due: float = due
        """When the lookup becomes slow, in seconds of the monotonic clock."""
        self.is_held: bool = True
        self.is_slow: bool = False

    def release(self) -> None:
        """Release the permit, as its lookup has ended or waits. Later calls have no effect."""
        if self.is_slow:
            self.is_slow = False
            self._limit.slow -= 1
        elif self.is_held:
            self.is_held = False
            self._limit.pass_on()


class LookupLimit:
    """A semaphore with ``permits`` permits, in the order of calls; slow lookups pass theirs on."""

    def __init__(self, permits: int, clock: Clock) -> None:
        self._free = permits
        self._clock = clock
        self._max_slow = max(0.0, _max_open_files() / 2 - permits)
        self._waiting: deque[Promise[None]] = deque()
        self._held: deque[Permit] = deque()
        """Permits in the order in which their lookups become slow, also released ones."""
        self._has_timer = False
        self.slow: int = 0
        """Number of slow lookups. They have passed on their permits."""
        self.on_room: Callable[[], None] = lambda: None
        """Called when ``has_room`` may have become true."""

    @property
    def has_room(self) -> bool:
        """Whether a permit is free, so that a lookup that is started now waits for no other."""
        return self._free > 0

    def take(self) -> Permit | None:
        if not self._free:
            return None
        self._free -= 1
        return self._make_permit()

    async def acquire(self) -> Permit:
        permit = self.take()
        if permit is not None:
            return permit
        turn: Promise[None] = Promise()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            # If the coroutine was cancelled after it had got a permit, the permit is passed on.
            if turn.has_result:
                self.pass_on()
            raise
        return self._make_permit()

    def pass_on(self) -> None:
        """Pass a permit to the next lookup that waits; if none waits, free it, and call on_room."""
        while self._waiting:
            turn = self._waiting.popleft()
            turn.set_result(None)
            if turn.has_result:
                return
        self._free += 1
        self.on_room()

    def _make_permit(self) -> Permit:
        permit = Permit(self, self._clock.monotonic() + _SLOW)
        self._held.append(permit)
        if not self._has_timer:
            self._has_timer = True
            self._clock.call_later(_SLOW, self._pass_on_slow)
        return permit

    def _pass_on_slow(self) -> None:
        """Pass on the permits of slow lookups, at most ``_max_slow``. One timer is set for all."""
        # Event loops may fire a timer slightly early.
        now = max(self._clock.monotonic(), self._held[0].due)
        while self._held and (self._held[0].due <= now or not self._held[0].is_held):
            if self._held[0].is_held and self.slow >= self._max_slow:
                break
            permit = self._held.popleft()
            if permit.is_held:
                permit.is_held, permit.is_slow = False, True
                self.slow += 1
                self.pass_on()
        self._has_timer = bool(self._held)
        if self._has_timer:
            left = self._held[0].due - now
            self._clock.call_later(left if left > 0 else _SLOW, self._pass_on_slow)


def _max_open_files() -> float:
    """Return how many files this process may open; infinity without a limit."""
    if sys.platform == "win32":
        return 1_024
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft
