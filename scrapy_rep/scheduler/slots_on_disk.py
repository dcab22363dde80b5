"""The download slots of a JOBDIR whose lanes are on disk only, not loaded into memory.

A JOBDIR may have requests to a million hosts, too many to keep a lane (the queue of one origin in
one download slot) for each in memory. Slots are served in rounds, in the order of their names, so
only the slots that come next are loaded, some at a time. ``_reached`` is the name up to which the
present round has loaded slots. A new request whose slot is not in memory stays on disk until the
round comes to the name of the slot; if the round has loaded beyond that name, the slot is loaded at
once. All lanes of a slot are loaded together, as any of them may have its highest priority.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.scheduler.lanes import Lane, Lanes
from scrapy_rep.scheduler.requests_on_disk import RequestsOnDisk
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger

logger: Final = LimitedLogger(__name__)

RETRY_DELAYS: Final = (1, 2, 4, 8, 16, 32)
"""Seconds between the tries to read requests from disk; after the last try they stay on disk."""
_MAX_LANES: Final = 1_000
"""Number of lanes in memory from which on new slots stay on disk."""
_STEP: Final = 100
"""Number of lanes that are loaded at a time."""


class SlotsOnDisk:
    """The slots that are on disk only; each is loaded when the round comes to it."""

    def __init__(
        self,
        crawler: Crawler,
        requests: RequestsOnDisk,
        lanes: Lanes,
        activate: Callable[[Lane], None],
        may_load: Callable[[], bool],
        clock: Clock,
    ) -> None:
        """``activate`` is called with each loaded lane; ``may_load`` tells whether to load more."""
        self._crawler = crawler
        self._clock = clock
        self._requests = requests
        self._lanes = lanes
        self._activate = activate
        self._may_load = may_load
        self._reached: str | None = None
        """All slots up to this name have been loaded in this round; None if none has been. The name
        may be empty: that of URLs without a host."""
        self._is_through = False
        """Whether no slot after ``_reached`` is left on disk in this round."""
        self._unreadable: dict[tuple[str, Origin | str | None], int] = {}
        """Number of requests of each lane that can't be read, by slot and origin. If the origin is
        damaged, its text is used."""
        self._failures = 0
        """Number of failed reads in a row."""
        self._load_at = -math.inf
        """When to read again after a failure, by the monotonic clock."""
        lanes.on_disk = requests.number_of_requests()

    def load_or_leave_on_disk(self, slot: str, passed: str) -> bool:
        """Return whether a new request to ``slot`` stays on disk only.

        If not, it goes to a lane in memory. The lanes that the slot has on disk are then loaded, by
        this call if necessary. ``passed`` is the name of the last slot that this round has served.
        """
        if slot in self._lanes.slots:
            return False
        if self._lanes.on_disk:
            # Slots with names in this range were loaded: this round doesn't read them again.
            if self._reached is not None and passed < slot <= self._reached:
                rows = self._read(lambda: self._requests.lane_sizes_of(slot))
                self._load(rows or [])
                if rows is not None:
                    return False
        elif len(self._lanes) < _MAX_LANES:
            return False
        else:
            self._reached = passed
        self._is_through = False
        return True

    def __contains__(self, slot: str) -> bool:
        return any(size for _, _, size in self._requests.lane_sizes_of(slot))

    def push(self, slot: str, origin: Origin | None, *item: Any) -> None:
        self._requests.write(slot, origin, *item)
        self._lanes.on_disk += 1 + self.pop_unreadable(slot, origin)

    def move_to_disk(self, lane: Lane) -> None:
        """Remove ``lane``, of which a request was popped, from memory, if many lanes are there.

        The next round loads it. A slot with several lanes stays, as the order of its lanes is known
        only in memory.
        """
        if len(self._lanes) > _MAX_LANES and lane.slot.lanes == 1:
            self._lanes.on_disk += lane.size
            self._lanes.resize(lane, 0)

    def give_up(self, slot: str, origin: Origin | str | None, size: int) -> None:
        """Leave the requests of a lane that can't be read on disk until one is added to it."""
        stats.count(self._crawler, stats.QUEUE_ERRORS)
        logger.error(
            "The requests of %s can't be read, and are left in JOBDIR: %d",
            slot,
            size,
            extra={"spider": self._crawler.spider},
        )
        self._unreadable[slot, origin] = size

    def pop_unreadable(self, slot: str, origin: Origin | None) -> int:
        """Let a lane that was given up be loaded again; return its number of requests.

        The caller counts them again. The number is 0 if the lane was not given up.
        """
        return self._unreadable.pop((slot, origin), 0)

    def start_round(self) -> None:
        """Begin a new round at the first name, if this round has loaded the last slot on disk."""
        if self._is_through:
            self._reached = None
            self._is_through = False

    def load(self, before: str | None) -> bool:
        """Load the next slots from disk, if they may come before the slot ``before``.

        ``before`` is the next slot in memory, None if there is none. Return whether any lane was
        loaded.
        """
        while self._lanes.on_disk and not self._is_through and self._may_load():
            if before is not None and self._reached is not None and before <= self._reached:
                return False
            rows = self._read(lambda: self._requests.lane_sizes(self._reached, _STEP))
            if rows is None:
                return False
            self._is_through = len(rows) < _STEP
            if rows:
                self._reached = rows[-1][0]
            if self._load(rows):
                return True
        return False

    def _read(
        self, read: Callable[[], list[tuple[str, str, int]]]
    ) -> list[tuple[str, str, int]] | None:
        """Return the rows of ``read``. If it fails, log the error; return None for some seconds."""
        now = self._clock.monotonic()
        if now < self._load_at:
            return None
        try:
            rows = read()
        except sqlite3.Error as error:
            what, left = "Requests in JOBDIR can't be read: %d", self._lanes.on_disk
            if self._failures < len(RETRY_DELAYS):
                self._load_at = now + RETRY_DELAYS[self._failures]
                self._failures += 1
            else:  # so that the crawl can end
                what = "Requests can't be read, and are left in JOBDIR: %d"
                self._lanes.on_disk = 0
            log_error(self._crawler, error, what, left)
            return None
        self._failures = 0
        return rows

    def _load(self, rows: list[tuple[str, str, int]]) -> bool:
        is_any = False
        for slot, groups in groupby(rows, itemgetter(0)):
            if slot in self._lanes.slots:
                continue
            for _, name, size in groups:
                origin = _read_origin(name)
                if not size or (slot, origin) in self._unreadable:
                    continue
                # ``on_disk`` may be too low: after failures to read it was set to 0.
                self._lanes.on_disk = max(0, self._lanes.on_disk - size)
                if isinstance(origin, str):
                    self.give_up(slot, origin, size)
                    continue
                lane = self._lanes.lane(slot, origin)
                self._lanes.resize(lane, size)
                self._activate(lane)
                is_any = True
        return is_any


def log_error(crawler: Crawler, error: BaseException, message: str, subject: object) -> None:
    """Log ``message``, formatted with ``subject``, and the traceback of ``error``; count it."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    logger.error(message, subject, exc_info=error, extra={"spider": crawler.spider})


def _read_origin(text: str) -> Origin | str | None:
    """Return the origin of a row; None if it has none, and the text itself if it is damaged."""
    try:
        return origin_of(text) if text else None
    except ValueError:
        return text
