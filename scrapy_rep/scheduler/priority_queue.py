"""The priority queue of Scrapy's scheduler, which keeps requests until they may leave.

Requests are sorted into lanes, one for each origin in each download slot, so that an origin whose
requests must wait doesn't block the other origins of its slot. To pop a request, the queue takes
the next lane that is ready, and asks the admission whether its next request may leave. If not, the
lane waits until a time, or until the admission calls ``hold_changed``; and the queue asks about the
next lane. When there is room for a lookup, the admission asks for the next unknown origin.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from scrapy import Request, signals, squeues
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, QueueProtocol, ScrapyPriorityQueue
from scrapy.utils.misc import load_object

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.hold import UNKNOWN, Head, Hold, Queue
from scrapy_rep.admission.ticket import TICKET_KEY, Source, store_source, ticket_of
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.jobdir_state import other_queue
from scrapy_rep.scheduler.request_heaps import Lane, RequestHeaps
from scrapy_rep.scheduler.request_table import RequestTable
from scrapy_rep.utils import download_slots, scrapy_internals
from scrapy_rep.utils.concurrency import Clock, Timer
from scrapy_rep.utils.download_slots import busy_slots, slot_name
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import host_of
from scrapy_rep.utils.scrapy_internals import wake_engine
from scrapy_rep.utils.text import printable_request

_NAME: Final = re.compile("(Pickle|Marshal|)(Fifo|Lifo)(Memory|Disk|SQLite)Queue")
_QUEUE_CLASSES: Final = {
    queue_class: 1 if "Fifo" in name else -1
    for name, queue_class in vars(squeues).items()
    if _NAME.fullmatch(name)
}
"""The queue classes of this version of Scrapy: 1 for first in, first out, -1 for last in."""
_MOST_ASKED: Final = 200
"""Number of lanes about which the admission is asked in one pop, so that the loop goes on."""


class RobotsAwarePriorityQueue(Queue):
    """Holds requests until the robots.txt of their origin is known, and while it is unreachable.

    Requests also wait for the delay of their site, and after their site has answered 429 or 503.
    Otherwise the order is that of Scrapy's DownloaderAwarePriorityQueue: the download slot with the
    fewest active downloads is next; of slots with as few, the next one by name. Each origin of a
    slot has a queue of its own. If the next requests of two of these queues have the same priority,
    the queue whose last request left longer ago is next.

    Without RobotsTxtMiddleware (``ROBOTSTXT_OBEY = False``) no requests are held back. If the queue
    can't be used, Scrapy's own is, with a warning. Its length is 0 if all requests are deferred.
    """

    _is_alone = True
    """Whether the crawl ends if nothing is left to do here."""

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
        SettingsError if JOBDIR can't be used.
        """
        why = _describe_misfit(crawler)
        theirs = other_queue(crawler.settings)
        if theirs is not None:
            why = f"JOBDIR has requests of Scrapy's {theirs.__name__}"
        if why is None:
            queue = cls(crawler, downstream_queue_cls, key, *args, **kwargs)
            if not key and crawler.settings.get("JOBDIR"):
                crawler.signals.connect(queue._log_lost, signals.spider_closed)
            return queue
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
        self._crawler = crawler
        self._clock = clock or Clock()
        self._logger = LimitedLogger(__name__, crawler)
        self._order = _QUEUE_CLASSES[downstream_queue_cls]
        self._start_order = _QUEUE_CLASSES[start_queue_cls] if start_queue_cls else 0
        self._requests: RequestHeaps | RequestTable = (
            RequestTable.of(crawler, key, startprios) if key else RequestHeaps()
        )
        self._state: Any = None
        """After ``close``, what is stored in JOBDIR."""
        self._last = ""
        """The name of the last slot that a request was popped from; the slots after it are next."""
        self._busy: dict[str, int] = {}
        """The number of downloads of slots that have some."""
        self._holds: dict[Lane, Hold] = {}
        """Why lanes wait that don't wait for a lookup."""
        self._deferred_since: dict[Lane, float] = {}
        """Since when lanes are deferred, also those that are overdue."""
        self._timer: Timer | None = None
        self._due = math.inf
        """When the timer wakes the next lanes."""
        self._admission = Admission.of(crawler)
        if self._admission is not None:
            self._admission.attach(self)

    def __len__(self) -> int:
        """Return the number of requests; 0 if all are deferred, so that ``spider_idle`` is sent."""
        if self._admission and self._admission.deferral.counts_as_empty(self.count_deferred()):
            return 0
        return max(0, self._requests.size)

    def push(self, request: Request) -> None:
        """Add ``request``.

        :raises ValueError: if it can't be written to disk; the scheduler then keeps it in memory.
        """
        if self._state is not None:
            self._logger.warning(
                "%s came after the queue was closed, and is not stored in JOBDIR",
                printable_request(request),
            )
            raise ValueError("the queue is closed")
        # A spider may set any download slot. Names are sorted, and SQLite ends them at a NUL.
        slot = str(slot_name(self._crawler, request)).replace("\0", "")
        origin = self._origin(request)
        self._undo_reserve(request)
        start = bool(self._start_order and request.meta.get("is_start_request", False))
        rank = -request.priority, start, self._start_order if start else self._order
        self._requests.push(slot, origin, rank, request)
        if self._deferred_since and origin is not None:
            lanes = self._requests.lanes_of(origin)
            if any(lane.slot == slot and lane in self._deferred_since for lane in lanes):
                stats.count(self._crawler, stats.DEFERRED)
        if self._admission is not None:
            self._admission.deferral.request_pushed()

    def _undo_reserve(self, request: Request) -> None:
        """Give back the turn of a request in whose place a middleware has returned ``request``."""
        ticket = ticket_of(request)
        if self._admission is not None and ticket is not None and ticket.delay:
            del request.meta[TICKET_KEY]
            self._admission.hosts.undo_reserve(host_of(Request(ticket.url or request.url)))

    def pop(self) -> Request | None:
        """Remove the next request that may leave, and return it; None if no request may.

        If the file can't be read, it is closed, so that the crawl ends.
        """
        self._requests.delete_finished()
        try:
            for _ in range(_MOST_ASKED):
                lane = self._next_lane()
                if lane is None:
                    return None
                source = self._source_if_free(lane)
                if source is not None and (request := self._pop(lane)) is not None:
                    if self._admission is not None:
                        self._admission.deferral.request_popped(source)
                        store_source(request, source)
                    return request
            wake_engine(self._crawler)
        except (sqlite3.Error, ValueError) as error:
            what = "The requests in JOBDIR can't be read, and are left there: %d"
            log_queue_error(self._crawler, error, what, self._requests.size)
            self.close()
        finally:
            if self._admission is not None:
                self._admission.unknown.begin_lookups()
        return None

    def close(self) -> Any:
        """Stop the timer, and close the file.

        Return the state that the scheduler writes to JOBDIR, empty if no requests are left there.
        """
        if self._state is None:
            self.stop()
            self._state = self._requests.close()
            self._requests = RequestHeaps()  # the admission may still ask
        return self._state

    def _log_lost(self) -> None:
        if self._requests.size:
            what = "Requests lost, because they can't be written to JOBDIR: %d"
            self._logger.warning(what, self._requests.size)

    # The next lane, and whether its next request may leave.

    def _next_lane(self) -> Lane | None:
        # Of a million slots only those are counted that had downloads at the last pop, that was
        # popped from last, or that is next.
        self._busy = busy_slots(self._crawler, self._busy)
        while (lane := self._requests.idle_lane(self._last, self._busy)) is not None:
            if not (busy := busy_slots(self._crawler, [lane.slot])):
                return lane
            self._busy.update(busy)
        order = sorted(self._busy, key=lambda slot: (self._busy[slot], slot <= self._last, slot))
        return self._requests.busy_lane(order)

    def _source_if_free(self, lane: Lane) -> Source | None:
        """Return as what the next request of ``lane`` leaves; None if it waits from now on.

        Requests of an unreachable origin are deferred for up to REP_DEFER_TIMEOUT. If the next try
        of its robots.txt is later, they leave as overdue, and the middleware drops them.
        """
        if lane.origin is None or self._admission is None:
            return Source.QUEUE
        try:
            hold = self._admission.admit(lane.origin, partial(self._first, lane))
        except Exception as error:  # noqa: BLE001 - logged
            # The middleware decides again. If that fails, too, it drops the request.
            what = "Error while checking whether requests to %s must wait"
            log_queue_error(self._crawler, error, what, lane.origin)
            return Source.QUEUE
        if hold is None:
            self._forget(lane)
            return Source.QUEUE
        if hold.reason.defers:
            since = self._deferred_since.get(lane, self._clock.monotonic())
            deferral, is_alone = self._admission.deferral, self._is_alone
            if deferral.is_overdue(since, hold, lane.origin, is_alone=is_alone):
                return Source.OVERDUE
            if lane not in self._deferred_since:
                self._deferred_since[lane] = since
                stats.count(self._crawler, stats.DEFERRED, self._requests.size_of(lane))
        self._let_wait(lane, hold)
        return None

    def _first(self, lane: Lane) -> Request | None:
        request = self._requests.first(lane)
        if request is None:
            self._forget(lane)
        return request

    def _let_wait(self, lane: Lane, hold: Hold) -> None:
        if not self._requests.size_of(lane):  # none of its requests could be read
            self._forget(lane)
        elif hold.reason is UNKNOWN:
            self._holds.pop(lane, None)
            self._requests.set_unknown(lane)
        else:
            if not hold.reason.defers:
                self._deferred_since.pop(lane, None)
            self._requests.set_waiting(lane, hold.until)
            self._holds[lane] = hold
            self._set_timer(hold.until)

    def _forget(self, lane: Lane) -> None:
        self._holds.pop(lane, None)
        self._deferred_since.pop(lane, None)

    def _pop(self, lane: Lane) -> Request | None:
        """Pop the next request of ``lane``; None if it can't be read."""
        self._last = lane.slot
        self._busy[lane.slot] = 0  # it is counted at the next pop
        request = self._requests.pop(lane)
        if (self._holds or self._deferred_since) and not self._requests.size_of(lane):
            self._forget(lane)
        return request

    def _origin(self, request: Request) -> Origin | None:
        """Return the origin whose robots.txt governs ``request``; None if none, or on an error."""
        if self._admission is None:
            return None
        try:
            return self._admission.decider.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - the middleware gets it, and drops the request
            what = "Error while asking what governs %s"
            log_queue_error(self._crawler, error, what, printable_request(request))
            return None

    # The end of waits.

    def _set_timer(self, until: float) -> None:
        if until >= self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = until
        seconds = max(0.0, until - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._wake_due)

    def _wake_due(self) -> None:
        # Event loops may fire a timer slightly early: the time for which it was set counts.
        now = max(self._clock.monotonic(), self._due)
        self._timer, self._due = None, math.inf
        self._set_timer(self._requests.wake_due(now))
        wake_engine(self._crawler)

    # What the admission calls.

    def hold_changed(self, origin: Origin) -> None:
        if self._requests.wake(origin):
            wake_engine(self._crawler)

    def next_unknown(self) -> tuple[Origin, Head] | None:
        lane = self._requests.next_unknown()
        if lane is None or lane.origin is None:
            return None
        return lane.origin, partial(self._first, lane)

    def count_deferred(self) -> tuple[int, bool]:
        return len(self._deferred_since), len(self._deferred_since) == self._requests.lanes

    def idle_line(self) -> str:
        origins = {lane.origin for lane in self._deferred_since if lane.origin is not None}
        return self._admission.deferral.describe(origins) if self._admission and origins else ""

    def holds(self) -> Iterator[tuple[Origin, Hold, int]]:
        if self._admission is None:
            return
        lookup = Hold(UNKNOWN, math.inf)
        for lane, size in self._requests.waiting():
            if lane.origin is not None:
                yield lane.origin, self._holds.get(lane, lookup), size

    def stop(self) -> int:
        """Stop the timer; count the deferred requests in the stats, and return their number."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        requests = sum(self._requests.size_of(lane) for lane in self._deferred_since)
        if requests:
            stats.count(self._crawler, stats.DEFERRED_WAITING, requests)
        self._deferred_since.clear()
        return requests


def log_queue_error(crawler: Crawler, error: BaseException, message: str, subject: object) -> None:
    """Log ``message``, formatted with ``subject``, and the traceback of ``error``; count it."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    LimitedLogger(__name__, crawler).error(message, subject, exc_info=error)


def _describe_misfit(crawler: Crawler) -> str | None:
    """Return why the queue can't be used, or None."""
    if crawler.settings.getint("CONCURRENT_REQUESTS_PER_IP"):
        return "CONCURRENT_REQUESTS_PER_IP is set"  # with it Scrapy's queue raises ValueError
    for where in ("MEMORY", "DISK") if crawler.settings.get("JOBDIR") else ("MEMORY",):
        for name in (f"SCHEDULER_{where}_QUEUE", f"SCHEDULER_START_{where}_QUEUE"):
            value = crawler.settings.get(name)
            if value and load_object(value) not in _QUEUE_CLASSES:
                return f"{name} is {value!r}, which is none of Scrapy's own"
    return download_slots.describe_missing_attribute(
        crawler
    ) or scrapy_internals.describe_missing_attribute(crawler)
