"""The lanes of a crawl with JOBDIR, whose requests are on disk.

A JOBDIR may have requests to a million hosts, too many to keep a lane for each in memory. Slots are
served in rounds, in the order of their names, so only the slots that come next are loaded, some at
a time. ``_reached`` is the name up to which the present round has loaded slots. A new request whose
slot is not in memory stays on disk until the round comes to the name of the slot; if the round has
loaded beyond that name, the slot is loaded at once. All lanes of a slot are loaded together, as any
of them may have its highest priority.
"""

from __future__ import annotations

import marshal
import math
import pickle
import sqlite3
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from scrapy_rep import stats
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.scheduler.holding_queue import log_queue_error
from scrapy_rep.scheduler.jobdir import STATE
from scrapy_rep.scheduler.lanes import Lane, Lanes, Rank
from scrapy_rep.scheduler.request_file import LEAST, LaneName, LaneSize, RequestFile
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request, without_credentials

RETRY_DELAYS: Final = (1, 2, 4, 8, 16, 32)
"""Seconds between the tries to read requests from disk; after the last try they stay on disk."""
_MAX_LANES: Final = 1_000
"""Number of lanes in memory from which on new slots stay on disk."""
_STEP: Final = 100
"""Number of lanes that are loaded at a time."""
_PICKLE: Final = b"\x80"
"""First byte of a pickle; a dict written by marshal never begins with it."""


class UnreadableError(Exception):
    """The request that it names can't be read, for instance as the spider lacks its callback."""


