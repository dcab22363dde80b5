"""The priority queue of Scrapy's scheduler, which keeps requests until they may leave.

Requests are sorted into lanes, one for each origin in each download slot, so that an origin whose
requests must wait doesn't block the other origins of its slot. To pop a request, the queue goes
through the slots in the order of ``SlotOrder``. For the first lane of a slot, ``WaitingLanes``
decides whether its next request may leave. If not, the lane waits until a time that the admission
has returned, or until that calls ``hold_changed``, and the next lane is tried.

Requests are in memory. With JOBDIR they are on disk, and ``SlotsOnDisk`` loads only the lanes that
come next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from typing import Any, Final

from scrapy import Request, squeues
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, QueueProtocol
from scrapy.utils.misc import load_object

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.reason import Hold, Reason
from scrapy_rep.admission.ticket import Source, store_source
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.lanes import Lane, Lanes, RequestsInMemory, Slot
from scrapy_rep.scheduler.request_file import STATE
from scrapy_rep.scheduler.requests_on_disk import RequestsOnDisk, UnreadableError
from scrapy_rep.scheduler.slot_order import SlotOrder
from scrapy_rep.scheduler.slots_on_disk import RETRY_DELAYS, SlotsOnDisk, log_error
from scrapy_rep.scheduler.waiting_lanes import WaitingLanes
from scrapy_rep.utils import download_slots, scrapy_internals
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger

logger: Final = LimitedLogger(__name__)

_FILE_CHECK_INTERVAL: Final = 5
"""Seconds between two checks that the file still exists. The engine pops at least every five
seconds, too, so no timer is needed."""


_NAME: Final = re.compile("(Pickle|Marshal|)(Fifo|Lifo)(Memory|Disk|SQLite)Queue")
_QUEUE_CLASSES: Final = {
    queue_class: (1 if "Fifo" in name else -1, name.startswith("Marshal"))
    for name, queue_class in vars(squeues).items()
    if _NAME.fullmatch(name)
}
"""The queue classes of this version of Scrapy: 1 for first in, first out, or -1 for last in, first
out; and whether the class serializes with marshal. Other disk queues use pickle."""


class _UnfitError(Exception):
    """RobotsAwarePriorityQueue can't replace Scrapy's queue; the message has the reason."""


class _Unreadable(Reason):
    """The requests of a lane can't be read from JOBDIR. Only the queue knows this reason."""

    text = "the requests can't be read from JOBDIR"
    end = "the next try to read them"


_UNREADABLE: Final = _Unreadable()


