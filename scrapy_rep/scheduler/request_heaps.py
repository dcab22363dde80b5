"""The requests of a crawl without JOBDIR: in memory, a heap for each lane."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter
from typing import Any, Final, NamedTuple

from scrapy import Request

from scrapy_rep.protocol.origin import Origin

_BLOCK: Final = 1_000

_ReadyRank = tuple[Any, ...]
"""Of a ready lane: slot, priority, whether a start request is next, when it was served, lane."""
Rank = tuple[int, bool, int]
"""Of a request: negated priority, whether it is a start request, and 1 for first in, first out, or
-1 for last in, first out. The least comes first."""


class Lane(NamedTuple):
    """The queue of one origin in one download slot; its name."""

    slot: str
    origin: Origin | None
    """None for requests that no robots.txt governs."""
    number: int = 0
    """The number of its row in a table."""


class _Heap:
    """The requests of a lane."""

    __slots__ = ("lane", "rank", "requests", "served", "until")

    def __init__(self, lane: Lane, served: int) -> None:
        self.lane = lane
        self.requests: list[tuple[int, bool, int, Request]] = []
        self.served = served
        self.rank: _ReadyRank | None = None
        """None if it is not ready."""
        self.until: float | None = None


class RequestHeaps:
    """The requests of a queue, by lanes. A lane is ready until it is set waiting, or unknown.

    Of the ready lanes of a slot, that with the least rank is next; of several, the one whose last
    request was popped longer ago. ``RequestTable`` has all methods that a priority queue calls.
    """

    def __init__(self) -> None:
        self.size = 0
        self._numbers = count()
        self._heaps: dict[Lane, _Heap] = {}
        self._by_origin: dict[Origin, list[_Heap]] = {}
        self._ready = _SortedLanes()
        self._due: list[tuple[float, int, _Heap]] = []
        """A heap. An entry is outdated if its lane waits until another time, or is ready."""
        self.unknown: OrderedDict[Lane, None] = OrderedDict()
        """The lanes that wait for a lookup that has not begun."""

    @property
    def lanes(self) -> int:
        return len(self._heaps)

    def push(self, slot: str, origin: Origin | None, rank: Rank, request: Request) -> None:
        """Add ``request``; ``RequestTable`` raises ValueError if it can't be written."""
        lane = Lane(slot, origin)
        heap = self._heaps.get(lane)
        if heap is None:
            heap = self._heaps[lane] = _Heap(lane, next(self._numbers))
            if origin is not None:
                self._by_origin.setdefault(origin, []).append(heap)
        priority, start, order = rank
        heappush(heap.requests, (priority, start, next(self._numbers) * order, request))
        self.size += 1
        if heap.until is None and (heap.rank is None or (priority, start) < heap.rank[1:3]):
            self._set_ready(heap)

    def pop(self, lane: Lane) -> Request | None:
        """Remove the next request of a ready lane; return None if none can be read."""
        heap = self._heaps[lane]
        request = heappop(heap.requests)[3]
        self.size -= 1
        if heap.requests:
            heap.served = next(self._numbers)
            self._set_ready(heap)
        else:
            self._remove(heap)
        return request

    def first(self, lane: Lane) -> Request | None:
        """Return, not remove, the next request of ``lane``; None if none can be read."""
        heap = self._heaps.get(lane)
        return None if heap is None else heap.requests[0][3]

    def requests_of(self, lane: Lane) -> list[Request]:
        """Return, not remove, the requests of ``lane``, the next one first."""
        return [request for *_, request in sorted(self._heaps[lane].requests)]

    def all_requests(self) -> list[Request]:
        return [request for lane in self._heaps for request in self.requests_of(lane)]

    def _remove(self, heap: _Heap) -> None:
        lane = heap.lane
        self._set_unready(heap)
        heap.until = None
        del self._heaps[lane]
        self.unknown.pop(lane, None)
        if lane.origin is not None:
            heaps = self._by_origin[lane.origin]
            heaps.remove(heap)
            if not heaps:
                del self._by_origin[lane.origin]

    # The next lane.

    def _set_ready(self, heap: _Heap) -> None:
        self._set_unready(heap)
        heap.until = None
        heap.rank = (heap.lane.slot, *heap.requests[0][:2], heap.served, heap.lane)
        self._ready.add(heap.rank)

    def _set_unready(self, heap: _Heap) -> None:
        if heap.rank is not None:
            self._ready.remove(heap.rank)
            heap.rank = None

    def idle_lane(self, last: str, busy: Collection[str]) -> Lane | None:
        """Return the next ready lane of a slot that is not ``busy``.

        The first slot by name after ``last`` is next; after the last name comes the first.
        """
        for first in (f"{last}\0", ""):  # the next name may begin with the last one
            lane = self._ready.first_from(first)
            while lane is not None and lane.slot in busy:
                lane = self._ready.first_from(f"{lane.slot}\0")
            if lane is not None:
                return lane
        return None

    def busy_lane(self, slots: Sequence[str]) -> Lane | None:
        """Return the next ready lane of the first of ``slots`` that has one."""
        for slot in slots:
            if (lane := self._ready.first_from(slot)) is not None and lane.slot == slot:
                return lane
        return None

    def lanes_of(self, origin: Origin) -> Sequence[Lane]:
        return [heap.lane for heap in self._by_origin.get(origin, ())]

    def size_of(self, lane: Lane) -> int:
        heap = self._heaps.get(lane)
        return 0 if heap is None else len(heap.requests)

    # Waiting.

    def set_waiting(self, lane: Lane, until: float) -> None:
        """Let ``lane`` wait until a time of the monotonic clock, which may be infinity."""
        heap = self._heaps[lane]
        self._set_unready(heap)
        heap.until = until
        if until < math.inf:
            heappush(self._due, (until, next(self._numbers), heap))

    def set_unknown(self, lane: Lane) -> None:
        """Let ``lane`` wait for the lookup of its origin, and ``next_unknown`` return that."""
        self.set_waiting(lane, math.inf)
        self.unknown[lane] = None

    def next_unknown(self) -> Lane | None:
        """Return the lane that was set unknown first, each time another."""
        return self.unknown.popitem(last=False)[0] if self.unknown else None

    def wake(self, origin: Origin) -> bool:
        """Make the lanes of ``origin`` ready; return whether any has waited."""
        waiting = [each for each in self._by_origin.get(origin, ()) if each.until is not None]
        for heap in waiting:
            self.unknown.pop(heap.lane, None)
            self._set_ready(heap)
        return bool(waiting)

    def wake_due(self, now: float) -> float:
        """Make the lanes ready whose wait ends by ``now``; return when the next wait ends."""
        while self._due:
            until, _, heap = self._due[0]
            if heap.until == until:
                if until > now:
                    return until
                self._set_ready(heap)
            heappop(self._due)
        return math.inf

    def waiting(self) -> Iterator[tuple[Lane, int]]:
        """Yield each lane that waits, and its number of requests."""
        for lane, heap in self._heaps.items():
            if heap.until is not None:
                yield lane, len(heap.requests)

    def remove_lane(self, lane: Lane) -> None:
        """Remove ``lane``, whose requests were moved to Redis."""
        heap = self._heaps[lane]
        self.size -= len(heap.requests)
        self._remove(heap)

    def delete_finished(self) -> None:
        """Delete what is stored of requests that the engine has finished: here nothing."""

    def close(self) -> Any:
        """Close what is open; return the state for JOBDIR, empty if no requests are left there."""
        return {}


