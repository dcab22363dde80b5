"""The lanes that wait, of a queue in memory or on disk.

A lane is the queue of one origin in one download slot. Before its next request leaves,
``Gate.hold`` is called. If the request may not leave, the lane waits until the time that the gate
has returned, or until the gate calls ``hold_changed`` with the origin. Then ``Gate.hold`` is called
again.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy_rep import stats
from scrapy_rep.scheduler.due import DueTimes
from scrapy_rep.scheduler.hold import HoldReason
from scrapy_rep.scheduler.idle import describe_outages
from scrapy_rep.scheduler.lookups import MOST_COMPARED
from scrapy_rep.scheduler.origin_queues import Lane, Slot
from scrapy_rep.utils.downloads import first_by_other_route
from scrapy_rep.utils.scrapy_internals import ExtraConcurrency, wake_engine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.gate import Gate
    from scrapy_rep.scheduler.hold import Hold
    from scrapy_rep.scheduler.origin_queues import Lanes
    from scrapy_rep.utils.clock import Clock
    from scrapy_rep.utils.downloads import Route


class WaitingLanes:
    """Lets lanes wait as long as the gate requires.

    Requests of an unreachable origin are deferred for up to REP_DEFER_TIMEOUT. If the next try of
    its robots.txt is later, the requests leave as overdue, and the middleware drops them.
    """

    def __init__(self, crawler: Crawler, gate: Gate | None, lanes: Lanes, clock: Clock) -> None:
        """``gate`` is None if the crawl doesn't obey robots.txt."""
        self._crawler = crawler
        self._gate = gate
        self._timeout = 0.0 if gate is None else gate.defer_timeout
        self._lanes = lanes
        self._clock = clock
        self._by_origin: dict[Origin, tuple[Lane, ...]] = {}
        """The lanes that wait because of the gate, by origin."""
        self._due: DueTimes[Lane | Slot] = DueTimes(clock, self._wake)
        self._woken: deque[Lane] = deque()
        """Lanes whose wait has ended since the last pop."""
        self._deferred: set[Lane] = set()
        self._in_turn: set[Lane] = set()
        """Lanes whose turn has come: the time that is reserved for their next request."""
        self._extra = ExtraConcurrency(crawler)
        if gate is not None:
            gate.attach(self)

    def wait_unless_ready(self, lane: Lane) -> bool:
        """Return whether the next request of ``lane`` may leave. If not, let the lane wait.

        If none of its requests can be read, the lane is empty afterwards, and doesn't wait.
        """
        if lane.origin is None or self._gate is None:
            return True
        if lane in self._in_turn:
            self._in_turn.discard(lane)
            self._extra.increase_for(len(self._in_turn))
        hold = self._gate.hold(lane.origin, lane.head)
        if not lane.size:
            return False
        if hold is not None and hold.reason is HoldReason.UNREACHABLE:
            if self._set_overdue(lane, hold.until):
                return True
        elif hold is None or hold.reason is not HoldReason.LOOKUP:
            self._deferred.discard(lane)
            lane.deferred_since, lane.overdue = None, False
        if hold is None:
            return True
        self._by_origin[lane.origin] = (*self._by_origin.get(lane.origin, ()), lane)
        self.set_waiting(lane, hold)
        return False

    def set_waiting(self, lane: Lane, hold: Hold) -> None:
        """Let ``lane`` wait until the time of ``hold``."""
        lane.hold, lane.rank = hold, None
        self._due.set(lane, hold.until)

    def slot_is_free(self, slot: Slot) -> bool:
        """Return whether requests may leave to ``slot``. If not, a timer ends the hold."""
        hold = None if self._gate is None else self._gate.hold_of_slot(slot.name)
        if hold is not None:
            self._due.set(slot, hold.until)
        return hold is None

    def pop_woken(self) -> Iterator[tuple[Lane, Hold]]:
        """Yield each lane whose wait has ended since the last call, and its former hold."""
        while self._woken:
            lane = self._woken.popleft()
            hold, lane.hold = lane.hold, None
            if hold is not None and lane.size:
                yield lane, hold

    def count_if_deferred(self, lane: Lane) -> None:
        """Count a request that was added to ``lane`` as deferred, if the lane is deferred."""
        if lane in self._deferred:
            stats.count(self._crawler, stats.DEFERRED)

    def discard(self, lane: Lane) -> None:
        """Forget a lane that has no requests any more."""
        self._deferred.discard(lane)
        self._in_turn.discard(lane)
        self._due.discard(lane)
        self._discard_waiting(lane)

    # What the gate calls.

    def hold_changed(self, origin: Origin) -> None:
        """End the wait of all lanes of ``origin``, so that the gate decides again."""
        for lane in self._by_origin.pop(origin, ()):
            self._due.discard(lane)
            self._woken.append(lane)

    def head_of(self, origin: Origin, failed_routes: Collection[Route]) -> Request | None:
        """Return the next waiting request of ``origin``, or None.

        ``failed_routes`` as in ``Queue.head_of``.
        """
        for lane in self._by_origin.get(origin, ()):
            with suppress(LookupError):
                head = lane.head()
                if not failed_routes:
                    return head
                return first_by_other_route(lane.first(MOST_COMPARED), failed_routes) or head
        return None

    def count_deferred(self) -> tuple[int, bool]:
        """Return how many lanes are deferred, and whether all lanes of the queue are."""
        only = not self._lanes.on_disk and len(self._deferred) == len(self._lanes)
        return len(self._deferred), only

    def idle_line(self) -> str:
        """Return the log line about the deferred requests; empty if there are none."""
        if not self._deferred or self._gate is None:
            return ""
        origins = {lane.origin for lane in self._deferred if lane.origin is not None}
        outages = [(origin, self._gate.outage(origin)) for origin in origins]
        since = min(
            lane.deferred_since for lane in self._deferred if lane.deferred_since is not None
        )
        left = since + self._timeout - self._clock.monotonic()
        return describe_outages(outages, self._clock.time(), self._timeout, left)

    def holds(self) -> Iterator[tuple[Origin, Hold, int]]:
        """Yield the origin, the hold and the number of requests of each lane that waits."""
        for lane in self._lanes:
            if lane.origin is not None and lane.hold is not None:
                yield lane.origin, lane.hold, lane.size

    def stop(self) -> int:
        """Stop the timer; return the number of deferred requests, and add it to the stats."""
        self._due.close()
        self._extra.increase_for(0)
        requests = sum(lane.size for lane in self._deferred)
        if requests:
            stats.count(self._crawler, stats.DEFERRED_WAITING, requests)
        self._deferred.clear()
        return requests

    # Lanes.

    def _wake(self, due: list[Lane | Slot]) -> None:
        lanes = [each for each in due if isinstance(each, Lane)]
        for lane in lanes:
            self._discard_waiting(lane)
        self._woken += lanes
        self._in_turn = {
            lane for lane in lanes if lane.hold is not None and lane.hold.reason is HoldReason.TURN
        }
        self._extra.increase_for(len(self._in_turn))
        wake_engine(self._crawler)

    def _discard_waiting(self, lane: Lane) -> None:
        """Remove ``lane`` from the lanes that wait because of the gate."""
        if lane.origin not in self._by_origin:
            return
        others = tuple(each for each in self._by_origin.pop(lane.origin, ()) if each is not lane)
        if others:
            self._by_origin[lane.origin] = others

    def _set_overdue(self, lane: Lane, until: float) -> bool:
        """Return whether the next try of robots.txt comes too late for ``lane``.

        ``until`` is the time of this try. If it is not too late, the lane is marked as deferred.
        """
        now = self._clock.monotonic()
        since = now if lane.deferred_since is None else lane.deferred_since
        lane.overdue = until > since + self._timeout
        if lane.overdue:
            self._deferred.discard(lane)
        elif lane.deferred_since is None and self._gate is not None:
            lane.deferred_since = now
            self._deferred.add(lane)
            stats.count(self._crawler, stats.DEFERRED, lane.size)
            self._gate.idle.start()
        return lane.overdue
