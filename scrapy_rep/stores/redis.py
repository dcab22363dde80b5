"""The store in Redis or Valkey, which crawlers on several machines may share.

Each record and lease is a key that expires, so that Redis itself deletes old ones. Calls run
in threads, because redis-py's asyncio client only works with the asyncio reactor. Calls that wait
at the same time are sent in one pipeline. A key of another type than ours was written by another
program, and is not used: each worker then acts without that lease.
"""

import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from redis.exceptions import ResponseError

from scrapy_rep.protocol.record import Record, RecordError, max_encoded_size
from scrapy_rep.stores.base import PAUSE, Lease, RecordAndLease, StoreError
from scrapy_rep.stores.redis_client import ERRORS, Connector
from scrapy_rep.utils.bounded import Once
from scrapy_rep.utils.concurrency import Job, Workers, deliver_results
from scrapy_rep.utils.log import LimitedLogger

T = TypeVar("T")

_THREADS: Final = 4
"""Number of threads for calls of a cluster, which are not sent in pipelines."""
_BATCH: Final = 100
_PAGE: Final = 1_000
"""Number of keys that a step of SCAN examines. A step blocks the server for about 1 ms."""
_MAX_HOLDER: Final = 200
"""Maximum number of bytes read from a lease."""

# pcall is used, because call would raise an error if the value is not a string.
_RELEASE: Final = """
if redis.pcall('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# Keys: the lease and the record. Arguments: the holder, milliseconds, 1 to take the lease from
# another holder, the size of a holder, 1 to claim only if there is no record. The error of a failed
# GETRANGE is returned and not raised, because in Redis before 7 the message of a raised error
# doesn't begin with its type (WRONGTYPE). A string that doesn't expire (PTTL is -1) was written by
# another program, and is replaced.
_CLAIM: Final = """
local holder = redis.pcall('GETRANGE', KEYS[1], 0, ARGV[4])
if type(holder) == 'table' then return holder end
local left, wanted = redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])
if ARGV[5] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then
  if left < 0 then return {'', 0} end
  return {holder, left}
end
if ARGV[3] == '1' then
  wanted = math.max(wanted, left)
elseif holder ~= '' and holder ~= ARGV[1] and left > 0 then
  return {holder, left}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', wanted)
return {ARGV[1], wanted}
"""
# A sorted set of the keys of paused hosts, by the end of the pause in milliseconds.
_NOW: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""
_ADD_PAUSE: Final = f"""{_NOW}
local ending = now + ARGV[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0) < ending then
  redis.call('ZADD', KEYS[1], ending, ARGV[1])
