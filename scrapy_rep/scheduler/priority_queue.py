"""The priority queue of Scrapy's scheduler, which keeps requests until they may leave.

Requests are sorted into lanes, one for each origin in each download slot, so that an origin whose
requests must wait doesn't block the other origins of its slot. To pop a request, the queue goes
through the slots in the order of ``Lanes``. For the first lane of a slot, the admission decides
whether its next request may leave. If not, the lane waits, and the next lane is tried.

Requests are in memory. With JOBDIR they are on disk, and ``LanesOnDisk`` loads only the lanes that
come next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final

from scrapy import Request, squeues
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, QueueProtocol, ScrapyPriorityQueue
from scrapy.utils.misc import load_object

from scrapy_rep import stats
from scrapy_rep.admission.lookup import Lookups
from scrapy_rep.admission.reason import Hold, HoldReason
from scrapy_rep.admission.ticket import Source
from scrapy_rep.admission.unreachable import describe_outages
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.holding_queue import HoldingQueue, log_queue_error
from scrapy_rep.scheduler.jobdir import other_queue
from scrapy_rep.scheduler.lanes import Lane, Lanes, Slot
from scrapy_rep.scheduler.lanes_on_disk import RETRY_DELAYS, LanesOnDisk, UnreadableError
from scrapy_rep.utils import download_slots, scrapy_internals
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger

_NAME: Final = re.compile("(Pickle|Marshal|)(Fifo|Lifo)(Memory|Disk|SQLite)Queue")
_QUEUE_CLASSES: Final = {
    queue_class: (1 if "Fifo" in name else -1, name.startswith("Marshal"))
    for name, queue_class in vars(squeues).items()
    if _NAME.fullmatch(name)
}
"""The queue classes of this version of Scrapy: 1 for first in, first out, or -1 for last in, first
out; and whether the class serializes with marshal. Other disk queues use pickle."""


class _Unreadable(HoldReason):
    """The requests of a lane can't be read from JOBDIR. Only the queue knows this reason."""

    text = "the requests can't be read from JOBDIR"
    end = "the next try to read them"


_UNREADABLE: Final = _Unreadable()


