"""Due times of keys, with one timer for all of them."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from scrapy_rep.utils.clock import Clock, Timer

    K = TypeVar("K", bound=Hashable)
else:
    K = TypeVar("K")

_STALE: Final = 16
"""The heap is rebuilt if it has more entries than two for each key, plus this number."""


class DueTimes(Generic[K]):
    """Calls ``on_due`` with a list of keys when their due times have come.

    Times are in seconds of the monotonic clock.
    """

    def __init__(self, clock: Clock, on_due: Callable[[list[K]], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        """Due time, a unique number, and key. An entry whose time differs from that of the key in
        ``_at`` is outdated, and skipped."""
        self._numbers = count()
        self._timer: Timer | None = None
        self._timer_at = math.inf

    def __contains__(self, key: K) -> bool:
        return key in self._at

    def set(self, key: K, at: float) -> None:
        """Set the due time of ``key``, in place of its former one; infinity removes the key."""
        if at == math.inf:
            self._at.pop(key, None)
            return
        if self._at.get(key) == at:
            return
        self._at[key] = at
        if len(self._heap) > 2 * len(self._at) + _STALE:
            self._heap = [each for each in self._heap if self._at.get(each[2]) == each[0]]
            heapify(self._heap)
        heappush(self._heap, (at, next(self._numbers), key))
        self._set_timer()

    def discard(self, key: K) -> None:
        """Remove ``key``."""
        self._at.pop(key, None)

    def close(self) -> None:
        """Remove all keys, and stop the timer."""
        self._at.clear()
        self._heap.clear()
        self._stop()

    def _set_timer(self) -> None:
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        if not self._heap or self._heap[0][0] >= self._timer_at:
            return
        self._stop()
        self._timer_at = self._heap[0][0]
        seconds = max(0.0, self._timer_at - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._timer_fired)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, math.inf

    def _timer_fired(self) -> None:
        # Event loops may fire a timer slightly early: the time for which it was set counts.
        now = max(self._clock.monotonic(), self._timer_at)
        self._timer, self._timer_at = None, math.inf
        due = []
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                due.append(key)
        self._set_timer()
        if due:
            self._on_due(due)
