"""Lanes: each is the queue of one origin in one download slot.

A slot has a heap of its lanes, ordered by the next request of each lane. A lane whose requests wait
has no rank in this heap, so that any number of them doesn't slow down the search for the next
request.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, nsmallest
from itertools import count
from typing import Any, Final

from scrapy import Request

from scrapy_rep.protocol.origin import Origin

_STALE: Final = 16
"""The heap of a slot is rebuilt if it has more pairs than two for each lane, plus this number."""

Rank = tuple[int, bool, int]
"""The lane with the least rank is next: negated priority of its next request, whether that is a
start request, and a number that is larger for each new rank."""


class Lane:
    """The queue of one origin in one download slot.

    Requests that no robots.txt governs are in a lane without origin.
    """

    __slots__ = ("failures", "heap", "origin", "overdue", "rank", "size", "slot")

    def __init__(self, slot: Slot, origin: Origin | None) -> None:
        self.slot: Slot = slot
        self.origin: Origin | None = origin
        self.size: int = 0
        self.heap: list[tuple[Any, ...]] = []
        """A heap of sort keys: negated priority, whether it is a start request, a unique position;
        in memory, also the request. On disk, only the first key is here."""
        self.rank: Rank | None = None
        """The rank in the heap of the slot; None while the lane waits."""
        self.overdue: bool = False
        """Whether its requests leave to be dropped, as the next try of their robots.txt is later
        than REP_DEFER_TIMEOUT allows."""
        self.failures: int = 0
        """Number of failures in a row to read its requests from disk."""


class Slot:
    """The lanes of one download slot, in a heap ordered by rank."""

    __slots__ = ("lanes", "name", "ranks")

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.lanes: int = 0
        """Number of lanes. A slot without lanes is removed."""
        self.ranks: list[tuple[Rank, Lane]] = []
        """The heap of ranks and lanes. A pair is skipped if its lane has another rank, or none."""

    def first_lane(self) -> Lane | None:
        """Return the lane with the least rank; None if no lane has a rank."""
        while self.ranks:
            rank, lane = self.ranks[0]
            if rank is lane.rank:
                return lane
            heappop(self.ranks)
        return None

    def add(self, lane: Lane, rank: Rank) -> None:
        lane.rank = rank
        if len(self.ranks) > 2 * self.lanes + _STALE:
            self.ranks = [(lane.rank, lane) for rank, lane in self.ranks if rank is lane.rank]
            heapify(self.ranks)
        heappush(self.ranks, (rank, lane))


class Lanes:
    """The lanes of a queue that are in memory and have requests."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, Origin | None], Lane] = {}
        self.slots: dict[str, Slot] = {}
        """The download slots that have lanes, by name."""
        self.size: int = 0
        """Number of requests in all lanes."""
        self.on_disk: int = 0
        """Number of requests on disk whose download slots have no lanes in memory."""

    def lane(self, name: str, origin: Origin | None) -> Lane:
        """Return the lane of ``origin`` in the download slot ``name``; make one if there is none.

        ``resize`` must be called with a new lane: it sets the size, or removes an empty lane.
        """
        lane = self._lanes.get((name, origin))
        if lane is None:
            slot = self.slots.get(name)
            if slot is None:
                slot = self.slots[name] = Slot(name)
            slot.lanes += 1
            lane = self._lanes[name, origin] = Lane(slot, origin)
        return lane

    def __len__(self) -> int:
        return len(self._lanes)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def resize(self, lane: Lane, size: int) -> None:
        """Set the number of requests of ``lane``; remove the lane if it is 0."""
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
        self._lanes.clear()
        self.slots.clear()
        self.size = 0


class RequestsInMemory:
    """The requests of all lanes in memory: those of a lane are in its ``heap``.

    ``order`` is 1 for first in, first out; -1 for last in, first out.
    """

    def __init__(self) -> None:
        self._number = count(1)

    def add(self, lane: Lane, priority: int, start: bool, order: int, request: Request) -> None:
        heappush(lane.heap, (priority, start, next(self._number) * order, request))

    @staticmethod
    def read(lane: Lane) -> Request:
        """Return the next request without removing it."""
        request: Request = lane.heap[0][3]
        return request

    @staticmethod
    def read_first(lane: Lane, limit: int) -> list[Request]:
        return [item[3] for item in nsmallest(limit, lane.heap)]

    @staticmethod
    def pop(lane: Lane) -> Request:
        request: Request = heappop(lane.heap)[3]
        return request
