"""The queues of scrapy-redis, for workers that let requests wait until they may leave.

A worker takes a request from the queue of scrapy-redis, and puts it into a table of its own. What
may leave leaves; the rest waits there. Two kinds of requests go to Redis again, and wait there:
those of an unreachable origin, until its next try, and what is too much for the table. Each origin
has a sorted set of its requests, and the set ``:waiting`` has the origins, by the time at which
they are due. The first worker that finds an origin due takes requests of it into its table.

When the spider is closed, the table is given back to the queue of scrapy-redis. A worker that is
killed loses what it had taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from secrets import token_hex
from typing import Any, Final

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.squeues import FifoMemoryQueue
from scrapy_redis.queue import (  # type: ignore[import-untyped] # it has no types
    Base,
    FifoQueue,
    LifoQueue,
    PriorityQueue,
)

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.deferral import MARGIN
from scrapy_rep.admission.hold import Hold
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.priority_queue import RobotsAwarePriorityQueue, log_queue_error
from scrapy_rep.scheduler.request_heaps import Lane, RequestHeaps
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.download_slots import slot_name
from scrapy_rep.utils.scrapy_internals import is_closing, wake_engine
from scrapy_rep.utils.text import counted

_MOST_ROWS: Final = 1_000
"""Requests in the table of a worker. With so many, half of its longest lane goes to Redis."""
_ENOUGH: Final = 4
"""Unknown origins in the table above which no other requests are taken while there is no room for a
lookup: other workers may have some."""
_MORE: Final = 4
"""How many more for each lookup that takes long: what comes next may be of a known origin."""
_MOST_TAKEN: Final = 50
"""Requests that are taken in one pop if all have to wait, so that the loop goes on."""
_MOST_CLAIMED: Final = 100
"""Requests of an origin that are taken when it is due."""
_LATER: Final = 10.0
"""Seconds after which what was too much for the table is due."""
_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks for due origins, and until an origin is due again of which only the
first requests were taken."""

_CLAIM: Final = """
-- Take the first requests of an origin that is due; if it has more, it is due again `later`.
-- Return these requests, the number of origins, and when the next is due.
-- It removes before it adds: a Redis without free memory lets a script add only then.
local due, now, most, later = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local found, origin = {}, redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 1)[1]
if origin then
    local waiting = due .. ':' .. origin
    found = redis.call('ZRANGE', waiting, 0, most - 1)
    redis.call('ZREMRANGEBYRANK', waiting, 0, most - 1)
    redis.call('ZREM', due, origin)
    if redis.call('EXISTS', waiting) == 1 then redis.call('ZADD', due, later, origin) end
end
local next_due = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
return {found, redis.call('ZCARD', due), next_due or 'inf'}
"""


