"""The gate decides whether a request may leave the scheduler.

Before a request leaves, a queue calls ``hold`` with its origin. The answer is None, or a ``Hold``:
the reason to wait and a time. The gate also starts whatever ends the wait: a lookup of robots.txt,
or the reservation of a turn. The queue asks again at that time, or when the gate calls the queue's
listener. The gate itself holds no requests, so that every queue, in memory, on disk or in Redis,
keeps its own order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from scrapy_rep.scheduler.errors import log_error
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.scheduler.idle import Idle
from scrapy_rep.scheduler.lookups import Lookups
from scrapy_rep.scheduler.source import Source
from scrapy_rep.utils.downloads import timeout_of, timeout_of_crawl
from scrapy_rep.utils.per_crawl import part
from scrapy_rep.utils.scrapy_internals import nudge

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
"""Seconds added to the time of the next try, so that it has come by all clocks."""
_UNTIL_LOOKED_UP: Final = Hold(HoldReason.LOOKUP, math.inf)


class Queue(Protocol):
    """A queue of the scheduler, which asks the gate before a request leaves."""

    def hold_changed(self, origin: Origin) -> None:
        """Ask the gate again about the requests of ``origin``."""

    def head_of(self, origin: Origin, failed_routes: Collection[Route]) -> Request | None:
        """Return the next request of ``origin`` that waits here, or None.

        If its route is one of ``failed_routes``, return one of the next few requests that has
        another route instead, if there is one.
        """

    def count_deferred(self) -> tuple[int, bool]:
        """Return how many origins are deferred, and whether the queue holds nothing else."""

    def idle_line(self) -> str:
        """Return the log line for a queue in which everything is deferred."""

    def holds(self) -> Iterable[tuple[Origin, Hold, int]]:
        """Return the origins that wait, why, and how many requests they have."""

    def stop(self) -> int:
        """Stop all timers; return how many requests are deferred."""


class Gate:
    """Decides whether requests of an origin may leave, and else why not and when to ask again."""

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
        self.look_up: Callable[[], None] = self._lookups.begin
        """Begins the lookups that requests wait for, as many as there is room for."""
        self.idle: Idle = Idle(crawler, self._only_deferred, self._idle_line)
        """Sends ``spider_idle`` while all requests left wait for unreachable origins."""
        cache.when_slow(self._has_room_again)
        if turns is not None:
            turns.listen(self._notify)
        if back_off is not None:
            back_off.listen(self._notify)

    @classmethod
    def of(cls, crawler: Crawler) -> Gate | None:
        """Return the gate of a crawl, or None if the crawl doesn't obey robots.txt."""
        return part(crawler, cls)

    # Called by the queues.

    def attach(self, queue: Queue) -> None:
        """Add a queue that keeps the requests that may not leave."""
        self._queues.append(queue)
        if self._back_off is not None:
            self._back_off.start()
        self.listen(queue.hold_changed)

    def origin_governing(self, request: Request) -> Origin | None:
        """Return the origin whose robots.txt decides about ``request``, or None."""
        try:
            return self._decider.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - logged
            # The middleware meets the same error, and drops the request for it.
            log_error(self._crawler, error, "Error while asking what governs %s", request)
            return None

    @property
    def has_room(self) -> bool:
        """Whether a lookup that is added now would begin soon."""
        return self._lookups.has_room

    def listen(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin when the answer of ``hold`` may have changed."""
        self._listeners.append(call)

    def hold(self, origin: Origin, head: Callable[[], Request]) -> Hold | None:
        """Return why the next request of ``origin`` may not leave yet; None if it may.

        ``head`` returns that request, or raises LookupError. None uses up the turn of this worker,
        so the request must leave.
        """
        if not self._decider.needs_robotstxt(origin):
            return None  # it was written to disk by a crawl that had no such override
        entry = self._cache.known_entry(origin)
        if entry is None or self._decider.lacks_tdmrep(origin, head):
            was_looked_up, result = self._lookups.take_result(origin)
            if not was_looked_up:
                self._lookups.add(origin)
                return _UNTIL_LOOKED_UP
            entry = entry or result
            if entry is None:
                return None  # the lookup raised; the middleware repeats it, and handles the error
        if entry.may_come_back and self._defers:
            return Hold(HoldReason.UNREACHABLE, self.next_try(entry))
        if self._back_off is not None and self._back_off.has_refused(origin.host):
            # A request that the middleware will drop must use neither a turn nor the probe.
            if self._back_off.has_given_up(origin.host) or self._is_disallowed(head):
                return None
            hold = self._back_off.hold(origin)
        else:
            hold = None
        if hold is None and self._turns and self._delays and self._delays.may_delay(entry):
            hold = self._turns.hold(origin, head)
        if hold is None and self._back_off is not None:
            self._back_off.popped(origin.host)
        return hold

    def _is_disallowed(self, head: Callable[[], Request]) -> bool:
        try:
            decision = self._decider.known_decision(head())
        except LookupError:  # none of the requests could be read
            return False
        verdict = None if decision is None else decision.verdict
        return verdict is not None and not verdict.allowed

    def hold_slot(self, slot: str) -> Hold | None:
        """Return why no request may leave to a download slot yet; None if one may.

        A request that waits in its slot for the delay of its site takes a place of
        CONCURRENT_REQUESTS, and so holds up other sites; so it waits in the scheduler instead.
        """
        return None if self._delays is None else self._delays.hold(slot)

    def outage(self, origin: Origin) -> Outage | None:
        """Return why ``origin`` is unreachable, or None if the cache doesn't know."""
        entry = self._cache.known_entry(origin)
        return None if entry is None else entry.outage

    @property
    def deferred(self) -> int:
        """Number of origins with deferred requests in the scheduler."""
        return sum(number for number, _ in (queue.count_deferred() for queue in self._queues))

    def holds(self) -> Iterator[tuple[Origin, str, float | None, int]]:
        """Yield each origin that waits, why, until when, and how many requests it has.

        Times are in seconds since the epoch; None if not known.
        """
        offset = self._clock.time() - self._clock.monotonic()
        for queue in self._queues:
            for origin, hold, requests in queue.holds():
                until = None if hold.until == math.inf else hold.until + offset
                yield origin, hold.reason.text, until, requests

    # Called by the middleware.

    @property
    def in_use(self) -> bool:
        """Whether a queue asks the gate, and so keeps requests that must wait."""
        return bool(self._queues)

    @property
    def cannot_defer(self) -> bool:
        """Whether requests of unreachable origins should be deferred, but no queue does so."""
        return self._defers and not self.in_use

    def defers(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return whether ``request``, whose origin is unreachable, is to wait for the next try.

        A direct request waits no longer than its download timeout, as a component awaits it.
        """
        return self._defers and self.would_defer(source, request, entry)

    def would_defer(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return what ``defers`` would return without a dry run."""
        if not self._would_defer or entry is None or not entry.may_come_back:
            return False
        if source is not Source.DIRECT:
            return self.in_use
        seconds = timeout_of(request) or timeout_of_crawl(self._crawler)
        return entry.end - self._clock.time() <= seconds

    def next_try(self, entry: Entry) -> float:
        """Return the time of the next try of an unreachable origin, by the monotonic clock."""
        seconds = max(0.0, entry.end - self._clock.time()) + MARGIN
        return self._clock.monotonic() + seconds

    def look_up_later(self, origin: Origin, request: Request) -> None:
        """Look up ``origin`` with ``request`` when there is room; return at once."""
        self._lookups.add(origin, request)
        self._lookups.begin()

    def close(self) -> int:
        """Begin no more lookups; return how many requests are deferred in the scheduler."""
        self._lookups.close()
        return sum(queue.stop() for queue in self._queues)

    # Callbacks of the parts.

    def _has_room_again(self) -> None:
        self._lookups.begin()
        nudge(self._crawler)  # a queue on disk may load more lanes

    def _notify(self, origin: Origin) -> None:
        for call in self._listeners:
            call(origin)
        nudge(self._crawler)

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
