"""The requests of the queue: a lane for each origin in each download slot."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.hold import Hold

_STALE: Final = 16

Rank = tuple[int, bool, int]
"""Priority, whether it is a start request's, and since when; the least one is next."""


class Memory:
    """The requests of all lanes, in memory; in the ``held`` of each lane, as a heap."""

    def __init__(self) -> None:
        self._number = count(1)

    def add(self, lane: Lane, priority: int, start: bool, order: int, request: Request) -> None:
        """Keep ``request``: ``order`` is 1 if it comes after those before it, -1 if before."""
        heappush(lane.held, (priority, start, next(self._number) * order, request))

    @staticmethod
    def read(lane: Lane) -> Request:
        """Return the next request of ``lane``."""
        request: Request = lane.held[0][3]
        return request

    @staticmethod
    def pop(lane: Lane) -> Request:
        """Return the next request of ``lane``, and keep it no more."""
        request: Request = heappop(lane.held)[3]
        return request


class Lane:
    """The requests of one origin in one download slot, or those of a slot that have no origin."""

    __slots__ = (
        "failures",
        "held",
        "hold",
        "lanes",
        "origin",
        "overdue",
        "rank",
        "since",
        "size",
        "slot",
    )

    def __init__(self, lanes: Lanes, slot: Slot, origin: Origin | None) -> None:
        self.lanes = lanes
        self.slot = slot
        self.origin = origin
        self.size = 0
        self.held: list[tuple[Any, ...]] = []
        """What is next is first: its priority, whether it is a start request's, a place that no
        other has, and the request itself where it is in memory."""
        self.rank: Rank | None = None
        """Its place in the slot's heap."""
        self.hold: Hold | None = None
        """Why it waits, and is in no heap."""
        self.since: float | None = None
        """Since when its requests are deferred, by the monotonic clock."""
        self.overdue = False
        """Whether they are to leave though their origin is unreachable."""
        self.failures = 0
        """How often in a row it could not be read."""

    def head(self) -> Request:
        """Return the request that would leave next."""
        return self.lanes.head(self)


class Slot:
    """The lanes of one download slot, and which of them is next."""

    __slots__ = ("lanes", "name", "ranks")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lanes = 0
        """How many it has; with none it is no more."""
        self.ranks: list[tuple[Rank, Lane]] = []
        """A heap; only those pairs count whose rank is the lane's."""

    def next(self) -> Lane | None:
        """Return the lane whose turn it is."""
        while self.ranks:
            rank, lane = self.ranks[0]
            if rank is lane.rank:
                return lane
            heappop(self.ranks)
        return None

    def enter(self, lane: Lane, rank: Rank) -> None:
        """Let ``lane`` be next when its ``rank`` is the least."""
        lane.rank = rank
        if len(self.ranks) > 2 * self.lanes + _STALE:
            self.ranks = [(lane.rank, lane) for rank, lane in self.ranks if rank is lane.rank]
            heapify(self.ranks)
        heappush(self.ranks, (rank, lane))


class Lanes:
    """The lanes that have requests."""

    def __init__(self, head: Callable[[Lane], Request]) -> None:
        self.head = head
        """Returns the request of a lane that would leave next."""
        self._lanes: dict[tuple[str, Origin | None], Lane] = {}
        self.slots: dict[str, Slot] = {}
        """The download slots that have lanes, by name."""
        self.size = 0
        """Requests in all of them."""
        self.on_disk = 0
        """Requests of slots that are on disk alone."""

    def lane(self, name: str, origin: Origin | None) -> Lane:
        """Return the lane of an origin in a download slot; a new one is to be given a size."""
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
        """Remember that ``lane`` has so many requests; with none it is no more."""
        self.size += size - lane.size
        lane.size = size
        if size or self._lanes.pop((lane.slot.name, lane.origin), None) is None:
            return
        lane.rank = None
        lane.slot.lanes -= 1
        if not lane.slot.lanes:
            lane.slot.ranks.clear()  # they hold the lane, which holds the slot
            del self.slots[lane.slot.name]

    def clear(self) -> None:
        """Forget all of them."""
        self._lanes.clear()
        self.slots.clear()
        self.size = 0