class RobotsAwarePriorityQueue:
    """Holds requests until the robots.txt of their origin is known, and while it is unreachable.

    Requests also wait for the delay of their site, and after their site has answered 429 or 503.
    Otherwise the order is that of Scrapy's DownloaderAwarePriorityQueue: the download slot with the
    fewest active downloads is next; of slots with as few, the next one by name. Each origin of a
    slot has a queue of its own. If the next requests of two of these queues have the same priority,
    the queue whose last request left longer ago is next.

    Without RobotsTxtMiddleware (``ROBOTSTXT_OBEY = False``) no requests are held back.
    """

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, *args: Any, **kwargs: Any
    ) -> RobotsAwarePriorityQueue | DownloaderAwarePriorityQueue:
        """Return the queue; if the crawl can't use it, Scrapy's DownloaderAwarePriorityQueue.

        Raises SettingsError if JOBDIR can't be used, and ValueError, as Scrapy's queue does, if
        CONCURRENT_REQUESTS_PER_IP is set.
        """
        try:
            return cls(crawler, *args, **kwargs)
        except _UnfitError as error:
            if not kwargs.get("key"):  # the queue in memory, built first, has logged it already
                logger.warning(
                    "%s: Scrapy's own priority queue is used, which does not hold requests back",
                    error,
                    extra={"spider": crawler.spider},
                )
            return DownloaderAwarePriorityQueue.from_crawler(crawler, *args, **kwargs)

    def __init__(
        self,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        startprios: dict[str, Iterable[int]] | list[Any] | None = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
        clock: Clock | None = None,
    ) -> None:
        _check_fits(crawler, downstream_queue_cls, start_queue_cls)
        self._crawler = crawler
        self._clock = clock or Clock()
        self._slot_name = scrapy_internals.downloader_of(crawler).get_slot_key
        self._admission = Admission.of(crawler)
        self._ranks = count()
        self._order, marshals = _QUEUE_CLASSES[downstream_queue_cls]
        self._start_order = _QUEUE_CLASSES[start_queue_cls][0] if start_queue_cls else 0
        self._next_file_check = -math.inf
        self._disk = RequestsOnDisk(crawler, key, startprios, marshals=marshals) if key else None
        self._requests = self._disk or RequestsInMemory()
        self._lanes = Lanes()
        self._waiting = WaitingLanes(
            crawler, self._admission, self._lanes, self._head, self._requests, self._clock
        )
        self._slots_on_disk = None
        if self._disk is not None:
            self._slots_on_disk = SlotsOnDisk(
                crawler, self._disk, self._lanes, self._rank_or_wait, self._may_load, self._clock
            )
        self._slot_order = SlotOrder(self._lanes.slots, crawler, self._slots_on_disk)

    # What the scheduler calls.

    def push(self, request: Request) -> None:
        """Add ``request``.

        :raises ValueError: if it can't be written to disk; the scheduler then keeps it in memory.
        """
        if self._disk is not None:
            self._disk.reject_if_closed(request)
        # A spider may set a download slot of any type, but the names of slots are sorted here.
        slot, origin = str(self._slot_name(request)), self._origin(request)
        start = bool(self._start_order and request.meta.get("is_start_request", False))
        order = self._start_order if start else self._order
        item = -request.priority, start, order, request
        if self._slots_on_disk is not None and self._slots_on_disk.load_or_leave_on_disk(
            slot, self._slot_order.passed
        ):
            self._slots_on_disk.push(slot, origin, *item)
        else:
            self._push(self._lanes.lane(slot, origin), *item)
        if self._admission is not None:
            self._admission.idle.request_pushed()

    def _push(self, lane: Lane, *item: Any) -> None:
        try:
            self._requests.add(lane, *item)
        except BaseException:
            self._resize(lane, lane.size)
            raise
        left = 0
        if self._slots_on_disk is not None:
            left = self._slots_on_disk.pop_unreadable(lane.slot.name, lane.origin)
        self._lanes.resize(lane, lane.size + 1 + left)
        if left:
            lane.heap.clear()  # those left on disk may come first: _rank_or_wait reads the key
            self._rank_or_wait(lane)
        else:
            self._rank_lane(lane)
        self._waiting.count_if_deferred(lane)

    def pop(self) -> Request | None:
        """Remove the next request that may leave, and return it; None if no request may."""
        if self._disk is not None:
            now = self._clock.monotonic()
            self._disk.delete_finished(now)
            if now >= self._next_file_check:
                self._next_file_check = now + _FILE_CHECK_INTERVAL
                self._disk.log_if_removed()
        while (lane := self._select_lane()) is not None:
            try:
                request = self._pop(lane)
            except Exception as error:  # noqa: BLE001 - logged
                self._retry_later(lane, error)
                continue
            if request is None:
                continue
            if self._admission is not None:
                if lane.origin is None and self._origin(request) is not None:
                    # An earlier crawl, in which an override governed the request, has written it to
                    # a lane without origin: it goes to the lane of its origin.
                    with suppress(ValueError):  # else it waits in the middleware
                        self.push(request)
                        continue
                store_source(request, Source.OVERDUE if lane.overdue else Source.QUEUE)
                self._admission.idle.request_popped()
            if self._slots_on_disk is not None and not self._waiting.remembers(lane):
                self._slots_on_disk.move_to_disk(lane)
            return request
        return None

    def close(self) -> dict[str, list[int]] | list[Any]:
        """Stop all timers, and close the file.

        Return the state that the scheduler writes to JOBDIR, empty if no requests are left.
        """
        self._waiting.stop()
        self._lanes.clear()
        return STATE if self._disk is not None and self._disk.close() else {}

    def __len__(self) -> int:
        """Return the number of requests; 0 if all are deferred, so that ``spider_idle`` is sent."""
        deferred = self._waiting.count_deferred()
        if self._admission is not None and self._admission.idle.counts_as_empty(deferred):
            return 0
        return self._lanes.size + self._lanes.on_disk

    def __contains__(self, slot: str) -> bool:
        return slot in self._lanes.slots or (
            self._slots_on_disk is not None and slot in self._slots_on_disk
        )

    # Lanes.

    def _head(self, lane: Lane) -> Request:
        """Return the next request of ``lane`` without removing it; pop those that can't be read.

        :raises LookupError: if none of its requests can be read.
        """
        while lane.size:
            try:
                return self._requests.read(lane)
            except UnreadableError:  # noqa: PERF203 - seldom more than one
                self._pop(lane)
        raise LookupError("none of the requests could be read")

    def _origin(self, request: Request) -> Origin | None:
        return None if self._admission is None else self._admission.origin_governing(request)

    def _pop(self, lane: Lane) -> Request | None:
        """Pop the next request of ``lane``; log it and return None if it can't be read."""
        request = None
        try:
            request = self._requests.pop(lane)
        except UnreadableError as error:
            # Without a traceback, as there may be many of them.
            stats.count(self._crawler, stats.QUEUE_UNREADABLE)
            stats.count(self._crawler, stats.QUEUE_ERRORS)
            logger.error(  # noqa: TRY400 - the same
                "Unable to read request: %s - reason: %s",
                error,
                error.__cause__,
                extra={"spider": self._crawler.spider},
            )
        lane.failures = 0
        self._slot_order.set_last_popped(lane.slot)
        if lane.heap:
            # After rows that can't be read, the size may be too low.
            self._resize(lane, max(1, lane.size - 1))
            self._rank_lane(lane, served=True)
        else:
            self._resize(lane, lane.size - 1)
            if lane.size:
                self._leave_on_disk(lane)
        return request

    def _resize(self, lane: Lane, size: int) -> None:
        self._lanes.resize(lane, size)
        if not size:
            self._waiting.discard(lane)

    def _retry_later(self, lane: Lane, error: Exception) -> None:
        """Log ``error``, and let ``lane``, which can't be read, wait for the next try to read it.

        After the last try, its requests are left on disk, so that the crawl can end.
        """
        log_error(self._crawler, error, "The requests of %s can't be read", lane.slot.name)
        if lane.failures == len(RETRY_DELAYS):
            self._leave_on_disk(lane)
            return
        until = self._clock.monotonic() + RETRY_DELAYS[lane.failures]
        self._waiting.let_wait(lane, Hold(_UNREADABLE, until))
        lane.failures += 1

    def _leave_on_disk(self, lane: Lane) -> None:
        if self._slots_on_disk is not None:
            self._slots_on_disk.give_up(lane.slot.name, lane.origin, lane.size)
        self._resize(lane, 0)

    def _may_load(self) -> bool:
        """Return whether more lanes may be loaded: not while origins in memory await lookups."""
        return self._admission is None or self._admission.has_room_for_lookups

    # Selection of the next lane.

    def _rank_or_wait(self, lane: Lane) -> None:
        """Rank ``lane`` after it was loaded from disk, or after its wait has ended."""
        try:
            if not lane.heap and self._disk is not None:
                self._disk.set_next_key(lane)
        except Exception as error:  # noqa: BLE001 - logged
            self._retry_later(lane, error)
            return
        if lane.heap:
            self._rank_lane(lane)
        else:
            self._leave_on_disk(lane)

    def _rank_lane(self, lane: Lane, *, served: bool = False) -> None:
        """Rank ``lane`` by its next request, unless the lane waits.

        If the lane was ``served``, it comes after lanes of the same priority.
        """
        if lane in self._waiting:
            return
        priority, start = lane.heap[0][:2]
        if lane.rank is None or served or (priority, start) != lane.rank[:2]:
            lane.slot.add(lane, (priority, start, next(self._ranks)))
        self._slot_order.add(lane.slot)

    def _select_lane(self) -> Lane | None:
        for woken in self._waiting.pop_woken():
            self._rank_or_wait(woken)
        try:
            for slot in self._slot_order.pop_each():
                if (lane := self._ready_lane(slot)) is not None:
                    self._slot_order.add(slot)
                    return lane
            return None
        finally:
            if self._admission is not None:
                self._admission.look_up()

    def _ready_lane(self, slot: Slot) -> Lane | None:
        while (lane := slot.first_lane()) is not None:
            try:
                if self._waiting.wait_unless_ready(lane):
                    return lane
            except Exception as error:  # noqa: BLE001, PERF203 - logged
                # The middleware decides again. If that fails, too, it drops the request.
                what = "Error while checking whether requests to %s must wait"
                log_error(self._crawler, error, what, lane.origin)
                return lane
        return None


def _check_fits(crawler: Crawler, *queue_classes: type[Any] | None) -> None:
    """Raise _UnfitError if the queue can't be used; ValueError as ``from_crawler`` does."""
    if crawler.settings.getint("CONCURRENT_REQUESTS_PER_IP"):
        raise ValueError("The priority queue does not support CONCURRENT_REQUESTS_PER_IP")
    wheres = ("MEMORY", "DISK") if crawler.settings.get("JOBDIR") else ("MEMORY",)
    names = [f"SCHEDULER_{start}{where}_QUEUE" for where in wheres for start in ("", "START_")]
    configured = [(name, crawler.settings.get(name)) for name in names]
    given = [("A queue class of the scheduler", queue_class) for queue_class in queue_classes]
    for name, value in configured + given:
        if value and load_object(value) not in _QUEUE_CLASSES:
            raise _UnfitError(f"{name} is {value!r}, which is none of Scrapy's own")
    if what := download_slots.describe_missing_attribute(
        crawler
    ) or scrapy_internals.describe_missing_attribute(crawler):
        raise _UnfitError(what)