class _SortedLanes:
    """Ranks in blocks, so that one is added among a million as fast as among a hundred."""

    def __init__(self) -> None:
        self._blocks: list[list[_ReadyRank]] = [[]]
        """Only the first one may be empty."""

    def _block_of(self, rank: _ReadyRank) -> int:
        return bisect_right(self._blocks, rank, lo=1, key=itemgetter(0)) - 1

    def add(self, rank: _ReadyRank) -> None:
        number = self._block_of(rank)
        block = self._blocks[number]
        insort(block, rank)
        if len(block) > _BLOCK:
            middle = _BLOCK // 2
            self._blocks[number : number + 1] = block[:middle], block[middle:]

    def remove(self, rank: _ReadyRank) -> None:
        number = self._block_of(rank)
        block = self._blocks[number]
        del block[bisect_left(block, rank)]
        if not block and number:
            del self._blocks[number]

    def first_from(self, slot: str) -> Lane | None:
        """Return the first lane of ``slot``, or of the next slot that has one."""
        number = self._block_of((slot,))
        place = bisect_left(self._blocks[number], (slot,))
        if place == len(self._blocks[number]):
            number, place = number + 1, 0
        if number == len(self._blocks):
            return None
        lane: Lane = self._blocks[number][place][-1]
        return lane
