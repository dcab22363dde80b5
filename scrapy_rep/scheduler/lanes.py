"""Lanes: each is the queue of one origin in one download slot.

A slot has a heap of its lanes, ordered by the next request of each lane. A lane whose requests wait
has no rank in this heap, so that any number of them doesn't slow down a pop.

The order of slots is that of Scrapy's DownloaderAwarePriorityQueue, at less cost. At every pop,
Scrapy's queue counts the active downloads of each slot, and chooses a slot with the fewest: of
several, the next one by name; after the last name comes the first. With thousands of slots most are
idle: they have no downloads. To go through all slots at each pop would be slow.

Here the name of an idle slot goes into a heap, and its downloads are not counted until its name is
reached. This is done in rounds: a round goes through the names once, in their order. At a pop, the
downloads are counted only of slots that had some at the last pop, or that were added since: because
a request was pushed or popped, or a wait has ended. Slots with downloads come after all idle ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.scrapy_internals import downloader_of

_STALE: Final = 16
"""The heap of a slot is rebuilt if it has more pairs than two for each lane, plus this number."""

Rank = tuple[int, bool, int]
"""The lane with the least rank is next: negated priority of its next request, whether that is a
start request, and a number that is larger for each new rank."""


class Lane:
    """The queue of one origin in one download slot.

    Requests that no robots.txt governs are in a lane without origin.
    """

    __slots__ = ("failures", "heap", "origin", "overdue", "rank", "since", "size", "slot")

    def __init__(self, slot: Slot, origin: Origin | None) -> None:
        self.slot: Slot = slot
        self.origin: Origin | None = origin
        self.size: int = 0
        self.heap: list[tuple[Any, ...]] = []
        """A heap of sort keys: negated priority, whether it is a start request, a unique position;
        in memory, also the request. On disk, only the first key is here."""
        self.rank: Rank | None = None
        """The rank in the heap of the slot; None while the lane waits."""
        self.since: float | None = None
        """When its first request was deferred, by the monotonic clock; None if none was."""
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

    def set_rank(self, lane: Lane, rank: Rank) -> None:
        """Set the rank of ``lane``, and its place in the heap, which is rebuilt if it has grown."""
        lane.rank = rank
        if len(self.ranks) > 2 * self.lanes + _STALE:
            self.ranks = [(lane.rank, lane) for rank, lane in self.ranks if rank is lane.rank]
            heapify(self.ranks)
        heappush(self.ranks, (rank, lane))


class Lanes:
    """The lanes that are in memory and have requests, and the order of their slots.

    The requests are in memory, too; in a subclass, on disk. Callers set ranks, and sizes after pop.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._downloader = downloader_of(crawler)
        self._number = count(1)
        self._lanes: dict[tuple[str, Origin | None], Lane] = {}
        self._slots: dict[str, Slot] = {}
        self.size: int = 0
        """Number of requests in all lanes."""
        self.on_disk: int = 0
        """Number of requests on disk whose download slots have no lanes in memory."""
        self._last = ""
        """The name of the last slot that a request was popped from; the slots after it are next."""
        self._passed = ""
        """Slots whose names are not after this name come in the next round."""
        # Heaps of the names of idle slots, which have no downloads.
        self._this_round: list[str] = []
        self._next_round: list[str] = []
        self._idle: set[str] = set()
        """The names in both heaps."""
        self._new: set[str] = set()
        """The names of slots whose downloads are to be counted."""

    def __len__(self) -> int:
        return len(self._lanes)

    def has_slot(self, name: str) -> bool:
        return name in self._slots

    def resize(self, lane: Lane, size: int) -> None:
        """Set the number of requests of ``lane``; at 0 remove it, and its slot if that is empty."""
        self.size += size - lane.size
        lane.size = size
        if size or self._lanes.pop((lane.slot.name, lane.origin), None) is None:
            return
        lane.rank = None
        lane.slot.lanes -= 1
        if not lane.slot.lanes:
            lane.slot.ranks.clear()  # breaks the reference cycle of slot and lane
            del self._slots[lane.slot.name]

    def _find_or_add(self, name: str, origin: Origin | None) -> Lane:
        """Return a lane; if there is none, add an empty one, to which the caller adds requests."""
        lane = self._lanes.get((name, origin))
        if lane is None:
            slot = self._slots.get(name)
            if slot is None:
                slot = self._slots[name] = Slot(name)
            slot.lanes += 1
            lane = self._lanes[name, origin] = Lane(slot, origin)
        return lane

    # Requests.

    def push(self, slot: str, origin: Origin | None, rank: Rank, request: Request) -> Lane | None:
        """Add ``request``; return its lane, or None if that is only on disk.

        The last value of ``rank`` is 1 for first in, first out; -1 for last in, first out.
        """
        lane = self._find_or_add(slot, origin)
        priority, start, order = rank
        heappush(lane.heap, (priority, start, next(self._number) * order, request))
        self.resize(lane, lane.size + 1)
        return lane

    def read(self, lane: Lane) -> Request:
        """Return the next request of ``lane`` without removing it."""
        request: Request = lane.heap[0][3]
        return request

    def pop(self, lane: Lane) -> Request:
        """Remove the next request of ``lane``, and return it. The caller sets the size."""
        request: Request = heappop(lane.heap)[3]
        return request

    def close(self) -> list[str | int] | dict[str, list[int]]:
        """Remove all lanes; return the state for JOBDIR. Requests in memory have none."""
        self._lanes.clear()
        self._slots.clear()
        self.size = 0
        return {}

    # What a subclass does with requests on disk; nothing is done here.

    def set_next_key(self, lane: Lane) -> None:
        """Set the heap of ``lane``, which is empty although the lane has requests."""

    def pop_begins(self) -> None:
        """Do what is due before a request is popped: here nothing."""

    def request_popped(self, lane: Lane) -> None:
        """Do what is due after a pop from ``lane``, of which no request waits: here nothing."""

    def give_up(self, lane: Lane) -> None:
        """Leave unreadable requests of ``lane`` on disk. The caller then removes the lane."""

    def _load(self) -> bool:
        """Load the next slots that are only on disk; return whether there was any. Here: none."""
        return False

    def _start_round(self) -> None:
        """Begin a new round at the first name."""

    # The order of slots.

    def set_last_popped(self, slot: Slot) -> None:
        self._last = self._passed = slot.name

    def add_to_order(self, slot: Slot) -> None:
        """Add ``slot`` to the order, unless it is there already."""
        if slot.name not in self._idle:
            self._new.add(slot.name)

    def pop_slots(self) -> Iterator[Slot]:
        """Yield the slots in their order, and remove each; the caller may add it again."""
        self._sort_new()
        while slot := self._pop_idle():
            if self._active_requests(slot.name):
                self.add_to_order(slot)
            else:
                yield slot
        self._passed = self._last
        # Only slots with downloads are left. They are few, so they can be sorted at each pop.
        for name in sorted(self._new, key=self._load_sort_key):
            self._new.remove(name)
            if (busy := self._slots.get(name)) is not None:
                yield busy

    def _active_requests(self, name: str) -> int:
        slot = self._downloader.slots.get(name)
        return 0 if slot is None else len(slot.active)

    def _load_sort_key(self, name: str) -> tuple[int, bool, str]:
        return self._active_requests(name), name <= self._last, name

    def _sort_new(self) -> None:
        """Move the names of idle slots from ``_new`` to the heaps."""
        # A new set: iteration over a set that has shrunk stays slow.
        new, self._new = self._new, set()
        for name in new & self._slots.keys():
            if self._active_requests(name):
                self._new.add(name)
            else:
                self._idle.add(name)
                later = name <= self._passed
                heappush(self._next_round if later else self._this_round, name)

    def _pop_idle(self) -> Slot | None:
        """Return the next idle slot, loaded or of the next round if necessary; None if none is."""
        is_new_round = False
        while True:
            if self._load():
                self._sort_new()
            elif self._this_round:
                name = heappop(self._this_round)
                self._idle.remove(name)
                if (slot := self._slots.get(name)) is not None:
                    return slot
            elif is_new_round:
                return None
            else:
                is_new_round = True
                self._this_round, self._next_round = self._next_round, self._this_round
                self._passed = ""
                self._start_round()