class _Waiting:
    """The requests that wait in Redis, of all workers."""

    def __init__(self, crawler: Crawler, queue: Base) -> None:
        self._crawler = crawler
        self._queue = queue
        self._key = f"{queue.key}:waiting"
        self._claim = queue.server.register_script(_CLAIM)
        self._worker, self._numbers = token_hex(4), count()
        self._clock = Clock()
        self.check_at = self.next_due = 0.0
        """When Redis is asked for due origins, and when the next one is due, as far as known."""
        self.origins = 0
        """The number of origins that wait, as far as known."""

    def count(self) -> int:
        self.origins = self._queue.server.zcard(self._key)
        return self.origins

    def store(self, origin: Origin, requests: list[Request], seconds: float, since: float) -> None:
        """Let requests wait for ``seconds``; ``since`` is as for ``_OwnTable.put``."""
        rows = {}
        for request in requests:
            data = self._queue._encode_request(request)  # noqa: SLF001 - for subclasses
            data = data.encode() if isinstance(data, str) else data
            name = f"{self._clock.time():017.6f}{next(self._numbers):09}{self._worker} {since} "
            rows[name.encode() + data] = -request.priority
        with self._queue.server.pipeline() as pipe:
            pipe.zadd(f"{self._key}:{origin}", rows)
            pipe.zadd(self._key, {str(origin): self._clock.time() + seconds})
            pipe.zcard(self._key)
            self.origins = pipe.execute()[-1]
        self._set_next_due(seconds)

    def take(self) -> Iterator[tuple[Request, float]]:
        """Remove the first requests of an origin that is due; yield each, and its ``since``."""
        now = self._clock.time()
        rows, self.origins, next_due = self._claim(
            keys=[self._key], args=[now, _MOST_CLAIMED, now + _CHECK_INTERVAL]
        )
        self.check_at, self.next_due = self._clock.monotonic() + _CHECK_INTERVAL, math.inf
        self._set_next_due(float(next_due) - now)
        for row in rows:
            _, since, data = row.split(b" " if isinstance(row, bytes) else " ", 2)
            try:
                yield self._queue._decode_request(data), float(since)  # noqa: SLF001 - the same
            except Exception as error:  # noqa: BLE001 - logged; the others must not be lost
                stats.count(self._crawler, stats.QUEUE_UNREADABLE)
                log_queue_error(self._crawler, error, "A request in %s can't be read", self._key)

    def _set_next_due(self, seconds: float) -> None:
        due = self._clock.monotonic() + max(0.0, seconds) + MARGIN
        self.next_due, self.check_at = min(self.next_due, due), min(self.check_at, due)

    def clear(self) -> None:
        origins = self._queue.server.zrange(self._key, 0, -1)
        names = [name.decode() if isinstance(name, bytes) else name for name in origins]
        self._queue.server.delete(self._key, *(f"{self._key}:{name}" for name in names))

    def describe(self) -> str:
        if not self.origins:
            return ""
        seconds = max(0.0, self.next_due - self._clock.monotonic())
        what = counted(self.origins, "unreachable origin")
        return f"Waiting for {what}: the next try is in {seconds:.0f} s"


