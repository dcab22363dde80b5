"""Which download slot is next: the least busy one, in the order of Scrapy's own queue."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from scrapy_rep.utils.scrapy_internals import downloader_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy.crawler import Crawler

    from scrapy_rep.scheduler.backlog import Backlog
    from scrapy_rep.scheduler.origin_queues import Slot


class Rotation:
    """The slots in which something may be found that can leave.

    Scrapy's queue asks each of its slots at every turn how busy it is. Here a slot that is idle is
    found to be so once, and keeps its place by name until its turn comes; only those of which
    something was taken, or into which something was put, are asked again.
    """

    def __init__(
        self, slots: Mapping[str, Slot], crawler: Crawler, backlog: Backlog | None = None
    ) -> None:
        """``backlog`` has the slots that are on disk alone."""
        self._slots = slots
        self._backlog = backlog
        self._downloader = downloader_of(crawler)
        self._last = ""
        """The name of the slot of which something was taken last; those behind it come first."""
        self.passed = ""
        """Names up to this one are the next round's."""
        # Heaps of names.
        self._this_round: list[str] = []
        self._next_round: list[str] = []
        self._idle: set[str] = set()
        """The same names: of slots that were idle when they were last looked at."""
        self._new: set[str] = set()
        """The names of slots that may be busy."""
        self._first: deque[Slot] = deque()

    def served(self, slot: Slot) -> None:
        """Remember that something was taken of ``slot``."""
        self._last = self.passed = slot.name

    def add(self, slot: Slot) -> None:
        """Let ``slot`` have its turn, where it hasn't yet."""
        if slot.name not in self._idle:
            self._new.add(slot.name)

    def add_first(self, slot: Slot) -> None:
        """Let ``slot`` have a turn before all others, as a request is to leave at this moment."""
        self._first.append(slot)

    def turns(self) -> Iterator[Slot]:
        """Take out slot after slot, by their turns; who wants one back in adds it again."""
        while self._first:
            yield self._first.popleft()
        self._sort_new()
        while slot := self._next_idle():
            if self._active(slot.name):
                self.add(slot)
            else:
                yield slot
        self.passed = self._last
        # Not more than there are downloads, as the others have been found to be idle.
        for name in sorted(self._new, key=self._load):
            self._new.remove(name)
            if (busy := self._slots.get(name)) is not None:
                yield busy

    def _active(self, name: str) -> int:
        slot = self._downloader.slots.get(name)
        return 0 if slot is None else len(slot.active)

    def _load(self, name: str) -> tuple[int, bool, str]:
        return self._active(name), name <= self._last, name

    def _sort_new(self) -> None:
        # A set of its own for those that stay: one that many were taken out of is slow to go
        # through, as it keeps their room.
        new, self._new = self._new, set()
        for name in new & self._slots.keys():
            if self._active(name):
                self._new.add(name)
            else:
                self._idle.add(name)
                later = name <= self.passed
                heappush(self._next_round if later else self._this_round, name)

    def _next_idle(self) -> Slot | None:
        is_new_round = False
        while True:
            if self._backlog is not None and self._backlog.load(next(iter(self._this_round), None)):
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
                self.passed = ""
                if self._backlog is not None:
                    self._backlog.begin_round()
