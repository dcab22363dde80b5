"""The lanes that wait, of a queue in memory or on disk.

Before the next request of a lane leaves, ``Admission.admit`` is called. If the request may not
leave, the lane waits until the time that the admission has returned, or until that calls
``hold_changed`` with the origin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.idle import describe_outages
from scrapy_rep.admission.lookup import MOST_COMPARED, Lookups
from scrapy_rep.admission.reason import Hold
from scrapy_rep.admission.waiting import Waiting
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.lanes import Lane, Lanes, RequestsInMemory
from scrapy_rep.scheduler.requests_on_disk import RequestsOnDisk
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.downloads import Route, first_by_other_route
from scrapy_rep.utils.scrapy_internals import wake_engine


class WaitingLanes:
    """Lets lanes wait as long as the admission requires.

    Requests of an unreachable origin are deferred for up to REP_DEFER_TIMEOUT. If the next try of
    its robots.txt is later, the requests leave as overdue, and the middleware drops them.
    """

    def __init__(
        self,
        crawler: Crawler,
        admission: Admission | None,
        lanes: Lanes,
        head: Callable[[Lane], Request],
        requests: RequestsInMemory | RequestsOnDisk,
        clock: Clock,
    ) -> None:
        """``admission`` is None if the crawl doesn't obey robots.txt.

        ``head`` returns the next request of a lane, or raises LookupError if none can be read.
        """
        self._crawler = crawler
        self._admission = admission
        self._timeout = 0.0 if admission is None else admission.defer_timeout
        self._lanes = lanes
        self._head = head
        self._requests = requests
        self._clock = clock
        self._waiting: Waiting[Lane] = Waiting(clock, self._wake)
        self._woken: deque[Lane] = deque()
        """Lanes whose wait has ended since the last pop."""
        self._deferred: set[Lane] = set()
        """Lanes whose requests wait for the next try of an unreachable robots.txt."""
        self._since: dict[Lane, float] = {}
        """When the first request of these lanes, and of those whose requests leave as overdue, was
        deferred, in seconds of the monotonic clock."""
        self.hold_changed = self._waiting.hold_changed
        """Ends the wait of all lanes of an origin, so that the admission decides again."""
        if admission is not None:
            admission.attach(self)

    def __contains__(self, lane: Lane) -> bool:
        return lane in self._waiting

    def remembers(self, lane: Lane) -> bool:
        """Return whether ``lane`` waits, or its requests are deferred."""
        return lane in self._waiting or lane in self._since

    def wait_unless_ready(self, lane: Lane) -> bool:
        """Return whether the next request of ``lane`` may leave. If not, let the lane wait.

        If none of its requests can be read, the lane is empty afterwards, and doesn't wait.
        """
        if lane.origin is None or self._admission is None:
            return True
        hold = self._admission.admit(lane.origin, partial(self._head, lane))
        if not lane.size:
            return False
        lane.overdue = False
        if hold is not None and hold.reason.defers:
            if self._is_overdue(lane, hold.until):
                lane.overdue = True
                return True
        elif self._since and (hold is None or not isinstance(hold.reason, Lookups)):
            self._forget(lane)
        if hold is None:
            return True
        self.let_wait(lane, hold)
        return False

    def let_wait(self, lane: Lane, hold: Hold) -> None:
        lane.rank = None
        self._waiting.add(lane, lane.origin, hold)

    def pop_woken(self) -> Iterator[Lane]:
        while self._woken:
            lane = self._woken.popleft()
            if lane.size and lane not in self._waiting:
                yield lane

    def count_if_deferred(self, lane: Lane) -> None:
        if lane in self._deferred:
            stats.count(self._crawler, stats.DEFERRED)

    def discard(self, lane: Lane) -> None:
        """Forget a lane that has no requests any more."""
        self._forget(lane)
        self._waiting.discard(lane)

    # What the admission calls: see ``Queue``.

    def head_of(self, origin: Origin, failed_routes: Collection[Route]) -> Request | None:
        for lane in self._waiting.keys_of(origin):
            with suppress(LookupError):
                head = self._head(lane)
                if not failed_routes:
                    return head
                first = self._requests.read_first(lane, MOST_COMPARED)
                return first_by_other_route(first, failed_routes) or head
        return None

    def count_deferred(self) -> tuple[int, bool]:
        only = not self._lanes.on_disk and len(self._deferred) == len(self._lanes)
        return len(self._deferred), only

    def idle_line(self) -> str:
        if not self._deferred or self._admission is None:
            return ""
        origins = {lane.origin for lane in self._deferred if lane.origin is not None}
        outages = [(origin, self._admission.outage(origin)) for origin in origins]
        since = min(self._since[lane] for lane in self._deferred)
        left = since + self._timeout - self._clock.monotonic()
        return describe_outages(outages, self._clock.time(), self._timeout, left)

    def holds(self) -> Iterator[tuple[Origin, Hold, int]]:
        for lane, origin, hold in self._waiting:
            if origin is not None:
                yield origin, hold, lane.size

    def stop(self) -> int:
        self._waiting.close()
        requests = sum(lane.size for lane in self._deferred)
        if requests:
            stats.count(self._crawler, stats.DEFERRED_WAITING, requests)
        self._deferred.clear()
        return requests

    def _wake(self, lanes: list[Lane]) -> None:
        self._woken += lanes
        wake_engine(self._crawler)

    def _is_overdue(self, lane: Lane, until: float) -> bool:
        """Return whether the next try of robots.txt, at ``until``, comes too late for ``lane``.

        If it is not too late, the lane is marked as deferred.
        """
        now = self._clock.monotonic()
        if until > self._since.get(lane, now) + self._timeout:
            self._deferred.discard(lane)
            return True
        if lane not in self._since and self._admission is not None:
            self._since[lane] = now
            self._deferred.add(lane)
            stats.count(self._crawler, stats.DEFERRED, lane.size)
        return False

    def _forget(self, lane: Lane) -> None:
        """Let the next request of ``lane`` that is deferred wait for all of REP_DEFER_TIMEOUT."""
        self._deferred.discard(lane)
        self._since.pop(lane, None)