end
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
"""
_PAUSES: Final = f"""{_NOW}
local found = redis.pcall('ZRANGEBYSCORE', KEYS[1], now, '+inf', 'WITHSCORES')
if found.err then return found end
for i = 2, #found, 2 do found[i] = found[i] - now end
return found
"""


class RedisStore:
    """A store in Redis: one key per record and lease, and one with all pauses."""

    def __init__(
        self, uri: str, *, prefix: str, max_size: int, max_age: float, timeout: float
    ) -> None:
        """``max_age`` is in seconds. Raises ValueError if redis-py can't read ``uri``."""
        self._connector = Connector(uri, timeout=timeout)
        self._prefix = prefix
        self._pauses = f"{prefix}pauses"
        self._limit = max_encoded_size(max_size)
        self._max_size = max_size
        self._max_age = max(1, round(max_age * 1000))
        self._logged = Once()
        self._logger = LimitedLogger(__name__)
        # A cluster gets each call separately: one node that is down would fail a whole pipeline.
        at_a_time = {"threads": _THREADS} if self._connector.is_cluster else {"batch": _BATCH}
        self._calls = Workers("robots.txt-redis", run=self._run, **at_a_time)
        # Separate threads, so that the claim of a host doesn't wait until records are read.
        self._claims = Workers("robots.txt-claims", run=self._run, **at_a_time)
        self._workers = Workers("robots.txt-keys")

    async def get(self, key: str) -> RecordAndLease:
        def get(pipeline: Any) -> Any:
            self._queue_get_record(key, pipeline)
            lease = self._key("lease", key)
            pipeline.getrange(lease, 0, _MAX_HOLDER)
            pipeline.pttl(lease)
            return read

        def read(replies: list[Any]) -> RecordAndLease:
            data, *lease = replies
            return RecordAndLease(self._record(key, data), self._lease(key, *lease))

        found: RecordAndLease = await self._calls.call(get)
        return found

    async def claim(
        self, key: str, holder: str, seconds: float, *, force: bool = False, if_absent: bool = False
    ) -> RecordAndLease:
        """Claim as in ``Store``; a key of another program counts as the lease of ``holder``."""
        milliseconds = max(1, math.ceil(seconds * 1000))

        def claim(pipeline: Any) -> Any:
            names = self._key("lease", key), self._key("record", key)
            arguments = holder, milliseconds, int(force), _MAX_HOLDER, int(if_absent)
            pipeline.execute_command("EVAL", _CLAIM, 2, *names, *arguments)
            self._queue_get_record(key, pipeline)
            if holder == PAUSE:
                pipeline.execute_command("EVAL", _ADD_PAUSE, 1, self._pauses, key, milliseconds)
            return read

        def read(replies: list[Any]) -> RecordAndLease:
            claimed, data = replies[:2]
            name, left = (claimed, None) if isinstance(claimed, Exception) else claimed
            # Without a lease that can be used, each worker acts as if it held the lease.
            record, lease = self._record(key, data), self._lease(key, name, left)
            if lease is None and (isinstance(claimed, Exception) or not if_absent):
                lease = Lease(holder, seconds)
            return RecordAndLease(record, lease)

        found: RecordAndLease = await self._claims.call(claim)
        return found

    async def pauses_left(self) -> Mapping[str, float]:
        def get(pipeline: Any) -> Any:
            pipeline.execute_command("EVAL", _PAUSES, 1, self._pauses)
            return read

        def read(replies: list[Any]) -> dict[str, float]:
            if self._is_foreign(self._pauses, replies[0]):
                return {}  # a worker that claims the lease of a host is told of its pause
            (found,) = _raise_first_error(replies)
            keys = (key.decode("utf-8", "replace") for key in found[::2])
            return {key: int(left) / 1000 for key, left in zip(keys, found[1::2], strict=True)}

        pauses: dict[str, float] = await self._calls.call(get)
        return pauses

    async def put(self, record: Record, holder: str | None = None) -> None:
        def put(pipeline: Any) -> Any:
            key, data = self._key("record", str(record.origin)), record.encode()
            pipeline.set(key, data, px=self._max_age)
            if holder is not None:
                self._queue_release(str(record.origin), holder, pipeline)
            return _raise_first_error

        await self._calls.call(put)

    async def release(self, key: str, holder: str) -> None:
        await self._calls.call(partial(self._queue_release, key, holder))

    async def scan_keys(self) -> AsyncIterator[str]:
        start, end = self._key("record", "\0").split("\0")
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", start) + "*" + end

        def scan() -> Iterator[bytes]:
            with self._client() as client:
                yield from client.scan_iter(pattern, _PAGE)

        found = scan()
        while keys := await self._workers.call(lambda: list(islice(found, _PAGE))):
            for key in dict.fromkeys(keys):
                # Keys of scrapy-rep are valid UTF-8. Of those of other programs, the bytes that
                # are not valid are left out.
                name = key.decode("utf-8", "ignore")
                yield name.removeprefix(start).removesuffix(end)

    async def discard(self, key: str) -> bool:
        def discard(pipeline: Any) -> Any:
            pipeline.delete(self._key("record", key))
            return _raise_first_error

        (count,) = await self._calls.call(discard)
        return bool(count)

    async def prune(self) -> int:
        """Return 0: Redis deletes expired keys itself. Raises StoreError if it can't be reached."""

        def ping() -> int:
            with self._client() as client:
                client.ping()
            return 0

        return await self._workers.call(ping)

    async def close(self) -> None:
        for workers in (self._calls, self._claims, self._workers):
            await workers.stop()
        self._connector.close()

    def _run(self, jobs: list[Job]) -> None:
        """Send the commands of all jobs in one pipeline, and set the result of each job.

        The function of a job adds commands to the pipeline and returns another function, which
        reads the replies to these commands. The pipeline is no transaction: if a command fails, the
        other jobs are not affected.
        """
        try:
            spans = []
            with self._client() as client, client.pipeline(transaction=False) as pipeline:
                for job in jobs:
                    first = len(pipeline)
                    job.run(pipeline)
                    spans.append(slice(first, len(pipeline)))
                replies = pipeline.execute(raise_on_error=False)
            for job, span in zip(jobs, spans, strict=True):
                if job.error is None:
                    job.func = partial(self._read, job.result, replies[span])
                    job.run()
        except Exception as error:  # noqa: BLE001 - raised where each job is awaited
            for job in jobs:
                job.error = error
        deliver_results(jobs)

    def _read(self, read: Callable[[list[Any]], T], replies: list[Any]) -> T:
        with self._store_errors():
            return read(replies)

    def _queue_release(self, key: str, holder: str, pipeline: Any) -> Any:
        """Add the commands that release a lease to ``pipeline``; return what reads the replies."""
        pipeline.execute_command("EVAL", _RELEASE, 1, self._key("lease", key), holder)
        if holder == PAUSE:
            pipeline.zrem(self._pauses, key)
        return _raise_first_error

    def _key(self, kind: str, key: str) -> str:
        # A cluster determines the node of a key by its part in braces.
        return f"{self._prefix}{kind}:{{{key}}}"

    def _queue_get_record(self, key: str, pipeline: Any) -> None:
        # Another program may have written a value of any size. One byte above the limit is enough
        # for Record.decode to refuse it.
        pipeline.getrange(self._key("record", key), 0, self._limit)

    def _record(self, key: str, data: Any) -> Record | None:
        if data and isinstance(data, bytes):
            with suppress(RecordError):
                return Record.decode(data, key, max_size=self._max_size)
        return None

    def _lease(self, key: str, holder: Any, left: Any) -> Lease | None:
        """Return the lease of ``key`` from the replies of Redis, ``left`` in milliseconds.

        None if there is none, or another program has written it. Other errors are raised.
        """
        if self._is_foreign(self._key("lease", key), holder):
            return None
        _raise_first_error([holder, left])
        return (
            Lease(holder.decode("utf-8", "replace"), left / 1000) if holder and left > 0 else None
        )

    def _is_foreign(self, name: str, reply: Any) -> bool:
        """Return whether the Redis key ``name`` has another type than ours; log a warning once."""
        if not isinstance(reply, ResponseError) or not str(reply).startswith("WRONGTYPE"):
            return False
        if self._logged.add_if_new(name):
            self._logger.warning(
                "The Redis key %a was not written by scrapy-rep and is not used: each worker "
                "acts without it",
                name,
            )
        return True

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """Yield the client; raise its errors as StoreError."""
        with self._store_errors():
            yield self._connector.client()

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise errors of redis-py as StoreError."""
        try:
            yield
        except ERRORS as error:
            raise StoreError(self._connector.message_of(error)) from None


def _raise_first_error(replies: list[Any]) -> list[Any]:
    """Return ``replies``; if there are exceptions among them, raise the first one instead."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies
