"""scrapy-redis's queues, with requests kept back until they may leave."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

from scrapy import signals
from scrapy_redis.queue import (  # type: ignore[import-untyped]
    Base,
    FifoQueue,
    LifoQueue,
    PriorityQueue,
)

from scrapy_rep import stats
from scrapy_rep.scheduler import redis_scripts as scripts
from scrapy_rep.scheduler.due import DueTimes
from scrapy_rep.scheduler.gate import MARGIN, Gate
from scrapy_rep.scheduler.hold import HoldReason
from scrapy_rep.scheduler.idle import line_about_others
from scrapy_rep.scheduler.source import Source, note_source
from scrapy_rep.scheduler.trouble import tell
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.scrapy_internals import PlacesBeside, nudge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request, Spider

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.hold import Hold

_PAUSE: Final = 1.0
"""Seconds between two looks whether there is room for what is due."""


class _Deferring(Base):  # type: ignore[misc] # it has no types
    """What our queues add to scrapy-redis's: a request leaves when its origin is open.

    As theirs it talks to Redis on the reactor's thread: once for a request that is pushed or
    popped, twice more for one that has to wait, and once or twice for an origin that has been
    looked up, or has a turn.
    ``pop`` never blocks, whatever SCHEDULER_IDLE_BEFORE_CLOSE says.
    """

    _kind: ClassVar[str]

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        super().__init__(server, spider, key, serializer)
        self._crawler = spider.crawler
        self._clock = Clock()
        self._held: dict[Origin, tuple[Request, Hold]] = {}
        """Origins that wait for a look-up or a turn of this worker, each with its next request."""
        self._due: DueTimes[Origin | None] = DueTimes(self._clock, self._come)
        """When they are to be asked about again; of None, when the next origin in Redis is due."""
        self._again: deque[Origin] = deque()
        """Those that are to be asked about again now."""
        self._places = PlacesBeside(self._crawler)
        self._deferred, self._first_due = 0, 0.0
        """How many origins are deferred in Redis, and when the first is due."""
        self._gate = Gate.of(self._crawler)
        self._timeout = 0.0
        if self._gate is not None:
            self._timeout = self._gate.defer_timeout
            self._gate.attach(self)
        self._kept = scripts.Kept(server, self.key, self._kind, self._timeout)
        self._crawler.signals.connect(self.stop, signals.spider_closed)

    # What the scheduler calls.

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Remove all requests, of all workers."""
        self.server.delete(*self._kept.keys)

    def push(self, request: Request) -> None:
        """Keep ``request``."""
        super().push(request)
        if self._gate is not None:
            self._gate.idle.came()

    def pop(self, timeout: int = 0) -> Request | None:  # noqa: ARG002 - as scrapy-redis calls it
        """Return a request that may leave, or None."""
        if self._gate is not None:
            self._gate.look_up()
        while self._again:
            origin = self._again.popleft()
            self._places.give(len(self._again))
            held = self._held.pop(origin, None)
            if held is not None and (taken := self._look_after(origin, held[0])) is not None:
                return taken
        has_room = self._gate is None or self._gate.has_room
        kind, *found = self._kept.next(has_room=has_room)
        if kind == 3:  # noqa: PLR2004 - as the script says
            self._rest(*found, has_room=has_room)
            return None
        taken = self._due_in_redis(*found) if kind == 1 else self._popped(*found, has_room=has_room)
        if taken is None:
            nudge(self._crawler)
        return taken

    # What the gate calls.

    def ask_again(self, origin: Origin) -> None:
        """Ask again, with the next pop, about an origin that has been looked up or has a turn."""
        if origin in self._held:
            self._again.append(origin)

    def head_of(self, origin: Origin) -> Request | None:
        """Return the next request of ``origin`` that waits, or None."""
        held = self._held.get(origin)
        if held is None:
            return None
        # If other workers have taken all of them meanwhile, the one with which this began.
        return self._read(self._kept.first(str(origin))) or held[0]

    def deferred(self) -> tuple[int, bool]:
        """Return how many origins are deferred, and whether this worker waits for nothing else."""
        return self._deferred, not self._held

    def idle_line(self) -> str:
        """Return what the log says when everything in the queue is deferred."""
        if not self._deferred:
            return ""
        return line_about_others(self._deferred, self._first_due - self._clock.monotonic())

    def holds(self) -> Iterator[tuple[Origin, Hold, int]]:
        """Yield the origins that wait for this worker, why, and 1, as one request is known here."""
        for origin, (_, hold) in self._held.items():
            yield origin, hold, 1

    def stop(self) -> int:
        """Set no timer any more; return 0, as Redis keeps the requests that are deferred."""
        self._due.close()
        return 0

    # Whether a request may leave.

    def _popped(self, data: Any, *, has_room: bool) -> Request | None:
        """Return a request that was taken out of the queue; None if it is kept in Redis instead."""
        request: Request = self._decode_request(data)
        try:
            origin = self._origin(request)
            if origin is None:
                return self._noted(request, Source.QUEUE)
            hold = self._hold(origin, lambda: request)
            if hold is None:
                return self._noted(request, Source.QUEUE)
            if hold.reason is HoldReason.UNREACHABLE:
                if self._is_overdue(hold):
                    return self._noted(request, Source.OVERDUE)
                self._defer(str(origin), request, hold)
            elif hold.reason is not HoldReason.LOOK_UP or has_room or origin in self._held:
                self._keep(str(origin), request)
                self._wait(origin, request, hold)
            else:
                self._keep(str(origin), request, held=False)
        except Exception as error:  # noqa: BLE001 - told
            # It is out of Redis already: the middleware decides, and takes the turn that it lacks.
            tell(self._crawler, error, "%s could not be kept in Redis", request)
            return self._noted(request, Source.DIRECT)
        return None

    def _due_in_redis(self, name: bytes | str, age: int, data: Any) -> Request | None:
        """Do what is to be done about the requests of an origin that are due; one may leave.

        ``age`` is for how many milliseconds they have been deferred.
        """
        name = name.decode() if isinstance(name, bytes) else name
        try:
            request = self._decode_request(data)
            origin = self._origin(request)
        except Exception as error:  # noqa: BLE001 - told
            # Back in the queue it is met again, as scrapy-redis would meet it.
            tell(self._crawler, error, "A request of %s can't be read", name)
            origin = None
        if origin is None:
            self._settle(name, None)
            return None
        return self._look_after(origin, request, age / 1000)

    def _look_after(self, origin: Origin, request: Request, age: float = 0.0) -> Request | None:
        """Return the next request of an origin that is kept, if it may leave.

        The one after it is asked about then; if it may leave, too, all go back to the queue.
        """
        name = str(origin)
        hold = self._hold(origin, lambda: self._first(name))
        if hold is None:
            data, others = self._kept.pop(name)
            if others:
                hold = self._hold(origin, lambda: self._first(name))
                if hold is None or hold.reason is HoldReason.UNREACHABLE:
                    self._settle(name, hold)
                else:
                    self._wait(origin, request, hold)
            return self._noted(self._read(data), Source.QUEUE)
        if hold.reason is not HoldReason.UNREACHABLE:
            self._wait(origin, request, hold)
        elif self._is_overdue(hold, age):
            return self._noted(self._read(self._kept.overdue(name)), Source.OVERDUE)
        else:
            self._settle(name, hold)
        return None

    def _wait(self, origin: Origin, request: Request, hold: Hold) -> None:
        """Let this worker wait for a look-up or a turn of ``origin``."""
        self._held[origin] = self._held.get(origin, (request,))[0], hold
        self._due.set(origin, hold.until)
        if hold.reason is HoldReason.LOOK_UP and self._gate is not None:
            self._gate.look_up()

    def _come(self, due: list[Origin | None]) -> None:
        self._again += [origin for origin in due if origin is not None]
        self._places.give(len(self._again))
        nudge(self._crawler)

    def _is_overdue(self, hold: Hold, age: float = 0.0) -> bool:
        """Return whether the next try is too late for requests deferred for ``age`` seconds."""
        return hold.until - self._clock.monotonic() > self._timeout - age

    def _hold(self, origin: Origin, head: Callable[[], Request]) -> Hold | None:
        return None if self._gate is None else self._gate.hold(origin, head)

    def _origin(self, request: Request) -> Origin | None:
        return None if self._gate is None else self._gate.origin_governing(request)

    def _noted(self, request: Request | None, source: Source) -> Request | None:
        if self._gate is not None and request is not None:
            self._gate.idle.went()
            note_source(request, source)
        return request

    # What goes to Redis, and comes from it.

    def _first(self, name: str) -> Request:
        """Return the next request of an origin. Raises LookupError where none can be read."""
        try:
            request = self._read(self._kept.first(name))
        except Exception as error:  # told when it is taken
            raise LookupError(name) from error
        if request is None:
            raise LookupError(name)
        return request

    def _read(self, data: Any) -> Request | None:
        return None if data is None else self._decode_request(data)

    def _defer(self, name: str, request: Request, hold: Hold) -> None:
        data = self._encode_request(request)
        self._count(self._kept.keep(name, -request.priority, data, self._seconds(hold)))

    def _keep(self, name: str, request: Request, *, held: bool = True) -> None:
        data = self._encode_request(request)
        self._kept.keep_while(name, -request.priority, data, held=held)

    def _settle(self, name: str, hold: Hold | None) -> None:
        """Let the requests of an origin go back to the queue, or defer them."""
        self._count(self._kept.settle(name, None if hold is None else self._seconds(hold)))

    def _seconds(self, hold: Hold) -> float:
        return max(0.001, hold.until - self._clock.monotonic())

    def _count(self, number: int) -> None:
        if number:
            stats.count(self._crawler, stats.DEFERRED, number)

    # When nothing may leave.

    def _rest(self, origins: int, milliseconds: int, *, has_room: bool) -> None:
        """Look again when the next origin is due; the engine asks by itself when others push."""
        if self._gate is None:
            return
        seconds = milliseconds / 1000 + MARGIN
        now = self._clock.monotonic()
        self._deferred, self._first_due = origins, now + seconds
        if origins:
            self._gate.idle.begin()
        pause = seconds if has_room else max(_PAUSE, seconds)
        self._due.set(None, now + pause if milliseconds >= 0 else math.inf)


class RobotsAwareRedisQueue(_Deferring, PriorityQueue):  # type: ignore[misc]
    """The PriorityQueue of scrapy-redis, which also holds requests back until they may leave.

    ``SCHEDULER_QUEUE_CLASS = "scrapy_rep.RobotsAwareRedisQueue"``. Deferred requests are in Redis
    and shared by all workers: if a worker is killed, none of them is lost.
    """

    _kind = scripts.PRIORITY


class RobotsAwareRedisFifoQueue(_Deferring, FifoQueue):  # type: ignore[misc]
    """The same for the FifoQueue of scrapy-redis."""

    _kind = scripts.FIFO


class RobotsAwareRedisLifoQueue(_Deferring, LifoQueue):  # type: ignore[misc]
    """The same for the LifoQueue of scrapy-redis."""

    _kind = scripts.LIFO
