"""Which requests may leave the scheduler: asked of the gate, which answers why not, and until when.

The gate knows the reasons, and starts what ends them: a look-up, a turn. It holds no requests.
Before a request leaves, ``hold`` is asked; and again at the time that the answer names, or when the
gate calls what was given to ``listen``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.scheduler.idle import Idle
from scrapy_rep.scheduler.look_ups import LookUps
from scrapy_rep.scheduler.source import Source
from scrapy_rep.scheduler.trouble import tell
from scrapy_rep.utils.downloads import timeout_of, timeout_of_crawl
from scrapy_rep.utils.per_crawl import part
from scrapy_rep.utils.scrapy_internals import nudge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.decision.decider import Decider
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outage import Outage
    from scrapy_rep.scheduler.back_off import BackOff
    from scrapy_rep.scheduler.delays import Delays
    from scrapy_rep.scheduler.turns import Turns
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock

MARGIN: Final = 0.02
"""Seconds after the next try at which its requests are asked about, so that it has come by all
clocks."""
_UNTIL_TOLD: Final = Hold(HoldReason.LOOK_UP, math.inf)


class Queue(Protocol):
    """A queue of the scheduler, which asks the gate before a request leaves."""

    def ask_again(self, origin: Origin) -> None:
        """Ask again about the requests of ``origin``."""

    def head_of(self, origin: Origin) -> Request | None:
        """Return the next request of ``origin`` that is held here, or None."""

    def deferred(self) -> tuple[int, bool]:
        """Return how many origins are deferred, and whether the queue holds nothing else."""

    def idle_line(self) -> str:
        """Return what the log says when everything in the queue is deferred."""

    def holds(self) -> Iterable[tuple[Origin, Hold, int]]:
        """Return the origins that wait, why, and how many requests they have."""

    def stop(self) -> int:
        """Set no timer any more; return how many requests are deferred."""


class Gate:
    """Tells why requests of an origin may not leave yet, and when to ask again."""

    def __init__(  # noqa: PLR0913 - all that it depends on, each by name
        self,
        *,
        crawler: Crawler,
        cache: Cache,
        decider: Decider,
        options: Options,
        delays: Delays | None,
        turns: Turns | None = None,
        back_off: BackOff | None = None,
        clock: Clock,
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
        self.defer_timeout = options.defer_timeout
        self._queues: list[Queue] = []
        self._listeners: list[Callable[[Origin], None]] = []
        self._look_ups = LookUps(crawler, cache, decider, self._head_of, self._tell)
        self.look_up = self._look_ups.begin
        """Begins look-ups that requests wait for, as many as there is room for."""
        self.idle = Idle(crawler, self._only_deferred, self._idle_line)
        """Tells spiders that all that is left of the crawl waits."""
        cache.when_slow(self._has_room_again)
        if turns is not None:
            turns.listen(self._tell)
        if back_off is not None:
            back_off.listen(self._tell)

    @classmethod
    def of(cls, crawler: Crawler) -> Gate | None:
        """Return that of a crawl; None where it doesn't obey robots.txt."""
        return part(crawler, cls)

    # What is asked by those who hold requests.

    def attach(self, queue: Queue) -> None:
        """Let ``queue`` keep the requests that may not leave."""
        self._queues.append(queue)
        if self._back_off is not None:
            self._back_off.start()
        self.listen(queue.ask_again)

    def origin_governing(self, request: Request) -> Origin | None:
        """Return the origin whose robots.txt decides about ``request``; None where none does."""
        try:
            return self._decider.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - told
            # The middleware meets the same error, and drops the request for it.
            tell(self._crawler, error, "Error while asking what governs %s", request)
            return None

    @property
    def has_room(self) -> bool:
        """Whether a look-up that is asked for now would begin soon."""
        return self._look_ups.has_room

    def listen(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin when there is something new to be asked about it."""
        self._listeners.append(call)

    def hold(self, origin: Origin, head: Callable[[], Request]) -> Hold | None:
        """Return why the next request of ``origin`` may not leave yet; None if it may.

        ``head`` returns that request, or raises LookupError. Where it is the turn of this worker,
        that turn is used with this answer.
        """
        if not self._decider.needs_robotstxt(origin):
            return None  # it waits on disk since a crawl that had no such override
        entry = self._cache.known_entry(origin)
        if entry is None or self._decider.lacks_tdmrep(origin, head):
            was_looked_up, result = self._look_ups.take_result(origin)
            if not was_looked_up:
                self._look_ups.add(origin)
                return _UNTIL_TOLD
            entry = entry or result
            if entry is None:
                return None  # the middleware looks it up, and meets the same error
        if entry.may_come_back and self._defers:
            return Hold(HoldReason.UNREACHABLE, self.next_try(entry))
        if self._back_off is not None and self._back_off.leaves_alone(origin.host):
            # What the middleware drops takes nobody's time: neither a turn, nor that of the probe.
            if self._back_off.has_given_up(origin.host) or self._is_disallowed(head):
                return None
            hold = self._back_off.hold(origin)
        else:
            hold = None
        if hold is None and self._turns and self._delays and self._delays.concerns(entry):
            hold = self._turns.hold(origin, head)
        if hold is None and self._back_off is not None:
            self._back_off.went(origin.host)
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

        Whatever left the scheduler takes a place of CONCURRENT_REQUESTS as long as it waits in its
        slot for the delay that its site asks for, and is to hold up no other site.
        """
        return None if self._delays is None else self._delays.hold(slot)

    def outage(self, origin: Origin) -> Outage | None:
        """Return why ``origin`` is unreachable, if the cache knows."""
        entry = self._cache.known_entry(origin)
        return None if entry is None else entry.outage

    @property
    def deferred(self) -> int:
        """How many origins have requests in the scheduler that wait for their next try."""
        return sum(number for number, _ in (queue.deferred() for queue in self._queues))

    def holds(self) -> Iterator[tuple[Origin, str, float | None, int]]:
        """Yield what waits: the origin, why, until when if that is known, and how many requests.

        Times are in seconds since the epoch.
        """
        offset = self._clock.time() - self._clock.monotonic()
        for queue in self._queues:
            for origin, hold, requests in queue.holds():
                until = None if hold.until == math.inf else hold.until + offset
                yield origin, hold.reason.text, until, requests

    # What the middleware asks.

    @property
    def in_use(self) -> bool:
        """Whether a queue asks here, which keeps requests of unreachable origins, and for turns."""
        return bool(self._queues)

    @property
    def loses(self) -> bool:
        """Whether requests of unreachable origins are to be kept, and there is nobody to do so."""
        return self._defers and not self.in_use

    def defers(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return whether ``request``, whose origin is unreachable, is to wait for the next try.

        One that comes directly waits as long as its download might have taken, and not longer, as
        somebody awaits it.
        """
        return self._defers and self.would_defer(source, request, entry)

    def would_defer(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return what ``defers`` does where this is no dry run."""
        if not self._would_defer or entry is None or not entry.may_come_back:
            return False
        if source is not Source.DIRECT:
            return self.in_use
        seconds = timeout_of(request) or timeout_of_crawl(self._crawler)
        return entry.end - self._clock.time() <= seconds

    def next_try(self, entry: Entry) -> float:
        """Return when an unreachable origin may be tried again, by the monotonic clock."""
        seconds = max(0.0, entry.end - self._clock.time()) + MARGIN
        return self._clock.monotonic() + seconds

    def look_up_later(self, origin: Origin, request: Request) -> None:
        """Look ``origin`` up with ``request`` when there is room; nobody waits for it here."""
        self._look_ups.add(origin, request)
        self._look_ups.begin()

    def close(self) -> int:
        """Begin nothing more. Return how many requests are deferred in the scheduler."""
        self._look_ups.close()
        return sum(queue.stop() for queue in self._queues)

    # What the parts call.

    def _has_room_again(self) -> None:
        self._look_ups.begin()
        nudge(self._crawler)  # a queue on disk may load more

    def _tell(self, origin: Origin) -> None:
        for call in self._listeners:
            call(origin)
        nudge(self._crawler)

    def _head_of(self, origin: Origin) -> Request | None:
        for queue in self._queues:
            request = queue.head_of(origin)
            if request is not None:
                return request
        return None

    # What is told while all that is left waits.

    def _only_deferred(self) -> bool:
        counts = [queue.deferred() for queue in self._queues]
        return any(number for number, _ in counts) and all(only for _, only in counts)

    def _idle_line(self) -> str:
        return "; ".join(line for queue in self._queues if (line := queue.idle_line()))