class RobotsAwarePriorityQueue(HoldingQueue[Lane]):
    """Holds requests until the robots.txt of their origin is known, and while it is unreachable.

    Requests also wait for the delay of their site, and after their site has answered 429 or 503.
    Otherwise the order is that of Scrapy's DownloaderAwarePriorityQueue: the download slot with the
    fewest active downloads is next; of slots with as few, the next one by name. Each origin of a
    slot has a queue of its own. If the next requests of two of these queues have the same priority,
    the queue whose last request left longer ago is next.

    Without RobotsTxtMiddleware (``ROBOTSTXT_OBEY = False``) no requests are held back. If the queue
    can't be used, Scrapy's own is, with a warning. Its length is 0 if all requests are deferred.
    """

    @classmethod
    def from_crawler(
        cls,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        *args: Any,
        **kwargs: Any,
    ) -> RobotsAwarePriorityQueue | DownloaderAwarePriorityQueue | ScrapyPriorityQueue:
        """Return the queue; if the crawl can't use it, Scrapy's DownloaderAwarePriorityQueue.

        If Scrapy's queue has begun the crawl in JOBDIR, it goes on with that queue. Raises
        SettingsError if JOBDIR can't be used, and ValueError, as Scrapy's queue does, if
        CONCURRENT_REQUESTS_PER_IP is set.
        """
        why = _describe_misfit(crawler, downstream_queue_cls, kwargs.get("start_queue_cls"))
        theirs = other_queue(crawler.settings)
        if theirs is not None:
            why = f"JOBDIR has requests of Scrapy's {theirs.__name__}"
        if why is None:
            return cls(crawler, downstream_queue_cls, key, *args, **kwargs)
        if not key:  # the queue in memory, built first, has logged it already
            LimitedLogger(__name__, crawler).warning(
                "%s: Scrapy's own priority queue is used, which does not hold requests back", why
            )
        return (theirs or DownloaderAwarePriorityQueue).from_crawler(
            crawler, downstream_queue_cls, key, *args, **kwargs
        )

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
        super().__init__(crawler, clock or Clock())
        self._logger = LimitedLogger(__name__, crawler)
        self._slot_name = scrapy_internals.downloader_of(crawler).get_slot_key
        self._ranks = count()
        self._order, marshals = _QUEUE_CLASSES[downstream_queue_cls]
        self._start_order = _QUEUE_CLASSES[start_queue_cls][0] if start_queue_cls else 0
        self._deferred: set[Lane] = set()
        """Lanes whose requests wait for the next try of an unreachable robots.txt."""
        self._lanes = Lanes(crawler)
        if key:
            self._lanes = LanesOnDisk(
                crawler,
                key,
                startprios,
                self._rank,
                lambda: self._has_room_for_lookups,
                self._clock,
                marshals=marshals,
            )

    # What the scheduler calls.

    def push(self, request: Request) -> None:
        """Add ``request``.

        :raises ValueError: if it can't be written to disk; the scheduler then keeps it in memory.
        """
        # A spider may set a download slot of any type, but the names of slots are sorted here.
        slot, origin = str(self._slot_name(request)), self._origin(request)
        start = bool(self._start_order and request.meta.get("is_start_request", False))
        order = self._start_order if start else self._order
        lane = self._lanes.push(slot, origin, (-request.priority, start, order), request)
        if lane is not None:
            self._rank(lane)
            self._count_as_deferred(lane in self._deferred)
        self._request_pushed()

    def pop(self) -> Request | None:
        """Remove the next request that may leave, and return it; None if no request may."""
        self._lanes.pop_begins()
        while (lane := self._select_lane()) is not None:
            try:
                request = self._pop(lane)
            except Exception as error:  # noqa: BLE001 - logged
                self._retry_later(lane, error)
                continue
            if request is None:
                continue
            if lane.origin is None and self._origin(request) is not None:
                # An earlier crawl, in which an override governed the request, has written it to a
                # lane without origin: it goes to the lane of its origin.
                with suppress(ValueError):  # else it waits in the middleware
                    self.push(request)
                    continue
            if lane.since is None and lane not in self._waiting:
                self._lanes.request_popped(lane)
            return self._request_leaves(request, Source.OVERDUE if lane.overdue else Source.QUEUE)
        return None

    def close(self) -> dict[str, list[int]] | list[Any]:
        """Stop all timers, and close the file.

        Return the state that the scheduler writes to JOBDIR, empty if no requests are left there.
        """
        self.stop()
        return self._lanes.close()

    def _count(self) -> int:
        return self._lanes.size + self._lanes.on_disk

    def __contains__(self, slot: str) -> bool:
        return self._lanes.has_slot(slot)

    # What the admission calls.

    def head_of(self, origin: Origin) -> Request | None:
        for lane in self._waiting.keys_of(origin):
            with suppress(LookupError):
                return self._head(lane)
        return None

    def count_deferred(self) -> tuple[int, bool]:
        only = not self._lanes.on_disk and len(self._deferred) == len(self._lanes)
        return len(self._deferred), only

    def idle_line(self) -> str:
        if not self._deferred or self._admission is None:
            return ""
        origins = {lane.origin for lane in self._deferred if lane.origin is not None}
        outages = [(origin, self._admission.outage(origin)) for origin in origins]
        return describe_outages(outages, self._clock.time(), self._admission.idle.seconds_left)

    def holds(self) -> Iterator[tuple[Origin, Hold, int]]:
        for lane, origin, hold in self._waiting:
            if origin is not None:
                yield origin, hold, lane.size

    def stop(self) -> int:
        """Stop all timers; count the deferred requests in the stats, and return their number."""
        self._waiting.close()
        requests = sum(lane.size for lane in self._deferred)
        if requests:
            stats.count(self._crawler, stats.DEFERRED_WAITING, requests)
        self._deferred.clear()
        return requests

    # Lanes.

    def _head(self, lane: Lane) -> Request:
        """Return the next request; pop those that can't be read. Raises LookupError if all are."""
        while lane.size:
            try:
                return self._lanes.read(lane)
            except UnreadableError:  # noqa: PERF203 - seldom more than one
                self._pop(lane)
        raise LookupError("none of the requests could be read")

    def _pop(self, lane: Lane) -> Request | None:
        """Pop the next request of ``lane`` and rank the lane anew, or remove it if it is empty.

        If the request can't be read, log and count it, and return None.
        """
        request = None
        try:
            request = self._lanes.pop(lane)
        except UnreadableError as error:
            # Without a traceback, as there may be many of them.
            stats.count(self._crawler, stats.QUEUE_UNREADABLE)
            stats.count(self._crawler, stats.QUEUE_ERRORS)
            self._logger.error(  # noqa: TRY400 - the same
                "Unable to read request: %s - reason: %s", error, error.__cause__
            )
        lane.failures = 0
        self._lanes.set_last_popped(lane.slot)
        # After rows that can't be read, the size may be too low.
        self._resize(lane, max(1 if lane.heap else 0, lane.size - 1))
        if lane.heap:
            self._rank(lane, served=True)
        elif lane.size:
            self._leave_on_disk(lane)
        return request

    def _resize(self, lane: Lane, size: int) -> None:
        """Set the number of requests of ``lane``; at 0 the lane is removed, and waits no longer."""
        self._lanes.resize(lane, size)
        if not size:
            self._forget_deferral(lane)
            self._waiting.discard(lane)

    def _retry_later(self, lane: Lane, error: Exception) -> None:
        """Log ``error``, and let ``lane``, which can't be read, wait for the next try to read it.

        After the last try, its requests are left on disk, so that the crawl can end.
        """
        log_queue_error(self._crawler, error, "The requests of %s can't be read", lane.slot.name)
        if lane.failures == len(RETRY_DELAYS):
            self._leave_on_disk(lane)
            return
        until = self._clock.monotonic() + RETRY_DELAYS[lane.failures]
        self._let_wait(lane, Hold(_UNREADABLE, until))
        lane.failures += 1

    def _leave_on_disk(self, lane: Lane) -> None:
        """Give up reading ``lane``, and remove it from memory."""
        self._lanes.give_up(lane)
        self._resize(lane, 0)

    # Selection of the next lane.

    def _select_lane(self) -> Lane | None:
        """Rank the lanes whose wait has ended; return the next lane whose request may leave.

        Lanes that must wait are set waiting, and pending lookups begun.
        """
        while self._woken:
            lane = self._woken.popleft()
            if lane.size:
                self._rank(lane)
        try:
            for slot in self._lanes.pop_slots():
                if (ready := self._ready_lane(slot)) is not None:
                    self._lanes.add_to_order(slot)
                    return ready
            return None
        finally:
            self._look_up()

    def _rank(self, lane: Lane, *, served: bool = False) -> None:
        """Rank ``lane`` by its next request, unless the lane waits.

        If the lane was ``served``, it comes after lanes of the same priority. If it can't be read,
        it is not ranked: it waits, or is left on disk.
        """
        if lane in self._waiting:
            return
        try:
            if not lane.heap:
                self._lanes.set_next_key(lane)
        except Exception as error:  # noqa: BLE001 - logged
            self._retry_later(lane, error)
            return
        if not lane.heap:
            self._leave_on_disk(lane)
            return
        priority, start = lane.heap[0][:2]
        if lane.rank is None or served or (priority, start) != lane.rank[:2]:
            lane.slot.set_rank(lane, (priority, start, next(self._ranks)))
        self._lanes.add_to_order(lane.slot)

    def _ready_lane(self, slot: Slot) -> Lane | None:
        """Return the first lane of ``slot`` whose request may leave, also after an error."""
        while (lane := slot.first_lane()) is not None:
            try:
                if self._may_leave(lane):
                    return lane
            except Exception as error:  # noqa: BLE001, PERF203 - logged
                # The middleware decides again. If that fails, too, it drops the request.
                what = "Error while checking whether requests to %s must wait"
                log_queue_error(self._crawler, error, what, lane.origin)
                return lane
        return None

    def _may_leave(self, lane: Lane) -> bool:
        """Return whether the next request of ``lane`` may leave. If not, let the lane wait.

        Requests of an unreachable origin are deferred for up to REP_DEFER_TIMEOUT. If the next try
        of its robots.txt is later, they leave as overdue, and the middleware drops them. If none of
        the requests can be read, the lane is empty afterwards, and doesn't wait.
        """
        hold = self._hold(lane.origin, partial(self._head, lane))
        if not lane.size:
            return False
        lane.overdue = False
        if hold is not None and hold.reason.defers:
            since = self._clock.monotonic() if lane.since is None else lane.since
            if self._is_overdue(lane, since, hold):
                self._deferred.discard(lane)
                lane.overdue = True
                return True
            if lane.since is None:
                lane.since = since
                self._deferred.add(lane)
                self._count_as_deferred(lane.size)
        elif lane.since is not None and not (hold and isinstance(hold.reason, Lookups)):
            self._forget_deferral(lane)
        if hold is not None:
            self._let_wait(lane, hold)
        return hold is None

    def _is_overdue(self, lane: Lane, since: float, hold: Hold) -> bool:
        """Return whether requests of ``lane``, deferred since ``since``, leave to be dropped."""
        if lane.origin is None or self._admission is None:
            return True
        return self._admission.idle.is_overdue(since, hold, self._admission.outage(lane.origin))

    def _let_wait(self, lane: Lane, hold: Hold) -> None:
        lane.rank = None
        self._waiting.add(lane, lane.origin, hold)

    def _forget_deferral(self, lane: Lane) -> None:
        """Let the next request of ``lane`` that is deferred wait for all of REP_DEFER_TIMEOUT."""
        self._deferred.discard(lane)
        lane.since = None


def _describe_misfit(crawler: Crawler, *queue_classes: type[Any] | None) -> str | None:
    """Return why the queue can't be used, or None; raise ValueError as ``from_crawler`` does."""
    if crawler.settings.getint("CONCURRENT_REQUESTS_PER_IP"):
        raise ValueError("The priority queue does not support CONCURRENT_REQUESTS_PER_IP")
    wheres = ("MEMORY", "DISK") if crawler.settings.get("JOBDIR") else ("MEMORY",)
    names = [f"SCHEDULER_{start}{where}_QUEUE" for where in wheres for start in ("", "START_")]
    configured = [(name, crawler.settings.get(name)) for name in names]
    given = [("A queue class of the scheduler", queue_class) for queue_class in queue_classes]
    for name, value in configured + given:
        if value and load_object(value) not in _QUEUE_CLASSES:
            return f"{name} is {value!r}, which is none of Scrapy's own"
    return download_slots.describe_missing_attribute(
        crawler
    ) or scrapy_internals.describe_missing_attribute(crawler)
