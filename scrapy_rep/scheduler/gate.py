"""The gate decides whether a request may leave the scheduler.

Before a request leaves, its queue calls ``hold`` with the origin of the request. The result is None
if the request may leave, else a ``Hold``: the reason to wait and a time. The gate also starts what
ends the wait: a lookup of robots.txt (in the store, else by a fetch), or the reservation of a turn
(a time for one request to a site with a delay). The queue calls ``hold`` again at the time of the
``Hold``, or when the gate calls ``hold_changed`` of the queue. Requests stay in the queues, so that
each queue, in memory, on disk or in Redis, keeps its own order.

Requests that wait for the next try of an unreachable robots.txt are called deferred.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from scrapy_rep.scheduler.errors import log_error
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.scheduler.idle import Idle
from scrapy_rep.scheduler.lookups import Lookups
from scrapy_rep.scheduler.source import Source
from scrapy_rep.utils.downloads import default_download_timeout, download_timeout_of
from scrapy_rep.utils.per_crawl import get_part
from scrapy_rep.utils.scrapy_internals import wake_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.decision.decider import Decider
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.verdict import Outage
    from scrapy_rep.scheduler.back_off import BackOff
    from scrapy_rep.scheduler.delays import Delays
    from scrapy_rep.scheduler.turns import Turns
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock
    from scrapy_rep.utils.downloads import Route

MARGIN: Final = 0.02
"""Seconds added to a wait. Timers use another clock than the entries of origins and Redis; without
these seconds, a wait could end before its time has come by that clock."""
_UNTIL_LOOKED_UP: Final = Hold(HoldReason.LOOKUP, math.inf)


class Queue(Protocol):
    """A queue of the scheduler, which calls ``Gate.hold`` before a request leaves."""

    def hold_changed(self, origin: Origin) -> None:
        """Call ``Gate.hold`` again for the waiting requests of ``origin`` at the next pop."""

    def head_of(self, origin: Origin, failed_routes: Collection[Route]) -> Request | None:
        """Return the next waiting request of ``origin`` in this queue, or None.

        If its route is one of ``failed_routes``, return one of the requests after it that has
        another route, if there is one.
        """

    def count_deferred(self) -> tuple[int, bool]:
        """Return how many origins have deferred requests, and whether all requests are deferred.

        An origin counts once for each of its download slots in this queue.
        """

    def idle_line(self) -> str:
        """Return the log line about the deferred requests; empty if there are none."""

    def holds(self) -> Iterable[tuple[Origin, Hold, int]]:
        """Return each origin whose requests wait, its hold, and the number of these requests."""

    def stop(self) -> int:
        """Stop all timers; return how many requests are deferred."""


class Gate:
    """Decides whether the next request of an origin may leave the scheduler.

    If not, the gate returns why, and until when the request waits.
    """

    def __init__(
        self,
        crawler: Crawler,
        cache: Cache,
        decider: Decider,
        options: Options,
        clock: Clock,
        delays: Delays | None = None,
        turns: Turns | None = None,
        back_off: BackOff | None = None,
    ) -> None:
        self._crawler = crawler
        self._cache = cache
        self._decider = decider
        self._delays = delays
        self._turns = turns
        self._back_off = back_off
        self._clock = clock
        self._would_defer = (
            options.unreachable_action == "defer"
            and options.defer_timeout > 0
            and not options.interactive
        )
        self._defers = self._would_defer and not options.dry_run
        self.defer_timeout: float = options.defer_timeout
        self._queues: list[Queue] = []
        self._listeners: list[Callable[[Origin], None]] = []
        self._lookups = Lookups(crawler, cache, decider, self._head_of, self._notify)
        self.look_up: Callable[[], None] = self._lookups.start
        """Begins pending lookups, as many as there is room for."""
        self.idle: Idle = Idle(crawler, self._only_deferred, self._idle_line)
        """Sends ``spider_idle`` while all requests that are left are deferred."""
        cache.listen_for_free_lookups(self._start_lookups)
        if turns is not None:
            turns.listen_for_hold_change(self._notify)
        if back_off is not None:
            back_off.listen_for_hold_change(self._notify)

    @classmethod
    def of(cls, crawler: Crawler) -> Gate | None:
        """Return the gate of a crawl, or None if the crawl doesn't obey robots.txt."""
        return get_part(crawler, cls)

    # Called by the queues.

    def attach(self, queue: Queue) -> None:
        """Add a queue, which keeps its requests until they may leave."""
        self._queues.append(queue)
        if self._back_off is not None:
            self._back_off.start()
        self.listen_for_hold_change(queue.hold_changed)

    def origin_governing(self, request: Request) -> Origin | None:
        """Return the origin whose robots.txt decides about ``request``.

        None if no robots.txt decides, or after an error, which is logged.
        """
        try:
            return self._decider.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - logged
            # The middleware gets the same error, and drops the request.
            log_error(self._crawler, error, "Error while asking what governs %s", request)
            return None

    @property
    def has_room_for_lookups(self) -> bool:
        """Whether a lookup that is added now need not wait until other lookups have ended."""
        return self._lookups.has_room_for_lookups

    def listen_for_hold_change(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin whenever the result of ``hold`` may have changed for it."""
        self._listeners.append(call)

    def hold(self, origin: Origin, head: Callable[[], Request]) -> Hold | None:
        """Return why the next request of ``origin`` may not leave yet; None if it may.

        ``head`` returns that request, or raises LookupError if it can't be read. If None is
        returned, the turn of this worker is used, so the caller must let the request leave. If a
        ``Hold`` is returned, a lookup or the reservation of a turn is pending, if it is needed.
        """
        if not self._decider.needs_robotstxt(origin):
            return None  # an earlier crawl, without this override, wrote the request to disk
        entry = self._cache.known_entry(origin)
        if entry is None or self._decider.lacks_tdmrep(origin, head):
            was_looked_up, result = self._lookups.pop_result(origin)
            if not was_looked_up:
                self._lookups.add(origin)
                return _UNTIL_LOOKED_UP
            entry = entry or result
            if entry is None:
                return None  # the lookup failed; the middleware repeats it and handles the error
        if entry.will_be_retried and self._defers:
            return Hold(HoldReason.UNREACHABLE, self.next_try(entry))
        if self._back_off is not None and self._back_off.has_refused(origin.host):
            # A request that the middleware will drop must use neither a turn nor the probe: the
            # one request after a pause that shows whether the site answers again.
            if self._back_off.is_dropping(origin.host) or self._is_disallowed(head):
                return None
            hold = self._back_off.hold(origin)
        else:
            hold = None
        if hold is None and self._turns and self._delays and self._delays.may_have_delay(entry):
            hold = self._turns.hold(origin, head)
        if hold is None and self._back_off is not None:
            self._back_off.use_probe(origin.host)
        return hold

    def _is_disallowed(self, head: Callable[[], Request]) -> bool:
        try:
            decision = self._decider.known_decision(head())
        except LookupError:  # none of the requests could be read
            return False
        verdict = None if decision is None else decision.verdict
        return verdict is not None and not verdict.allowed

    def hold_of_slot(self, slot: str) -> Hold | None:
        """Return why no request may leave to a download slot yet; None if one may.

        A request that waits in its download slot for the delay of its site counts for
        CONCURRENT_REQUESTS, so that fewer requests are sent to other sites. It waits in the
        scheduler instead.
        """
        return None if self._delays is None else self._delays.hold(slot)

    def outage(self, origin: Origin) -> Outage | None:
        """Return why the robots.txt of ``origin`` is unreachable.

        None if it is not unreachable, or if the cache has no entry of the origin.
        """
        entry = self._cache.known_entry(origin)
        return None if entry is None else entry.outage

    @property
    def deferred(self) -> int:
        """Number of origins with deferred requests; each counts once per queue and slot."""
        return sum(number for number, _ in (queue.count_deferred() for queue in self._queues))

    def holds(self) -> Iterator[tuple[Origin, str, float | None, int]]:
        """Yield each origin whose requests wait, why, until when, and the number of requests.

        The end of the wait is in seconds since the epoch; None if it is not known.
        """
        offset = self._clock.time() - self._clock.monotonic()
        for queue in self._queues:
            for origin, hold, requests in queue.holds():
                until = None if hold.until == math.inf else hold.until + offset
                yield origin, hold.reason.text, until, requests

    # Called by the middleware.

    @property
    def has_queue(self) -> bool:
        """Whether there is a queue that keeps its requests until the gate lets them leave."""
        return bool(self._queues)

    @property
    def cannot_defer(self) -> bool:
        """Whether the settings require that requests are deferred, but no queue keeps them."""
        return self._defers and not self.has_queue

    def defers(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return whether ``request`` is to wait for the next try of its unreachable robots.txt.

        A direct request is one whose response a component awaits. It waits only if the next try
        comes within its download timeout. Other requests wait only if a queue can keep them.
        """
        return self._defers and self.would_defer(source, request, entry)

    def would_defer(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return what ``defers`` would return without a dry run."""
        if not self._would_defer or entry is None or not entry.will_be_retried:
            return False
        if source is not Source.DIRECT:
            return self.has_queue
        seconds = download_timeout_of(request) or default_download_timeout(self._crawler)
        return entry.end - self._clock.time() <= seconds

    def next_try(self, entry: Entry) -> float:
        """Return when the robots.txt of ``entry`` is tried again, by the monotonic clock."""
        seconds = max(0.0, entry.end - self._clock.time()) + MARGIN
        return self._clock.monotonic() + seconds

    def look_up_later(self, origin: Origin, request: Request) -> None:
        """Add a lookup of ``origin`` for ``request``, which begins when there is room."""
        self._lookups.add(origin, request)
        self._lookups.start()

    def close(self) -> int:
        """Begin no more lookups, and stop all timers; return how many requests are deferred."""
        self._lookups.close()
        return sum(queue.stop() for queue in self._queues)

    # Callbacks of the cache, the lookups, the turns and the back-off.

    def _start_lookups(self) -> None:
        self._lookups.start()
        wake_engine(self._crawler)  # at the next pop, a queue on disk may load more lanes

    def _notify(self, origin: Origin) -> None:
        for call in self._listeners:
            call(origin)
        wake_engine(self._crawler)

    def _head_of(self, origin: Origin, failed_routes: Collection[Route]) -> Request | None:
        for queue in self._queues:
            request = queue.head_of(origin, failed_routes)
            if request is not None:
                return request
        return None

    # For Idle.

    def _only_deferred(self) -> bool:
        counts = [queue.count_deferred() for queue in self._queues]
        return any(number for number, _ in counts) and all(only for _, only in counts)

    def _idle_line(self) -> str:
        return "; ".join(line for queue in self._queues if (line := queue.idle_line()))
