"""The store in Redis or Valkey, which crawlers on several machines may share.

Each record, lease and turn is a key that expires, so that Redis itself deletes old ones. Calls run
in threads, because redis-py's asyncio client only works with the asyncio reactor. Calls that wait
at the same time are sent in one pipeline. A key whose value is not a string was written by another
program, and is not used: each worker then fetches without that lease, or keeps the delay alone.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis.exceptions import ResponseError

from scrapy_rep.protocol.record import Record, RecordError, max_encoded_size
from scrapy_rep.stores.base import ForeignKeyError, RecordAndLease, StoreError, Turn
from scrapy_rep.stores.redis_client import ERRORS, Connector
from scrapy_rep.utils.concurrency import Workers, deliver_results
from scrapy_rep.utils.once import Once

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from scrapy_rep.utils.concurrency import Job

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

_THREADS: Final = 4
"""Number of threads for calls of a cluster, which are not sent in pipelines."""
_BATCH: Final = 100
"""Maximum number of calls in one pipeline."""
_PAGE: Final = 1_000
"""Number of keys that a step of SCAN examines. A step blocks the server for about 1 ms."""
_MAX_HOLDER: Final = 200
"""Maximum number of bytes read from a lease."""
_MICROSECONDS: Final = 1_000_000

_NO_LEASE: Final = "of another type"
"""Used as the holder of a lease whose value is not a string. No worker has this name."""

# pcall is used, because call would raise an error if the value is not a string.
_RELEASE: Final = """
if redis.pcall('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# The value has two times in microseconds of the server's clock: when it was written, and when the
# next free turn begins. If the clock was set back, the wait is counted from the time of writing.
# The error of a failed GET is returned and not raised, because in Redis before 7 the message of a
# raised error doesn't begin with its type (WRONGTYPE).
_RESERVE: Final = """
local time = redis.call('TIME')
local now, step = time[1] * 1000000 + time[2], tonumber(ARGV[1])
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return stored end
local made, next = string.match(stored or '', '^(%d+) (%d+)$')
local wait = 0
if next then
  wait = next - math.max(now, made)
  if next == ARGV[2] then wait = wait - step end
end
wait = math.max(0, wait)
next = string.format('%.0f', now + wait + step)
local lifetime = math.ceil((wait + step) / 1000) + 1
redis.call('SET', KEYS[1], string.format('%.0f ', now) .. next, 'PX', lifetime)
return {wait, next}
"""


class RedisStore:
    """A store in Redis: one key per record, lease and turn."""

    def __init__(
        self, uri: str, *, prefix: str, max_size: int, max_age: float, timeout: float
    ) -> None:
        """``max_age`` is in seconds. Raises ValueError if redis-py can't read ``uri``."""
        self._connector = Connector(uri, timeout=timeout)
        self._prefix = prefix
        self._limit = max_encoded_size(max_size)
        self._max_size = max_size
        self._max_age = max(1, round(max_age * 1000))
        self._logged = Once()
        # A cluster gets each call separately: one node that is down would fail a whole pipeline.
        at_a_time = {"threads": _THREADS} if self._connector.is_cluster else {"batch": _BATCH}
        self._calls = Workers("robots.txt-redis", run=self._run, **at_a_time)
        # A separate thread, so that a call for a turn doesn't wait until records are read.
        self._turns = Workers("robots.txt-turns", batch=_BATCH, run=self._run)
        self._workers = Workers("robots.txt-keys")

    async def get(self, key: str) -> RecordAndLease:
        """Return the record and the lease of ``key``."""
        get = partial(self._get, key)
        return self._replace_foreign_lease(await self._calls.call(get), key, None)

    async def claim(self, key: str, holder: str, seconds: float) -> RecordAndLease:
        """Give ``holder`` the lease of ``key`` for ``seconds``, unless another worker holds it."""

        def claim(pipeline: Any) -> Any:
            lease = self._key("lease", key)
            pipeline.set(lease, holder, nx=True, px=max(1, round(seconds * 1000)))
            return self._get(key, pipeline)

        return self._replace_foreign_lease(await self._calls.call(claim), key, holder)

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the former record of its file."""

        def put(pipeline: Any) -> Any:
            key, data = self._key("record", record.file.key), record.encode()
            pipeline.set(key, data, px=self._max_age)
            if holder is not None:
                self._release(record.file.key, holder, pipeline)
            return _raise_first_error

        await self._calls.call(put)

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if ``holder`` has it."""
        await self._calls.call(partial(self._release, key, holder))

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``; the turn after it is ``seconds`` later."""
        called_at, step = monotonic(), round(seconds * _MICROSECONDS)
        name = self._key("turn", key)

        def reserve(pipeline: Any) -> Any:
            returned = "" if unused is None else unused
            pipeline.execute_command("EVAL", _RESERVE, 1, name, step, returned)
            return lambda replies: (replies[0], monotonic())

        reply, answered_at = await self._turns.call(reserve)
        if _is_of_another_type(reply):
            self._log_foreign(name, "keeps the delay of this site by itself")
            raise ForeignKeyError(name)
        with self._store_errors():
            _raise_first_error([reply])
        wait, number = reply
        # The server counts ``wait`` from some time between call and reply. Here it is added to the
        # time of the reply, so that the request is not sent too early.
        return Turn(answered_at - called_at + wait / _MICROSECONDS, int(number))

    async def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, unordered; a key may come twice while keys change."""
        for node in await self._workers.call(self._nodes):
            cursor = 0
            while True:
                cursor, keys = await self._workers.call(partial(self._scan, node, cursor))
                for key in keys:
                    yield key
                if not cursor:
                    break

    async def discard(self, key: str) -> bool:
        """Delete the record of ``key``; return whether there was one."""

        def discard(pipeline: Any) -> Any:
            pipeline.delete(self._key("record", key))
            return _raise_first_error

        (count,) = await self._calls.call(discard)
        return bool(count)

    async def prune(self) -> int:
        """Return 0: Redis deletes expired keys itself.

        Raises StoreError if Redis can't be reached.
        """

        def ping() -> int:
            with self._client() as client:
                client.ping()
            return 0

        return await self._workers.call(ping)

    async def close(self) -> None:
        """Finish all calls, and close the connections."""
        for workers in (self._calls, self._turns, self._workers):
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

    def _release(self, key: str, holder: str, pipeline: Any) -> Any:
        pipeline.execute_command("EVAL", _RELEASE, 1, self._key("lease", key), holder)
        return _raise_first_error

    def _nodes(self) -> list[Any]:
        """Return the primary nodes of a cluster; ``[None]`` if the store is not a cluster."""
        with self._client() as client:
            return list(client.get_primaries()) if self._connector.is_cluster else [None]

    def _scan(self, node: Any, cursor: int) -> tuple[int, list[str]]:
        """Run one step of SCAN on ``node``; return the next cursor, 0 at the end, and the keys."""
        start, end = self._key("record", "\0").split("\0")
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", start) + "*" + end
        with self._client() as client:
            if node is None:
                cursor, keys = client.scan(cursor, pattern, _PAGE)
            else:
                cursors, keys = client.scan(cursor, pattern, _PAGE, target_nodes=node)
                cursor = cursors[node.name]
        # Keys of scrapy-rep are valid UTF-8. Keys of other programs are read without the bytes that
        # are not valid.
        names = (key.decode("utf-8", "ignore") for key in dict.fromkeys(keys))
        return int(cursor), [name.removeprefix(start).removesuffix(end) for name in names]

    def _key(self, kind: str, key: str) -> str:
        # A cluster determines the node of a key by its part in braces.
        return f"{self._prefix}{kind}:{{{key}}}"

    def _get(self, key: str, pipeline: Any) -> Any:
        # Another program may have written a value of any size. One byte above the limit is enough
        # for Record.decode to refuse it.
        pipeline.getrange(self._key("record", key), 0, self._limit)
        pipeline.getrange(self._key("lease", key), 0, _MAX_HOLDER)
        return partial(self._record_and_lease, key)

    def _record_and_lease(self, key: str, replies: list[Any]) -> RecordAndLease:
        *before, data, holder = replies
        if _is_of_another_type(holder):
            holder = _NO_LEASE.encode()
        _raise_first_error([*before, holder])
        record = None
        if data and isinstance(data, bytes):
            with suppress(RecordError):
                record = Record.decode(data, key, max_size=self._max_size)
        return RecordAndLease(record, holder.decode("utf-8", "replace") or None)

    def _replace_foreign_lease(
        self, found: RecordAndLease, key: str, holder: str | None
    ) -> RecordAndLease:
        """Return ``found``; if its lease is not a string, its holder is replaced by ``holder``.

        A lease that is not a string can't be used. Each worker fetches as if it held the lease.
        """
        if found.holder != _NO_LEASE:
            return found
        self._log_foreign(self._key("lease", key), "fetches this robots.txt itself")
        return found._replace(holder=holder)

    def _log_foreign(self, key: str, what: str) -> None:
        """Log once that another program has written ``key``; ``what`` is what each worker does."""
        if self._logged.add_if_new(key):
            logger.warning(
                "The Redis key %a was not written by scrapy-rep and is not used: each worker %s",
                key,
                what,
            )

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


def _is_of_another_type(reply: Any) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE")
