"""The queues of scrapy-redis, which keep requests in Redis until they may leave.

A worker takes a request from Redis, and calls ``Admission.admit``. If the request may leave,
``pop`` returns it. Else it is moved to a second set in Redis, sorted by origin, from which any
worker may take it. Until Redis is told which of the two, it keeps the request as taken by this
worker. If a call fails or the worker is killed, the request returns to the queue of scrapy-redis.

Each origin in the second set has a time at which it is due. The worker that finds an origin due is
the only one to handle it for some seconds, and calls ``Admission.admit`` for its first request.
Then either this request leaves, or the worker waits until the admission lets it leave, or the
origin gets a new due time. If two requests of an origin may leave one after the other, all its
requests go back to the queue of scrapy-redis.

Requests that wait for the next try of an unreachable robots.txt are called deferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from scrapy import Request, Spider, signals
from scrapy_redis.queue import (  # type: ignore[import-untyped]
    Base,
    FifoQueue,
    LifoQueue,
    PriorityQueue,
)

from scrapy_rep.admission.lookup import UNKNOWN
from scrapy_rep.admission.reason import Hold, HoldReason
from scrapy_rep.admission.ticket import Source
from scrapy_rep.admission.unreachable import MARGIN
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.holding_queue import HoldingQueue, log_queue_error
from scrapy_rep.scheduler.requests_in_redis import (
    DUE,
    FIFO,
    LEASE,
    LIFO,
    NOTHING_DUE,
    PRIORITY,
    RequestsInRedis,
)
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.scrapy_internals import wake_engine
from scrapy_rep.utils.text import counted, printable_request

_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks for due origins while there is no room for lookups."""
_DUE: Final = "due"
"""The key of the wait until the next origin in Redis is due."""
_SETTLE: Final = "settle"
_REDIS: Final = HoldReason("Redis is asked later")
"""The key of the wait until Redis is told that a request has left."""
_SETTLE_INTERVAL: Final = 5.0
"""Seconds after which Redis is told that a request has left, if no other call has told it."""


