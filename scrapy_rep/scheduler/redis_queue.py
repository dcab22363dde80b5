"""scrapy-redis's queues, with requests kept back until their origins can be reached."""

from __future__ import annotations

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
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.scrapy_internals import nudge

if TYPE_CHECKING:
    from scrapy import Request, Spider

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.utils.clock import Timer

_HOLD: Final = 5_000
"""Milliseconds for which an origin that is due is left to the worker that came first."""
_BATCH: Final = 1_000
"""Requests that go back to the queue in one step: about two milliseconds of the server's time."""
_PAUSE: Final = 1.0
"""Seconds between two looks whether there is room for what is due."""
_MARGIN: Final = 0.02
"""Seconds that a timer is set too late, so that it doesn't find its time still to come."""


class _Waiter:
    """The requests of an origin that this worker is finding out about."""

    size = 0
    since: float | None = None
    overdue = False

    def __init__(self, queue: _Deferring, name: str, origin: Origin, request: Request) -> None:
        self._queue = queue
        self._name = name
        self._origin = origin
        self._request = request

    def head(self) -> Request:
        return self._request

    def wake(self) -> None:
        self._queue.found_out(self._name, self._origin, self._request)


class _Deferring(Base):  # type: ignore[misc] # it has no types
    """What our queues add to scrapy-redis's: a request leaves when its origin is open.

    As theirs it talks to Redis on the reactor's thread: once for a request that is pushed or
    popped, once more for one that is popped and has to wait, and once for an origin that has been
    looked up. ``pop`` never blocks, whatever SCHEDULER_IDLE_BEFORE_CLOSE says.
    """

    _kind: ClassVar[str]

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        super().__init__(server, spider, key, serializer)
        self._crawler = spider.crawler
        self._clock = Clock()
        self._timer: Timer | None = None
        self._looked_up: set[Origin] = set()
        # In a cluster, all keys of a script have to be in one slot.
        beside = self.key if "{" in self.key else f"{{{self.key}}}"
        self._keys = [
            self.key,
            f"{beside}:deferred",
            f"{beside}:deferred:due",
            f"{beside}:deferred:since",
        ]
        self._scripts: dict[str, Any] = {}
        self._gate = Gate.of(self._crawler)
        if self._gate is not None:
            self._gate.in_use = self._gate.is_shared = True
        self._crawler.signals.connect(self._stop, signals.spider_closed)

    # What the scheduler calls.

    def __len__(self) -> int:
        return int(self._run(scripts.SIZE))

    def clear(self) -> None:
        """Remove all requests, of all workers."""
        self.server.delete(*self._keys)

    def push(self, request: Request) -> None:
        """Keep ``request``: with those that wait, if its origin is known to be unreachable."""
        origin = self._origin(request)
        seconds = self._keeps_for(origin, request)
        if origin is not None and seconds:
            self._keep(str(origin), request, seconds)
        else:
            super().push(request)
        if self._gate is not None:
            self._gate.idle.came()

    def pop(self, timeout: int = 0) -> Request | None:  # noqa: ARG002 - as scrapy-redis calls it
        """Return a request that may leave, or None."""
        has_room = self._gate is None or self._gate.has_room
        kind, *found = self._run(scripts.NEXT, int(has_room), _HOLD)
        if kind == 1:
            return self._look_after(*found)
        if kind == 3:  # noqa: PLR2004 - as the script says
            self._rest(*found, has_room=has_room)
            return None
        request: Request = self._decode_request(*found)
        try:
            leaves = self._leaves(request, has_room=has_room)
        except Exception as error:  # noqa: BLE001 - told
            # It is out of Redis already: the middleware decides, or drops it with a word.
            tell(self._crawler, error, "%s could not be kept in Redis", request)
            leaves = True
        if leaves:
            return self._noted(request, Source.QUEUE)
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

    # Whether a request may leave.

    def _leaves(self, request: Request, *, has_room: bool) -> bool:
        """Return whether ``request`` may leave; if not, keep it."""
        origin = self._origin(request)
        seconds = self._keeps_for(origin, request)
        if origin is None or seconds == 0:
            if origin is not None and self._gate is not None:
                self._gate.leaves(origin)
            return True
        name = str(origin)
        if seconds is not None:
            self._keep(name, request, seconds)
        elif has_room or origin in self._looked_up:
            self._keep(name, request, None, hold=_HOLD)
            self._look_up(name, origin, request)
        else:
            self._keep(name, request, None)
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
        if seconds is None and origin is not None and request is not None:
            self._look_up(name, origin, request)
        elif seconds and self._gate is not None and age >= 1000 * self._gate.defer_timeout:
            taken = self._run(scripts.OVERDUE, name)
            if taken is not None:
                return self._noted(self._decode_request(taken), Source.OVERDUE)
        else:
            self._settle(name, seconds)
        nudge(self._crawler)
        return None

    def _look_up(self, name: str, origin: Origin, request: Request) -> None:
        if origin not in self._looked_up and self._gate is not None:
            self._looked_up.add(origin)
            self._gate.wait_for(origin, _Waiter(self, name, origin, request))

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

    def _noted(self, request: Request, source: Source) -> Request:
        if self._gate is not None:
            self._gate.idle.went()
            note_source(request, source)
        return request

    # What goes to Redis.

    def _keep(self, name: str, request: Request, seconds: float | None, *, hold: int = 0) -> None:
        """Keep ``request`` until its origin is tried again; for None until it is looked up."""
        if seconds is None or self._gate is None:
            times = hold, -1
        else:
            times = round(1000 * seconds), round(1000 * self._gate.defer_timeout)
        data = self._encode_request(request)
        number = self._run(scripts.KEEP, name, *times, -request.priority, data)
        self._count(number)

    def _settle(self, name: str, seconds: float | None) -> None:
        """Let what is kept of an origin go back to the queue, or wait for so many seconds."""
        if not seconds or self._gate is None:
            self._run(scripts.OPEN, name, _BATCH)
            return
        timeout = round(1000 * self._gate.defer_timeout)
        self._count(self._run(scripts.SHUT, name, round(1000 * seconds), timeout))

    def _run(self, script: str, *arguments: Any) -> Any:
        found = self._scripts.get(script)
        if found is None:
            whole = f"{scripts.BEGIN}{self._kind}{script}"
            found = self._scripts[script] = self.server.register_script(whole)
        return found(keys=self._keys, args=arguments)

    def _count(self, number: int) -> None:
        if number:
            stats.count(self._crawler, stats.DEFERRED, number)

    # When nothing may leave.

    def _rest(self, origins: int, milliseconds: int, *, has_room: bool) -> None:
        """Look again when the next origin is due; the engine asks by itself when others push."""
        if self._gate is None:
            return
        seconds = milliseconds / 1000 + _MARGIN
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
