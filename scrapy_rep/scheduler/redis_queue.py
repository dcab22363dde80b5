"""scrapy-redis's queues, with requests kept back until they may leave."""

from __future__ import annotations

from collections import deque
from functools import partial
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
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.source import Source, note_source
from scrapy_rep.scheduler.trouble import tell
from scrapy_rep.scheduler.waiters import MARGIN, Calling
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.scrapy_internals import nudge

if TYPE_CHECKING:
    from scrapy import Request, Spider

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.utils.clock import Timer

_PAUSE: Final = 1.0
"""Seconds between two looks whether there is room for what is due."""


class _Deferring(Base):  # type: ignore[misc] # it has no types
    """What our queues add to scrapy-redis's: a request leaves when its origin is open.

    As theirs it talks to Redis on the reactor's thread: once for a request that is pushed or
    popped, twice more for one that has to wait, and once for an origin that has been looked up.
    ``pop`` never blocks, whatever SCHEDULER_IDLE_BEFORE_CLOSE says.
    """

    _kind: ClassVar[str]

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        super().__init__(server, spider, key, serializer)
        self._crawler = spider.crawler
        self._clock = Clock()
        self._timer: Timer | None = None
        self._looked_up: set[Origin] = set()
        self._in_turn: set[Origin] = set()
        """Origins that this worker has asked for a turn of."""
        self._turns: deque[tuple[str, Origin, Request]] = deque()
        """Those whose turn has come, each with the request that it was asked for."""
        self._news: set[str] = set()
        """Origins of which another worker has learned, since Redis was called for what is next."""
        self._gate = Gate.of(self._crawler)
        timeout = 0.0
        if self._gate is not None:
            timeout = self._gate.defer_timeout
            self._gate.in_use = self._gate.is_shared = True
            self._gate.when_news = self._look_again
        self._kept = scripts.Kept(server, self.key, self._kind, timeout)
        self._crawler.signals.connect(self._stop, signals.spider_closed)

    # What the scheduler calls.

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Remove all requests, of all workers."""
        self.server.delete(*self._kept.keys)

    def push(self, request: Request) -> None:
        """Keep ``request``: with those that wait, if its origin is known to be unreachable."""
        origin = self._origin(request)
        seconds = self._keeps_for(origin, request)
        if origin is not None and seconds:
            self._defer(str(origin), request, seconds)
        else:
            super().push(request)
        if self._gate is not None:
            self._gate.idle.came()

    def pop(self, timeout: int = 0) -> Request | None:  # noqa: ARG002 - as scrapy-redis calls it
        """Return a request that may leave, or None."""
        while self._turns:
            name, origin, asked = self._turns.popleft()
            taken = self._take_turn(name, origin, asked, self._keeps_for(origin, asked))
            if taken is not None:
                return taken
        has_room = self._gate is None or self._gate.has_room
        news, self._news = self._news, set()
        kind, *found = self._kept.next(news, has_room=has_room)
        if kind == 1:
            return self._look_after(*found)
        if kind == 3:  # noqa: PLR2004 - as the script says
            self._rest(*found, has_room=has_room)
            return None
        request: Request = self._decode_request(*found)
        source = Source.QUEUE
        try:
            leaves = self._leaves(request, has_room=has_room)
        except Exception as error:  # noqa: BLE001 - told
            # It is out of Redis already: the middleware decides, and takes the turn that it lacks.
            tell(self._crawler, error, "%s could not be kept in Redis", request)
            leaves, source = True, Source.DIRECT
        if leaves:
            return self._noted(request, source)
        nudge(self._crawler)
        return None

    # What the gate calls.

    def found_out(self, name: str, origin: Origin, request: Request) -> None:
        """Let the requests of an origin go, or wait for its next try, as it has been looked up."""
        self._looked_up.discard(origin)
        try:
            self._settle(name, self._keeps_for(origin, request))
        except Exception as error:  # noqa: BLE001 - told
            # They are looked after again when that time is over.
            tell(self._crawler, error, "Redis could not be told of %s", name)

    def _look_again(self, origin: Origin) -> None:
        # The gate lets the engine ask for what is next: once, however many these are.
        self._news.add(str(origin))

    # Whether a request may leave.

    def _leaves(self, request: Request, *, has_room: bool) -> bool:
        """Return whether ``request`` may leave; if not, keep it."""
        origin = self._origin(request)
        seconds = self._keeps_for(origin, request)
        if origin is None or self._gate is None:
            return True
        name = str(origin)
        if seconds == 0:
            if self._has_turn(name, origin, request):
                self._gate.leaves(origin)
                return True
            self._keep(name, request)
        elif seconds is not None:
            self._defer(name, request, seconds)
        elif has_room or origin in self._looked_up:
            self._keep(name, request)
            self._look_up(name, origin, request)
        else:
            self._keep(name, request, held=False)
        return False

    def _look_after(self, name: bytes | str, age: int, data: Any) -> Request | None:
        """Do what is to be done about the requests of an origin that are due; one may leave."""
        name = name.decode() if isinstance(name, bytes) else name
        request, origin = None, None
        seconds: float | None = 0.0
        try:
            request = self._decode_request(data)
            origin = self._origin(request)
            seconds = self._keeps_for(origin, request)
        except Exception as error:  # noqa: BLE001 - told
            # Back in the queue it is met again, as scrapy-redis would meet it.
            tell(self._crawler, error, "A request of %s can't be read", name)
        taken = None
        if seconds and self._gate is not None and age >= 1000 * self._gate.defer_timeout:
            taken = self._noted(self._read(self._kept.overdue(name)), Source.OVERDUE)
        elif origin is None or request is None:
            self._settle(name, seconds)
        else:
            taken = self._take_turn(name, origin, request, seconds)
        if taken is None:
            nudge(self._crawler)
        return taken

    def _take_turn(
        self, name: str, origin: Origin, request: Request, seconds: float | None
    ) -> Request | None:
        """Return the next request of an origin, if its turn has come; ask for the one after it.

        Where the origin asks for no delay any more, all of them may leave.
        """
        if seconds is None:
            self._look_up(name, origin, request)
        elif seconds:
            self._settle(name, seconds)
        elif self._has_turn(name, origin, request):
            data, others = self._kept.take(name)
            if others and self._has_turn(name, origin, request):
                self._settle(name, 0.0)
            return self._noted(self._read(data), Source.QUEUE)
        return None

    def _has_turn(self, name: str, origin: Origin, request: Request) -> bool:
        """Return whether a request of ``origin`` may leave now; if not, its turn is asked for."""
        if origin in self._in_turn:
            return False
        waiter = Calling(request, partial(self._turn_comes, name, origin, request))
        if self._gate is None or self._gate.has_turn(origin, waiter):
            return True
        self._in_turn.add(origin)
        return False

    def _turn_comes(self, name: str, origin: Origin, request: Request) -> None:
        self._in_turn.discard(origin)
        self._turns.append((name, origin, request))
        nudge(self._crawler)

    def _look_up(self, name: str, origin: Origin, request: Request) -> None:
        if origin not in self._looked_up and self._gate is not None:
            self._looked_up.add(origin)
            self._gate.wait_for(
                origin, Calling(request, partial(self.found_out, name, origin, request))
            )

    def _origin(self, request: Request) -> Origin | None:
        if self._gate is None:
            return None
        try:
            return self._gate.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - told
            # The middleware meets the same error, and drops the request for it.
            tell(self._crawler, error, "Error while asking what governs %s", request)
            return None

    def _keeps_for(self, origin: Origin | None, request: Request) -> float | None:
        if self._gate is None or origin is None:
            return 0.0
        return self._gate.keeps_for(origin, lambda: request)

    def _noted(self, request: Request | None, source: Source) -> Request | None:
        if self._gate is not None and request is not None:
            self._gate.idle.went()
            note_source(request, source)
        return request

    # What goes to Redis, and comes from it.

    def _read(self, data: Any) -> Request | None:
        return None if data is None else self._decode_request(data)

    def _defer(self, name: str, request: Request, seconds: float) -> None:
        data = self._encode_request(request)
        self._count(self._kept.keep(name, -request.priority, data, seconds))

    def _keep(self, name: str, request: Request, *, held: bool = True) -> None:
        data = self._encode_request(request)
        self._kept.keep_while(name, -request.priority, data, held=held)

    def _settle(self, name: str, seconds: float | None) -> None:
        self._count(self._kept.settle(name, seconds))

    def _count(self, number: int) -> None:
        if number:
            stats.count(self._crawler, stats.DEFERRED, number)

    # When nothing may leave.

    def _rest(self, origins: int, milliseconds: int, *, has_room: bool) -> None:
        """Look again when the next origin is due; the engine asks by itself when others push."""
        if self._gate is None:
            return
        seconds = milliseconds / 1000 + MARGIN
        self._gate.elsewhere = origins, self._clock.monotonic() + seconds
        if origins:
            self._gate.idle.begin()
        self._stop()
        if milliseconds >= 0:
            pause = seconds if has_room else max(_PAUSE, seconds)
            self._timer = self._clock.call_later(pause, nudge, self._crawler)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class RobotsAwareRedisQueue(_Deferring, PriorityQueue):  # type: ignore[misc]
    """The PriorityQueue of scrapy-redis, which also defers requests of unreachable origins.

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
