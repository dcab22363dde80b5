"""The download slots of a JOBDIR whose requests are on disk alone, and not in memory yet.

A JOBDIR may have requests to a million hosts. Only those of the slots that come next are in memory:
slots have their turns in the order of their names, and so they are loaded. A slot is loaded whole,
as the highest priority in it comes first.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from scrapy_rep.protocol.origin import origin_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.disk import Disk
    from scrapy_rep.scheduler.origin_queues import Lane, Lanes

_MAX_LANES: Final = 1_000
"""Lanes in memory, above which new slots are left on disk."""
_STEP: Final = 100
"""Lanes that are loaded at a time."""


class Backlog:
    """The slots that are on disk alone; each is loaded when its turn comes."""

    def __init__(
        self,
        disk: Disk,
        lanes: Lanes,
        loaded: Callable[[Lane], None],
        may_load: Callable[[], bool],
    ) -> None:
        """Take the parts of a queue.

        ``loaded`` is called with each lane that is loaded; ``may_load`` tells whether to load more.
        """
        self._disk = disk
        self._lanes = lanes
        self._loaded = loaded
        self._may_load = may_load
        self._reached = ""
        """All slots up to this name have been loaded in this round."""
        self._is_through = False
        """Whether all slots have been loaded in this round that it has left to come to."""
        self._left: set[tuple[str, Origin | None]] = set()
        lanes.on_disk = disk.count()

    def takes(self, slot: str, passed: str) -> bool:
        """Return whether a new request to ``slot`` is left on disk; if not, the slot is in memory.

        ``passed`` is the name up to which this round of turns has come.
        """
        if slot in self._lanes.slots:
            return False
        if self._lanes.on_disk:
            # Between the two names this round comes to it without looking on disk.
            if passed < slot <= self._reached:
                self._load(self._disk.groups_of(slot))
                return False
        elif len(self._lanes) < _MAX_LANES:
            return False
        else:
            self._reached = passed
        self._is_through = False
        return True

    def has(self, slot: str) -> bool:
        """Return whether there are requests to ``slot`` on disk."""
        return bool(self._disk.groups_of(slot))

    def push(self, slot: str, origin: Origin | None, *place: Any) -> None:
        """Write a request that is left on disk. Raises as ``Disk.write`` does."""
        self._disk.write(slot, origin, *place)
        self._lanes.on_disk += 1

    def leave(self, lane: Lane) -> None:
        """Load ``lane`` no more, which can't be read."""
        self._left.add((lane.slot.name, lane.origin))

    def begin_round(self) -> None:
        """Begin with the first name again, if it has come to the last one."""
        if self._is_through:
            self._reached = ""
            self._is_through = False

    def load(self, before: str | None) -> bool:
        """Load the slots that come next, if any comes before the name ``before``.

        Return whether any was loaded.
        """
        while self._lanes.on_disk and not self._is_through and self._may_load():
            if before is not None and before <= self._reached:
                return False
            rows = self._disk.groups(self._reached, _STEP)
            self._is_through = len(rows) < _STEP
            if rows:
                self._reached = rows[-1][0]
            if self._load(rows):
                return True
        return False

    def _load(self, rows: list[tuple[str, str, int]]) -> bool:
        is_any = False
        for slot, groups in groupby(rows, itemgetter(0)):
            if slot in self._lanes.slots:
                continue
            for _, name, size in groups:
                origin = origin_of(name) if name else None
                if (slot, origin) in self._left:
                    continue
                lane = self._lanes.lane(slot, origin)
                self._disk.look(lane)
                self._lanes.on_disk -= size
                self._lanes.resize(lane, size)
                self._loaded(lane)
                is_any = True
        return is_any
