"""The store in Redis or Valkey, for a fleet of crawlers.

All calls that wait for a thread are sent in one pipeline, so that a thousand lookups take a few
round trips.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis.exceptions import ResponseError

from scrapy_rep.protocol.record import Record, RecordError, max_encoded
from scrapy_rep.stores.base import ForeignKeyError, Held, StoreError, Turn
from scrapy_rep.stores.redis_client import ERRORS, Connector
from scrapy_rep.utils.concurrency import Workers, deliver
from scrapy_rep.utils.once import Once

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from scrapy_rep.utils.concurrency import Job

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

_THREADS: Final = 4
"""Number of concurrent calls to a cluster."""
_BATCH: Final = 100
"""Largest number of calls in one pipeline."""
_PAGE: Final = 1_000
"""COUNT of SCAN: a step takes the server about a millisecond."""
_MAX_HOLDER: Final = 200
"""Largest size of the value of a lease, in bytes."""
_MICROSECONDS: Final = 1_000_000

_NO_LEASE: Final = "of another type"
"""Replaces the holder of a lease whose key has a value of another type."""

# pcall, as the key may have a value of another type.
_RELEASE: Final = """
if redis.pcall('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# In microseconds of the server's clock. If that is set back, the time left is counted from when the
# value was written. Redis before 7 tells the type of an error only if pcall has caught it.
_RESERVE: Final = """
local time = redis.call('TIME')
local now, step = time[1] * 1000000 + time[2], tonumber(ARGV[1])
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
local made, next = string.match(held or '', '^(%d+) (%d+)$')
local wait = 0
if next then
  wait = next - math.max(now, made)
  if next == ARGV[2] then wait = wait - step end
end
wait = math.max(0, wait)
next = string.format('%.0f', now + wait + step)
local kept = math.ceil((wait + step) / 1000) + 1
redis.call('SET', KEYS[1], string.format('%.0f ', now) .. next, 'PX', kept)
return {wait, next}
"""


class RedisStore:
    """One key per record, lease and turn, each with an expiration time.

    It uses redis-py's blocking client in threads, as the asyncio client works only with the asyncio
    reactor.
    """

    def __init__(
        self, uri: str, *, prefix: str, max_size: int, max_age: float, timeout: float
    ) -> None:
        """Raise ValueError if redis-py can't parse ``uri``."""
        self._connector = Connector(uri, timeout=timeout)
        self._prefix = prefix
        self._limit = max_encoded(max_size)
        self._max_size = max_size
        self._max_age = max(1, round(max_age * 1000))
        self._told = Once()
        # In a cluster, a pipeline would fail as a whole if one of its nodes is down.
        at_a_time = {"threads": _THREADS} if self._connector.is_cluster else {"batch": _BATCH}
        self._calls = Workers("robots.txt-redis", run=self._run, **at_a_time)
        # A thread of their own: turns must not wait for records.
        self._turns = Workers("robots.txt-turns", batch=_BATCH, run=self._run)
        self._workers = Workers("robots.txt-keys")

    async def get(self, key: str) -> Held:
        """Return record and lease of ``key``."""
        ask = partial(self._get, key)
        return self._without_lease(await self._calls.call(ask), key, None)

    async def claim(self, key: str, holder: str, seconds: float) -> Held:
        """Give ``holder`` the lease of ``key``, unless another holds it."""

        def claim(pipeline: Any) -> Any:
            lease = self._key("lease", key)
            pipeline.set(lease, holder, nx=True, px=max(1, round(seconds * 1000)))
            return self._get(key, pipeline)

        return self._without_lease(await self._calls.call(claim), key, holder)

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the one before."""

        def put(pipeline: Any) -> Any:
            key, data = self._key("record", record.file.key), record.encode()
            pipeline.set(key, data, px=self._max_age)
            if holder is not None:
                self._release(record.file.key, holder, pipeline)
            return _checked

        await self._calls.call(put)

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if it is that of ``holder``."""
        await self._calls.call(partial(self._release, key, holder))

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``."""
        asked, step = monotonic(), round(seconds * _MICROSECONDS)
        name = self._key("turn", key)

        def ask(pipeline: Any) -> Any:
            used = "" if unused is None else unused
            pipeline.execute_command("EVAL", _RESERVE, 1, name, step, used)
            return lambda replies: (replies[0], monotonic())

        reply, answered = await self._turns.call(ask)
        if _is_of_another_type(reply):
            self._tell_foreign(name, "keeps the delay of this site by itself")
            raise ForeignKeyError(name)
        with self._telling():
            _checked([reply])
        wait, mark = reply
        # From when the reply came, so that the turn is never too early.
        return Turn(answered - asked + wait / _MICROSECONDS, int(mark))

    async def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records in any order; a key may come twice while keys change."""
        for node in await self._workers.call(self._nodes):
            cursor = 0
            while True:
                cursor, keys = await self._workers.call(partial(self._scan, node, cursor))
                for key in keys:
                    yield key
                if not cursor:
                    break

    async def drop(self, key: str) -> bool:
        """Remove the record of ``key``; return whether there was one."""

        def drop(pipeline: Any) -> Any:
            pipeline.delete(self._key("record", key))
            return _checked

        (count,) = await self._calls.call(drop)
        return bool(count)

    async def prune(self) -> int:
        """Return 0, as Redis removes expired keys itself. Raises StoreError if Redis is down."""

        def ping() -> int:
            with self._client() as client:
                client.ping()
            return 0

        return await self._workers.call(ping)

    async def close(self) -> None:
        """Finish all writes and close the connections."""
        for workers in (self._calls, self._turns, self._workers):
            await workers.stop()
        self._connector.close()

    def _run(self, jobs: list[Job]) -> None:
        """Run jobs in one pipeline. Each adds its commands and returns the reader of the replies.

        The pipeline is no transaction: an error of one command fails only the job that sent it.
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
        except Exception as error:  # noqa: BLE001 - raised where each is awaited
            for job in jobs:
                job.error = error
        deliver(jobs)

    def _read(self, read: Callable[[list[Any]], T], replies: list[Any]) -> T:
        with self._telling():
            return read(replies)

    def _release(self, key: str, holder: str, pipeline: Any) -> Any:
        pipeline.execute_command("EVAL", _RELEASE, 1, self._key("lease", key), holder)
        return _checked

    def _nodes(self) -> list[Any]:
        """Return the servers with keys; None stands for a single server."""
        with self._client() as client:
            return list(client.get_primaries()) if self._connector.is_cluster else [None]

    def _scan(self, node: Any, cursor: int) -> tuple[int, list[str]]:
        """Return the next cursor of a server (0 at the end) and the keys of a step."""
        start, end = self._key("record", "\0").split("\0")
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", start) + "*" + end
        with self._client() as client:
            if node is None:
                cursor, keys = client.scan(cursor, pattern, _PAGE)
            else:
                cursors, keys = client.scan(cursor, pattern, _PAGE, target_nodes=node)
                cursor = cursors[node.name]
        # Keys of scrapy-rep are valid UTF-8.
        names = (key.decode("utf-8", "ignore") for key in dict.fromkeys(keys))
        return int(cursor), [name.removeprefix(start).removesuffix(end) for name in names]

    def _key(self, kind: str, key: str) -> str:
        # In a cluster, the text in braces determines the server of a key.
        return f"{self._prefix}{kind}:{{{key}}}"

    def _get(self, key: str, pipeline: Any) -> Any:
        # GETRANGE, as another program may have put a huge value there.
        pipeline.getrange(self._key("record", key), 0, self._limit)
        pipeline.getrange(self._key("lease", key), 0, _MAX_HOLDER)
        return partial(self._held, key)

    def _held(self, key: str, replies: list[Any]) -> Held:
        *before, data, holder = replies
        if _is_of_another_type(holder):
            holder = _NO_LEASE.encode()
        _checked([*before, holder])
        record = None
        if isinstance(data, bytes) and 0 < len(data) <= self._limit:
            with suppress(RecordError):
                record = Record.decode(data, key, max_size=self._max_size)
        return Held(record, holder.decode("utf-8", "replace") or None)

    def _without_lease(self, held: Held, key: str, holder: str | None) -> Held:
        """Let ``holder`` fetch without a lease if its key has a value of another type."""
        if held.holder != _NO_LEASE:
            return held
        self._tell_foreign(self._key("lease", key), "fetches this robots.txt itself")
        return held._replace(holder=holder)

    def _tell_foreign(self, key: str, what: str) -> None:
        """Log once that another program has written ``key``, and what workers do instead."""
        if self._told.is_first(key):
            logger.warning(
                "The Redis key %a was not written by scrapy-rep and is not used: each worker %s",
                key,
                what,
            )

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """Return the client. Raises StoreError."""
        with self._telling():
            yield self._connector.client()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Convert errors of redis-py to StoreError."""
        try:
            yield
        except ERRORS as error:
            raise StoreError(self._connector.told(error)) from None


def _checked(replies: list[Any]) -> list[Any]:
    """Return ``replies``; raise the first error among them."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def _is_of_another_type(reply: Any) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE")
