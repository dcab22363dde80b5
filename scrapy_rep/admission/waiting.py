"""What waits, for which origin, and until when; with one timer for all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from scrapy_rep.admission.reason import Hold
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)

_STALE: Final = 16
"""The heap is rebuilt if it has more entries than two for each key, plus this number."""


class Waiting(Generic[K]):
    """Keys that wait until a time, or until the hold of their origin changes.

    A key is the promise of a request in the middleware. When waits end, their keys are removed, and
    ``on_ready`` is called with the list of them.
    """

    def __init__(self, clock: Clock, on_ready: Callable[[list[K]], None]) -> None:
        self._clock = clock
        self._on_ready = on_ready
        self._holds: dict[K, tuple[Origin | None, Hold]] = {}
        self._by_origin: dict[Origin | None, dict[K, None]] = {}
        self._heap: list[tuple[float, int, K]] = []
        """Due time, a unique number, and key. An entry whose time differs from that of the hold of
        its key is outdated, and skipped."""
        self._numbers = count()
        self._timer: Timer | None = None
        self._timer_at = math.inf

    def __contains__(self, key: K) -> bool:
        return key in self._holds

    def __iter__(self) -> Iterator[tuple[K, Origin | None, Hold]]:
        for key, (origin, hold) in self._holds.items():
            yield key, origin, hold

    def keys_of(self, origin: Origin) -> list[K]:
        """Return the keys that wait for ``origin``, the first to wait first."""
        return list(self._by_origin.get(origin, ()))

    def add(self, key: K, origin: Origin | None, hold: Hold) -> None:
        """Let ``key`` wait, in place of its former hold."""
        self.discard(key)
        self._holds[key] = origin, hold
        self._by_origin.setdefault(origin, {})[key] = None
        if hold.until == math.inf:
            return
        if len(self._heap) > 2 * len(self._holds) + _STALE:
            self._heap = [each for each in self._heap if self._is_current(each)]
            heapify(self._heap)
        heappush(self._heap, (hold.until, next(self._numbers), key))
        self._set_timer()

    def discard(self, key: K) -> None:
        if key not in self._holds:
            return
        origin, _ = self._holds.pop(key)
        keys = self._by_origin[origin]
        del keys[key]
        if not keys:
            del self._by_origin[origin]

    def hold_changed(self, origin: Origin) -> None:
        """End the wait of all keys of ``origin``, and pass them to ``on_ready``, if any."""
        keys = self.keys_of(origin)
        for key in keys:
            self.discard(key)
        if keys:
            self._on_ready(keys)

    def close(self) -> list[K]:
        """Stop the timer and remove all keys; return them."""
        keys = list(self._holds)
        self._holds.clear()
        self._by_origin.clear()
        self._heap.clear()
        self._stop()
        return keys

    def _is_current(self, entry: tuple[float, int, K]) -> bool:
        at, _, key = entry
        found = self._holds.get(key)
        return found is not None and found[1].until == at

    def _set_timer(self) -> None:
        while self._heap and not self._is_current(self._heap[0]):
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
            entry = heappop(self._heap)
            if self._is_current(entry):
                due.append(entry[2])
                self.discard(entry[2])
        self._set_timer()
        if due:
            self._on_ready(due)