class _OwnTable(RobotsAwarePriorityQueue):
    """The requests that this worker has taken, and that have to wait."""

    _is_alone = False
    _requests: RequestHeaps

    def __init__(self, crawler: Crawler, waiting: _Waiting) -> None:
        super().__init__(crawler, FifoMemoryQueue, "")
        self._waiting = waiting

    @property
    def is_full(self) -> bool:
        """Whether no other requests are taken for now."""
        if self._admission is None:
            return False
        lookups = self._admission.unknown.lookups
        most = min(_ENOUGH + _MORE * len(lookups.slow), _MOST_ROWS / 2)
        return len(self._requests.unknown) >= most and not lookups.has_room

    def put(self, request: Request, since: float = 0.0) -> None:
        """Add a request; ``since`` is when it was deferred, in seconds since the epoch, or 0."""
        lane = Lane(str(slot_name(self._crawler, request)), self._origin(request))
        self._requests.push(*lane[:2], (-request.priority, False, 1), request)
        if since:
            began = since - self._clock.time() + self._clock.monotonic()
            self._deferred_since[lane] = min(began, self._deferred_since.get(lane, began))

    def take_due(self) -> None:
        """Move the first requests of an origin that is due from Redis to the table."""
        if self._requests.size < _MOST_ROWS and self._clock.monotonic() >= self._waiting.check_at:
            for request, since in self._waiting.take():
                self.put(request, since)
            self._set_timer(self._waiting.next_due)

    def make_room(self) -> None:
        """Move the last half of the longest lane that waits to Redis if the table is too long."""
        if self._requests.size < _MOST_ROWS:
            return
        lane, size = max(self._requests.waiting(), key=lambda each: each[1], default=(None, 0))
        if lane is not None:
            self._move(lane, self._clock.monotonic() + _LATER, keep=size // 2)

    def take_all(self) -> list[Request]:
        requests, self._requests = self._requests.all_requests(), RequestHeaps()
        return requests

    def count_deferred(self) -> tuple[int, bool]:
        # RedisSpider reads start URLs when it is idle. No delay or pause is to keep it from that,
        # as long as there is room for them.
        only = len(self._holds) == self._requests.lanes and self._requests.size < _MOST_ROWS // 2
        return len(self._holds) + self._waiting.origins, only

    def idle_line(self) -> str:
        return self._waiting.describe()

    def _let_wait(self, lane: Lane, hold: Hold) -> None:
        if hold.reason.defers:
            try:
                self._move(lane, hold.until)
            except Exception as error:  # noqa: BLE001 - logged; they wait here
                log_queue_error(self._crawler, error, "Requests of %s stay here", lane.origin)
            else:
                return
        super()._let_wait(lane, hold)

    def _move(self, lane: Lane, until: float, keep: int = 0) -> None:
        """Let the requests of ``lane`` wait in Redis, but the first ones that it may ``keep``."""
        if lane.origin is None:
            return
        requests, since = self._requests.requests_of(lane), self._deferred_since.get(lane, 0.0)
        if since:
            since += self._clock.time() - self._clock.monotonic()
        self._waiting.store(lane.origin, requests[keep:], until - self._clock.monotonic(), since)
        self._set_timer(self._waiting.next_due)
        self._requests.remove_lane(lane)
        self._forget(lane)
        for request in requests[:keep]:
            self.put(request, since)


class _HoldingRedisQueue(Base):  # type: ignore[misc] # Base has no types
    """Base of the queues.

    As in scrapy-redis, Redis is called in the thread of the reactor. ``pop`` never waits for a
    request, whatever SCHEDULER_IDLE_BEFORE_CLOSE is. It raises errors of Redis: the engine logs
    them, and pops again within five seconds.
    """

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        super().__init__(server, spider, key, serializer)
        self._crawler = spider.crawler
        self._waiting = _Waiting(self._crawler, self)
        self._own = _OwnTable(self._crawler, self._waiting)
        admission = Admission.of(self._crawler)
        self._deferral = None if admission is None else admission.deferral
        self._crawler.signals.connect(self._spider_closed, signals.spider_closed)

    def __len__(self) -> int:
        """Return the number of requests that no other worker has taken.

        An origin that waits in Redis counts as one request. If all requests wait until a time, they
        count as none, so that ``spider_idle`` is sent.
        """
        origins, deferral = self._waiting.count(), self._deferral
        size = int(super().__len__()) + len(self._own)
        if not size and deferral and deferral.counts_as_empty(self._own.count_deferred()):
            return 0
        return size + origins

    def clear(self) -> None:
        super().clear()
        self._waiting.clear()
        self._own.take_all()

    def push(self, request: Request) -> None:
        self._own._undo_reserve(request)  # noqa: SLF001 - as its own push does
        super().push(request)
        if self._deferral is not None:
            self._deferral.request_pushed()

    def pop(self, timeout: int = 0) -> Request | None:  # noqa: ARG002 - as scrapy-redis calls it
        """Remove one request that may leave, and return it; None if there is none now."""
        if is_closing(self._crawler):
            return None
        self._own.take_due()
        for _ in range(_MOST_TAKEN):
            if (request := self._own.pop()) is not None:
                return request
            self._own.make_room()
            taken = None if self._own.is_full else super().pop()
            if taken is None:
                return None
            self._own.put(taken)
        wake_engine(self._crawler)
        return None

    def _spider_closed(self) -> None:
        self._own.stop()
        requests = self._own.take_all()[::-1]
        try:
            while requests:
                super().push(requests[-1])
                requests.pop()
        except Exception as error:  # noqa: BLE001 - logged
            what = "Requests lost, because Redis could not be given them back: %d"
            log_queue_error(self._crawler, error, what, len(requests))


class RobotsAwareRedisQueue(_HoldingRedisQueue, PriorityQueue):  # type: ignore[misc] # the same
    """The PriorityQueue of scrapy-redis, for workers that let requests wait.

    It is used with ``SCHEDULER_QUEUE_CLASS = "scrapy_rep.RobotsAwareRedisQueue"``. A worker keeps
    up to 1,000 requests that wait, and gives them back when it is closed. If it is killed, they are
    lost. Requests of unreachable origins wait in Redis.
    """


class RobotsAwareRedisFifoQueue(_HoldingRedisQueue, FifoQueue):  # type: ignore[misc] # the same
    """The FifoQueue of scrapy-redis, for workers that let requests wait."""


class RobotsAwareRedisLifoQueue(_HoldingRedisQueue, LifoQueue):  # type: ignore[misc] # the same
    """The LifoQueue of scrapy-redis, for workers that let requests wait."""