class _HoldingRedisQueue(HoldingQueue[Origin | str], Base):  # type: ignore[misc]
    """Base of the queues: a request leaves if ``Admission.admit`` returns None, or raises an error.

    Requests whose next try comes after REP_DEFER_TIMEOUT leave, too, as OVERDUE, to be dropped.
    As in scrapy-redis, Redis is called in the thread of the reactor. ``pop`` never waits for a
    request, whatever SCHEDULER_IDLE_BEFORE_CLOSE is. It raises errors of Redis: the engine logs
    them, and pops again within five seconds.
    """

    _kind: ClassVar[str]

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        Base.__init__(self, server, spider, key, serializer)
        HoldingQueue.__init__(self, spider.crawler, Clock())
        self._heads: dict[Origin | str, Request] = {}
        """Origins that this worker handles until their hold ends; each with a request."""
        self._deferred, self._first_due = 0, 0.0
        """Number of deferred origins in Redis, and when the first origin there is due."""
        self._requests = RequestsInRedis(server, self.key, self._kind, self._timeout)
        self._crawler.signals.connect(self.stop, signals.spider_closed)

    # What the scheduler calls.

    def _count(self) -> int:
        return len(self._requests)

    def clear(self) -> None:
        """Remove all requests, of all workers."""
        self.server.delete(*self._requests.keys)

    def push(self, request: Request) -> None:
        super().push(request)
        self._request_pushed()

    def pop(self, timeout: int = 0) -> Request | None:  # noqa: ARG002 - as scrapy-redis calls it
        """Remove one request that may leave, and return it; begin pending lookups.

        Return None if there is none, or if the one that it took must wait; others may leave then,
        so the engine is woken, and pops again.
        """
        self._look_up()
        while self._woken:
            origin = self._woken.popleft()
            head = self._heads.pop(origin, None)
            if isinstance(origin, Origin) and head is not None:
                taken = self._pop_unless_held(origin, head)
                if taken is not None:
                    return taken
        has_room = self._has_room_for_lookups
        kind, *found = self._requests.next(has_room=has_room)
        if kind == NOTHING_DUE:
            self._set_timer(*found, has_room=has_room)
            return None
        taken = (
            self._pop_from_due_origin(*found)
            if kind == DUE
            else self._leave_or_wait(*found, has_room=has_room)
        )
        if taken is None:
            wake_engine(self._crawler)
        return taken

    # What the admission calls.

    def next_unknown(self) -> Origin | None:
        lookups = None if self._admission is None else self._admission.lookups
        for _, origin, hold in self._waiting:
            if lookups and origin and hold.reason is UNKNOWN and not lookups.is_under_way(origin):
                return origin
        return None

    def head_of(self, origin: Origin) -> Request | None:
        head = self._heads.get(origin)
        if head is None:
            return None
        requests = [self._decode_request(data) for data in self._requests.first(str(origin))]
        # If other workers have popped all requests of the origin, the one known here is used.
        return requests[0] if requests else head

    def count_deferred(self) -> tuple[int, bool]:
        """Return how many origins in Redis are deferred; and if this worker waits for no origin."""
        return self._deferred, not self._heads

    def idle_line(self) -> str:
        if not self._deferred:
            return ""
        what = counted(self._deferred, "unreachable origin")
        seconds = max(0.0, self._first_due - self._clock.monotonic())
        return f"Waiting for {what}: the next try is in {seconds:.0f} s"

    def holds(self) -> Iterator[tuple[Origin, Hold, int]]:
        """Yield each origin that this worker waits for, its hold, and 1 for the known request."""
        for _, origin, hold in self._waiting:
            if origin is not None:
                yield origin, hold, 1

    def stop(self) -> int:
        """Tell Redis what has left, stop all timers; return 0: Redis keeps deferred requests."""
        self._settle()
        self._waiting.close()
        return 0

    # Whether a request may leave.

    def _leave_or_wait(self, data: Any, *, has_room: bool) -> Request | None:
        """Return the request that was taken; None if it may not leave, and waits in Redis.

        Without ``has_room``, its lookup is left to any worker. After an error it leaves as DIRECT;
        but if it can't be read, the error is raised.
        """
        request = self._decode(data)
        try:
            origin = self._origin(request)
            hold = self._hold(origin, lambda: request)
        except Exception as error:  # noqa: BLE001 - logged
            what = "Error while asking whether %s may leave"
            log_queue_error(self._crawler, error, what, printable_request(request))
            return self._leave(request, Source.DIRECT)
        if origin is None or hold is None:
            return self._leave(request, Source.QUEUE)
        name = str(origin)
        if hold.reason.defers:
            if self._is_overdue(hold):
                return self._leave(request, Source.OVERDUE)
            seconds = self._seconds_left(hold)
            self._count_as_deferred(self._requests.wait(name, seconds, defers=True))
            return None
        # Else any worker may do the lookup.
        is_ours = has_room or origin in self._heads or hold.reason is not UNKNOWN
        self._requests.wait(name, LEASE if is_ours else 0)
        if is_ours:
            self._set_waiting(origin, request, hold)
        return None

    def _pop_from_due_origin(self, name: bytes | str, age: int, data: Any) -> Request | None:
        """Handle an origin that is due in Redis; return its first request if that may leave.

        ``name`` is the origin, ``age`` the time in milliseconds since its first request was
        deferred, ``data`` this request. If it can't be read, or no robots.txt governs it, all
        requests of the origin go back to the queue.
        """
        name = name.decode() if isinstance(name, bytes) else name
        try:
            request = self._decode_request(data)
            origin = self._origin(request)
        except Exception as error:  # noqa: BLE001 - logged
            # The request goes back to the queue: the next pop of it raises the error, as without
            # scrapy-rep.
            log_queue_error(self._crawler, error, "A request of %s can't be read", name)
            origin = None
        if origin is None:
            self._requests.requeue(name)
            return None
        return self._pop_unless_held(origin, request, age / 1000)

    def _pop_unless_held(
        self, origin: Origin, request: Request, age: float = 0.0
    ) -> Request | None:
        """Return the next waiting request of an origin; None if it must wait on, or is gone.

        If it leaves, the admission is asked for the request after it. If that may leave, too, all
        go back to the queue. ``age`` is the seconds since the first request was deferred.
        """
        name = str(origin)
        hold = self._hold(origin, lambda: self._first_request(name))
        is_overdue = hold is not None and hold.reason.defers and self._is_overdue(hold, age)
        if hold is not None and not is_overdue:
            self._wait_or_requeue(origin, request, hold)
            return None
        data, others = self._requests.take(name, is_overdue=is_overdue)
        if others and not is_overdue:
            hold = self._hold(origin, lambda: self._first_request(name))
            self._wait_or_requeue(origin, request, hold)
        if data is None:
            return None
        return self._leave(self._decode(data), Source.OVERDUE if is_overdue else Source.QUEUE)

    def _wait_or_requeue(self, origin: Origin, request: Request, hold: Hold | None) -> None:
        """Let the requests of an origin wait until ``hold`` ends; if it is None, requeue them."""
        if hold is None:
            self._requests.requeue(str(origin))
        elif hold.reason.defers:
            seconds = self._seconds_left(hold)
            self._count_as_deferred(self._requests.defer_all(str(origin), seconds))
        else:
            self._set_waiting(origin, request, hold)

    def _set_waiting(self, origin: Origin, request: Request, hold: Hold) -> None:
        """Note that this worker waits until ``hold`` of ``origin`` ends; begin a pending lookup."""
        self._heads.setdefault(origin, request)
        self._waiting.add(origin, origin, hold)
        if hold.reason is UNKNOWN:
            self._look_up()

    def _wake(self, keys: list[Origin | str]) -> None:
        if _SETTLE in keys:
            self._settle()
        super()._wake(keys)

    def _is_overdue(self, hold: Hold, age: float = 0.0) -> bool:
        """Return whether the next try of robots.txt comes after REP_DEFER_TIMEOUT.

        The requests have been deferred for ``age`` seconds already.
        """
        return hold.until - self._clock.monotonic() > self._timeout - age

    def _seconds_left(self, hold: Hold) -> float:
        return max(0.001, hold.until - self._clock.monotonic())

    def _leave(self, request: Request, source: Source) -> Request:
        """Return ``request`` with its source in its meta; Redis is told later that it has left."""
        self._requests.leave()
        if _SETTLE not in self._waiting:
            self._wait_for(_SETTLE, _SETTLE_INTERVAL)
        return self._request_leaves(request, source)

    def _settle(self) -> None:
        """Tell Redis what became of the request that was taken, if no call has told it yet."""
        if self._requests.is_settled:
            return
        try:
            len(self._requests)
        except Exception as error:  # noqa: BLE001 - logged
            log_queue_error(self._crawler, error, "Redis could not be told what left %s", self.key)
            self._wait_for(_SETTLE, _SETTLE_INTERVAL)

    def _wait_for(self, key: str, seconds: float) -> None:
        self._waiting.add(key, None, Hold(_REDIS, self._clock.monotonic() + seconds))

    # Requests in Redis.

    def _first_request(self, name: str) -> Request:
        """Return the next request of an origin; raise LookupError if it can't be read."""
        try:
            (data,) = self._requests.first(name)
            request: Request = self._decode_request(data)
        except Exception as error:  # logged when the request is popped
            raise LookupError(name) from error
        return request

    def _decode(self, data: Any) -> Request:
        """Return the request that was taken. If that can't be read, it is lost, and this raised."""
        try:
            request: Request = self._decode_request(data)
        except Exception:
            self._requests.leave()
            raise
        return request

    def _set_timer(self, origins: int, milliseconds: int, *, has_room: bool) -> None:
        """Wake the engine when the next origin is due, in ``milliseconds``; below 0, none will be.

        Without ``has_room`` for lookups, not within a second. ``origins`` is how many are deferred.
        For new requests the engine pops every five seconds.
        """
        seconds = milliseconds / 1000 + MARGIN
        self._deferred, self._first_due = origins, self._clock.monotonic() + seconds
        if milliseconds >= 0:
            self._wait_for(_DUE, seconds if has_room else max(_CHECK_INTERVAL, seconds))
        else:
            self._waiting.discard(_DUE)


class RobotsAwareRedisQueue(_HoldingRedisQueue, PriorityQueue):  # type: ignore[misc]
    """The PriorityQueue of scrapy-redis, which holds requests until they may leave.

    It is used with ``SCHEDULER_QUEUE_CLASS = "scrapy_rep.RobotsAwareRedisQueue"``. Requests that
    wait are in Redis, and shared by all workers: if a worker is killed, none of them is lost.
    """

    _kind = PRIORITY


class RobotsAwareRedisFifoQueue(_HoldingRedisQueue, FifoQueue):  # type: ignore[misc]
    """The FifoQueue of scrapy-redis, which holds requests as ``RobotsAwareRedisQueue`` does."""

    _kind = FIFO


class RobotsAwareRedisLifoQueue(_HoldingRedisQueue, LifoQueue):  # type: ignore[misc]
    """The LifoQueue of scrapy-redis, which holds requests as ``RobotsAwareRedisQueue`` does."""

    _kind = LIFO