class LanesOnDisk(Lanes):
    """The lanes that are loaded into memory; their requests, and other slots, are on disk.

    Methods that read requests raise sqlite3.Error if the file can't be read.
    """

    def __init__(
        self,
        crawler: Crawler,
        folder: str,
        state: Any,
        activate: Callable[[Lane], None],
        may_load: Callable[[], bool],
        clock: Clock,
        *,
        marshals: bool,
    ) -> None:
        """``activate`` is called with each loaded lane; ``may_load`` tells whether to load more.

        If ``marshals`` is true, requests are written with marshal, else with pickle. Raises
        SettingsError as ``RequestFile`` does.
        """
        super().__init__(crawler)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._file = RequestFile.of(crawler, folder, state)
        self._dumps = marshal.dumps if marshals else partial(pickle.dumps, protocol=4)
        self._activate = activate
        self._may_load = may_load
        self._clock = clock
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
        self._is_closed = False
        self._has_logged_late = False
        self.on_disk = self._file.requests_at_opening

    def has_slot(self, name: str) -> bool:
        sizes = self._file.lane_sizes_of(name)
        return super().has_slot(name) or any(size for _, _, size in sizes)

    def close(self) -> list[str | int] | dict[str, list[int]]:
        self._is_closed = True
        super().close()
        return STATE if self._file.close() else {}

    # Requests.

    def push(self, slot: str, origin: Origin | None, rank: Rank, request: Request) -> Lane | None:
        """Write ``request``; return its lane, or None if that is only on disk.

        :raises ValueError: if it can't be written; Scrapy's scheduler then keeps it in memory.
        """
        self._reject_if_closed(request)
        is_left = self._load_or_leave_on_disk(slot)
        # SQLite stores integers of 64 bits only, and Scrapy's Request accepts only an integer.
        if not (isinstance(rank[0], int) and LEAST < rank[0] < -LEAST):
            raise ValueError(f"its priority is {-rank[0]}, and no integer of 64 bits")
        try:
            data = self._dumps(request.to_dict(spider=self._crawler.spider))
        except Exception as error:
            raise ValueError(str(error)) from error
        key = self._file.insert((slot, _text_of(origin)), rank, data)
        given_up = self._unreadable.pop((slot, origin), 0)
        if is_left:
            self.on_disk += 1 + given_up
            return None
        lane = self._find_or_add(slot, origin)
        # A lane with requests but no key could not be read yet; set_next_key() sets its key later.
        if key < lane.heap[0] if lane.heap else not (lane.size or given_up):
            lane.heap = [key]
        self.resize(lane, lane.size + 1 + given_up)
        return lane

    def _reject_if_closed(self, request: Request) -> None:
        """Raise ValueError if the file is closed, and log ``request`` if it is the first."""
        if not self._is_closed:
            return
        if not self._has_logged_late:
            self._has_logged_late = True
            self._logger.warning(
                "%s came after the scheduler was closed, and is not stored in JOBDIR. Further such "
                "requests are not logged",
                printable_request(request),
            )
        raise ValueError("the scheduler is closed")

    def read(self, lane: Lane) -> Request:
        """Return the next request without removing it. Raises UnreadableError."""
        return self._decode(self._file.data(lane.heap[0]))

    def pop(self, lane: Lane) -> Request:
        """Return the next request of ``lane``; its row stays until the engine has finished it.

        The caller sets the size of the lane. Raises UnreadableError if the request can't be read.
        It is popped all the same; the next crawl tries to read it again.
        """
        key, name = lane.heap[0], _name_of(lane)
        data = self._file.data(key)
        lane.heap = self._file.keys(name, 1, key)
        request = None
        try:
            request = self._decode(data)
        finally:
            self._file.pop(name, key, request)
        return request

    def _decode(self, data: bytes) -> Request:
        """Return the request in a row. Raises only UnreadableError, without credentials."""
        what = "its data is damaged"
        try:
            values = (pickle.loads if data.startswith(_PICKLE) else marshal.loads)(data)
            what = f"<{values['method']} {without_credentials(values['url'])}>"
            return request_from_dict(values, spider=self._crawler.spider)
        except Exception as error:
            raise UnreadableError(what) from error

    def set_next_key(self, lane: Lane) -> None:
        lane.heap = self._file.keys(_name_of(lane), 1)

    def pop_begins(self) -> None:
        now = self._clock.monotonic()
        self._file.delete_finished(now)
        self._file.log_if_removed(now)

    # Slots that are only on disk.

    def request_popped(self, lane: Lane) -> None:
        """Remove ``lane`` from memory, if many lanes are there. The next round loads it.

        A slot with several lanes stays, as the order of its lanes is known only in memory.
        """
        if len(self) > _MAX_LANES and lane.slot.lanes == 1:
            self.on_disk += lane.size
            self.resize(lane, 0)

    def give_up(self, lane: Lane) -> None:
        """Leave the requests of ``lane``, which can't be read, on disk until one is added to it."""
        self._give_up(lane.slot.name, lane.origin, lane.size)

    def _give_up(self, slot: str, origin: Origin | str | None, size: int) -> None:
        """Count and log that ``size`` requests can't be read; their lane stays on disk then."""
        stats.count(self._crawler, stats.QUEUE_ERRORS)
        self._logger.error(
            "The requests of %s can't be read, and are left in JOBDIR: %d", slot, size
        )
        self._unreadable[slot, origin] = size

    def _load_or_leave_on_disk(self, slot: str) -> bool:
        """Return whether a new request to ``slot`` stays on disk only.

        Else it goes to a lane in memory; the lanes that its slot has on disk are loaded before.
        """
        if slot in self._slots:
            return False
        if self.on_disk:
            # Slots with names in this range were loaded: this round doesn't read them again.
            if self._reached is not None and self._passed < slot <= self._reached:
                rows = self._read_sizes(lambda: self._file.lane_sizes_of(slot))
                self._load_lanes(rows or [])
                if rows is not None:
                    return False
        elif len(self) < _MAX_LANES:
            return False
        else:
            self._reached = self._passed
        self._is_through = False
        return True

    def _start_round(self) -> None:
        if self._is_through:
            self._reached = None
            self._is_through = False

    def _load(self) -> bool:
        """Load the slots before the next one of the round; return whether there was any."""
        before = self._this_round[0] if self._this_round else None
        while self.on_disk and not self._is_through and self._may_load():
            if before is not None and self._reached is not None and before <= self._reached:
                return False
            rows = self._read_sizes(lambda: self._file.lane_sizes(self._reached, _STEP))
            if rows is None:
                return False
            self._is_through = len(rows) < _STEP
            if rows:
                self._reached = rows[-1][0]
            if self._load_lanes(rows):
                return True
        return False

    def _read_sizes(self, read: Callable[[], list[LaneSize]]) -> list[LaneSize] | None:
        """Return the rows of ``read``. If it fails, log the error; return None for some seconds.

        After the last retry, what is on disk is given up, so that the crawl can end.
        """
        now = self._clock.monotonic()
        if now < self._load_at:
            return None
        try:
            rows = read()
        except sqlite3.Error as error:
            what, left = "Requests in JOBDIR can't be read: %d", self.on_disk
            if self._failures < len(RETRY_DELAYS):
                self._load_at = now + RETRY_DELAYS[self._failures]
                self._failures += 1
            else:  # so that the crawl can end
                what = "Requests can't be read, and are left in JOBDIR: %d"
                self.on_disk = 0
            log_queue_error(self._crawler, error, what, left)
            return None
        self._failures = 0
        return rows

    def _load_lanes(self, rows: list[LaneSize]) -> bool:
        """Load the lanes in ``rows`` that are not in memory, given up or damaged; return if any."""
        is_any = False
        for slot, groups in groupby(rows, itemgetter(0)):
            if slot in self._slots:
                continue
            for _, name, size in groups:
                origin = _read_origin(name)
                if not size or (slot, origin) in self._unreadable:
                    continue
                # It may be too low: after failures to read it was set to 0.
                self.on_disk = max(0, self.on_disk - size)
                if isinstance(origin, str):
                    self._give_up(slot, origin, size)
                    continue
                lane = self._find_or_add(slot, origin)
                self.resize(lane, size)
                self._activate(lane)
                is_any = True
        return is_any


def _read_origin(text: str) -> Origin | str | None:
    """Return the origin of a row; None if it has none, and the text itself if it is damaged."""
    try:
        return origin_of(text) if text else None
    except ValueError:
        return text


def _name_of(lane: Lane) -> LaneName:
    return lane.slot.name, _text_of(lane.origin)


def _text_of(origin: Origin | None) -> str:
    return "" if origin is None else str(origin)
