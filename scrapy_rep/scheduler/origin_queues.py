"""The requests of the queue, in one lane per origin and download slot.

A slot has a heap of its lanes, ordered by the next request of each lane. A lane that waits is in no
heap, so the lanes that may not leave cost nothing when the next request is looked for.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, nsmallest
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.hold import Hold

_STALE: Final = 16

Rank = tuple[int, bool, int]
"""Priority, whether it is a start request, and the order of arrival; the least rank is next."""


class Memory:
    """The requests of all lanes in memory; each lane has a heap in ``heap``."""

    def __init__(self) -> None:
        self._number = count(1)

    def add(self, lane: Lane, priority: int, start: bool, order: int, request: Request) -> None:
        """Add ``request``; ``order`` is 1 for first in, first out; -1 for last in, first out."""
        heappush(lane.heap, (priority, start, next(self._number) * order, request))

    @staticmethod
    def read(lane: Lane) -> Request:
        """Return the next request of ``lane``."""
        request: Request = lane.heap[0][3]
        return request

    @staticmethod
    def read_first(lane: Lane, most: int) -> list[Request]:
        """Return the next requests of ``lane``, at most ``most``; they stay."""
        return [item[3] for item in nsmallest(most, lane.heap)]

    @staticmethod
    def pop(lane: Lane) -> Request:
        """Remove the next request of ``lane`` and return it."""
        request: Request = heappop(lane.heap)[3]
        return request


class Lane:
    """The requests of one origin in one download slot, or those without an origin."""

    __slots__ = (
        "deferred_since",
        "failures",
        "heap",
        "hold",
        "lanes",
        "origin",
        "overdue",
        "rank",
        "size",
        "slot",
    )

    def __init__(self, lanes: Lanes, slot: Slot, origin: Origin | None) -> None:
        self.lanes: Lanes = lanes
        self.slot: Slot = slot
        self.origin: Origin | None = origin
        self.size: int = 0
        self.heap: list[tuple[Any, ...]] = []
        """A heap of sort keys: priority, whether it is a start request, a unique position, and the
        request if it is in memory."""
        self.rank: Rank | None = None
        """Its rank in the heap of the slot."""
        self.hold: Hold | None = None
        """Why it waits, and until when. A lane that waits is in no heap."""
        self.deferred_since: float | None = None
        """When its requests were deferred, in seconds of the monotonic clock."""
        self.overdue: bool = False
        """Whether its requests leave to be dropped, as their origin is unreachable for too long."""
        self.failures: int = 0
        """Number of failed tries in a row to read it."""

    def head(self) -> Request:
        """Return the next request."""
        return self.lanes.head(self)

    def first(self, most: int) -> list[Request]:
        """Return the next requests that can be read, at most ``most``."""
        return self.lanes.first(self, most)


class Slot:
    """The lanes of one download slot, in a heap by rank."""

    __slots__ = ("lanes", "name", "ranks")

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.lanes: int = 0
        """Number of lanes. A slot without lanes is removed."""
        self.ranks: list[tuple[Rank, Lane]] = []
        """A heap. Pairs whose rank is no longer that of the lane are skipped."""

    def next(self) -> Lane | None:
        """Return the next lane, if there is one."""
        while self.ranks:
            rank, lane = self.ranks[0]
            if rank is lane.rank:
                return lane
            heappop(self.ranks)
        return None

    def add(self, lane: Lane, rank: Rank) -> None:
        """Put ``lane`` in the heap with a new rank."""
        lane.rank = rank
        if len(self.ranks) > 2 * self.lanes + _STALE:
            self.ranks = [(lane.rank, lane) for rank, lane in self.ranks if rank is lane.rank]
            heapify(self.ranks)
        heappush(self.ranks, (rank, lane))


class Lanes:
    """The lanes that have requests."""

    def __init__(
        self, head: Callable[[Lane], Request], first: Callable[[Lane, int], list[Request]]
    ) -> None:
        self.head = head
        """Returns the next request of a lane."""
        self.first = first
        """Returns the next requests of a lane that can be read, up to a number."""
        self._lanes: dict[tuple[str, Origin | None], Lane] = {}
        self.slots: dict[str, Slot] = {}
        """The download slots that have lanes, by name."""
        self.size: int = 0
        """Number of requests in all lanes."""
        self.on_disk = 0
        """Number of requests on disk whose slots have no lanes in memory yet."""

    def lane(self, name: str, origin: Origin | None) -> Lane:
        """Return the lane of an origin in a download slot; a new one needs a call of ``resize``."""
        lane = self._lanes.get((name, origin))
        if lane is None:
            slot = self.slots.get(name)
            if slot is None:
                slot = self.slots[name] = Slot(name)
            slot.lanes += 1
            lane = self._lanes[name, origin] = Lane(self, slot, origin)
        return lane

    def __len__(self) -> int:
        return len(self._lanes)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def resize(self, lane: Lane, size: int) -> None:
        """Set the number of requests of ``lane``; remove a lane without requests."""
        self.size += size - lane.size
        lane.size = size
        if size or self._lanes.pop((lane.slot.name, lane.origin), None) is None:
            return
        lane.rank = None
        lane.slot.lanes -= 1
        if not lane.slot.lanes:
            lane.slot.ranks.clear()  # breaks the reference cycle of slot and lane
            del self.slots[lane.slot.name]

    def clear(self) -> None:
        """Remove all lanes."""
        self._lanes.clear()
        self.slots.clear()
        self.size = 0
