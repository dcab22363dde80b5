"""The order of download slots: that of Scrapy's DownloaderAwarePriorityQueue, at less cost.

At every pop, Scrapy's queue counts the active downloads of each slot, and chooses a slot with the
fewest: of several, the next one by name; after the last name comes the first. With thousands of
slots most are idle: they have no downloads. To go through all slots at each pop would be slow.

Here the name of an idle slot goes into a heap, and its downloads are not counted until its name is
reached. This is done in rounds: a round goes through the names once, in their order. At a pop, the
downloads are counted only of slots that had some at the last pop, or that were added since: because
a request was pushed or popped, or a wait has ended. Slots with downloads come after all idle ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from scrapy.crawler import Crawler

from scrapy_rep.scheduler.lanes import Slot
from scrapy_rep.scheduler.slots_on_disk import SlotsOnDisk
from scrapy_rep.utils.scrapy_internals import downloader_of


class SlotOrder:
    """The slots that may have a request which may leave, in the order in which they are next."""

    def __init__(
        self, slots: Mapping[str, Slot], crawler: Crawler, on_disk: SlotsOnDisk | None = None
    ) -> None:
        """``on_disk`` loads the slots that are only on disk into memory; None without JOBDIR."""
        self._slots = slots
        self._slots_on_disk = on_disk
        self._downloader = downloader_of(crawler)
        self._last = ""
        """The name of the last slot that a request was popped from; the slots after it are next."""
        self.passed: str = ""
        """Slots whose names are not after this name come in the next round."""
        # Heaps of the names of idle slots, which have no downloads.
        self._this_round: list[str] = []
        self._next_round: list[str] = []
        self._idle: set[str] = set()
        """The names in both heaps."""
        self._new: set[str] = set()
        """The names of slots whose downloads are to be counted."""

    def set_last_popped(self, slot: Slot) -> None:
        self._last = self.passed = slot.name

    def add(self, slot: Slot) -> None:
        """Add ``slot``, unless it is there already."""
        if slot.name not in self._idle:
            self._new.add(slot.name)

    def pop_each(self) -> Iterator[Slot]:
        """Remove the slots in their order, and yield them. The caller may add a slot again."""
        self._sort_new()
        while slot := self._pop_idle():
            if self._active_requests(slot.name):
                self.add(slot)
            else:
                yield slot
        self.passed = self._last
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
        # A new set: iteration over a set that has shrunk stays slow.
        new, self._new = self._new, set()
        for name in new & self._slots.keys():
            if self._active_requests(name):
                self._new.add(name)
            else:
                self._idle.add(name)
                later = name <= self.passed
                heappush(self._next_round if later else self._this_round, name)

    def _pop_idle(self) -> Slot | None:
        is_new_round = False
        while True:
            if self._slots_on_disk is not None and self._slots_on_disk.load(
                next(iter(self._this_round), None)
            ):
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
                if self._slots_on_disk is not None:
                    self._slots_on_disk.start_round()
