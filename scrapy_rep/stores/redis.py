"""The store in Redis or Valkey, which crawlers on several machines may share.

Each record is a hash, and each lease a string, which expire: Redis itself deletes old ones. A key
of another type, which another program has written, is an error.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from redis import ConnectionPool, ReadOnlyError, Redis, RedisError
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from scrapy_rep.stores.base import (
    PAUSE,
    WORKER,
    Change,
    Claim,
    Found,
    Lease,
    Put,
    Stored,
    StoreError,
)

_PAGE: Final = 1_000
"""Number of keys that a step of SCAN examines. A step blocks the server for about 1 ms."""
_NOW: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""
# Arguments: the time of the record in seconds, its state, whether it has a body, the body, and
# milliseconds to keep it. A record from the future was written with a wrong clock, and gives way.
_PUT: Final = f"""{_NOW}
local was = tonumber(redis.call('HGET', KEYS[1], 'at') or 0) or 0
if was > tonumber(ARGV[1]) and was * 1000 <= now then return 0 end
redis.call('HSET', KEYS[1], 'at', ARGV[1], 'state', ARGV[2])
if ARGV[3] == '1' then redis.call('HSET', KEYS[1], 'body', ARGV[4]) end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
"""
# Arguments: the holder, milliseconds, and 1 to take the lease from another holder. A string that
# doesn't expire (PTTL is -1) was written by another program, and is replaced.
_CLAIM: Final = """
local holder = redis.call('GET', KEYS[1])
local left, wanted = redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])
if ARGV[3] == '1' then
  wanted = math.max(wanted, left)
elseif holder and holder ~= ARGV[1] and left > 0 then
  return {holder, left}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', wanted)
return {ARGV[1], wanted}
"""
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# Sorted sets of the keys of paused hosts, and of workers, by the end of their leases in
# milliseconds. An end is never earlier than before.
_ADD: Final = f"""{_NOW}
local ending = now + redis.call('PTTL', KEYS[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0) < ending then
  redis.call('ZADD', KEYS[1], ending, ARGV[1])
end
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
"""
_ENDS: Final = f"""{_NOW}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf', 'WITHSCORES')
for i = 2, #found, 2 do found[i] = found[i] - now end
return found
"""


class RedisStore:
    """A store in Redis. ``max_age`` is in seconds, and ``timeout``, which each call may take."""

    is_shared: ClassVar[bool] = True

    def __init__(self, url: str, *, prefix: str, max_age: float, timeout: float) -> None:
        """Raise ValueError if redis-py can't read ``url``; open nothing."""
        limits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        # One retry, because the server may have closed an idle connection.
        retry = Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
        try:
            options: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call] # it has none
            options.update(limits, decode_responses=False, client_name="scrapy-rep", retry=retry)
            self._pool = ConnectionPool(**options)
            # redis-py checks the options when it makes a connection, which is not opened here.
            self._pool.connection_class(**self._pool.connection_kwargs)
        except (ValueError, TypeError, RedisError):
            raise ValueError("redis-py can't read that URL") from None
        self._secrets = [
            str(options[name]) for name in ("password", "username") if options.get(name)
        ]
        self._client = Redis(connection_pool=self._pool)
        self._prefix = prefix
        self._max_age = max(1, round(max_age * 1000))

    def peek(self, keys: Sequence[str]) -> None:  # noqa: ARG002 - as Store has it
        return None

    def read(self, keys: Sequence[str]) -> Found:
        with self._errors(), self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hmget(self._key("record", key), "state", "body")
            pipeline.eval(_ENDS, 1, f"{self._prefix}workers")
            *replies, workers = pipeline.execute()
        records = {
            key: Stored(reply[0], reply[1] or b"")
            for key, reply in zip(keys, replies, strict=True)
            if reply[0] is not None
        }
        return Found(records, len(workers) // 2)

    def write(self, changes: Sequence[Change]) -> list[Lease | None]:
        with self._errors(), self._client.pipeline(transaction=False) as pipeline:
            firsts = []
            for change in changes:
                firsts.append(len(pipeline) if isinstance(change, Claim) else None)
                self._add_change(change, pipeline)
            replies = pipeline.execute()
        return [
            None if first is None else Lease(replies[first][0].decode(), replies[first][1] / 1000)
            for first in firsts
        ]

    def _add_change(self, change: Change, pipeline: Any) -> None:
        """Add the commands that make ``change``; the first one of a Claim returns the lease."""
        run = pipeline.execute_command
        if isinstance(change, Put):
            has_body, body = change.body is not None, change.body or b""
            values = f"{change.at!r}", change.state, int(has_body), body, self._max_age
            run("EVAL", _PUT, 1, self._key("record", change.key), *values)
            return
        lease = self._key("lease", change.key)
        is_worker = change.key.startswith(WORKER)
        # The set in which the lease is listed, if it is in one.
        listed = f"{self._prefix}workers" if is_worker else f"{self._prefix}pauses"
        is_listed = is_worker or change.holder == PAUSE
        if isinstance(change, Claim):
            left = max(1, round(change.seconds * 1000))
            run("EVAL", _CLAIM, 1, lease, change.holder, left, int(change.force))
            if is_listed:
                run("EVAL", _ADD, 2, listed, lease, change.key)
        else:
            run("EVAL", _RELEASE, 1, lease, change.holder)
            if is_listed:
                pipeline.zrem(listed, change.key)

    def pauses_left(self) -> Mapping[str, float]:
        with self._errors():
            found: Any = self._client.eval(_ENDS, 1, f"{self._prefix}pauses")
        keys = (key.decode("utf-8", "replace") for key in found[::2])
        return {key: int(left) / 1000 for key, left in zip(keys, found[1::2], strict=True)}

    def keys(self) -> Iterator[str]:
        start = self._key("record", "")
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", start) + "*"
        with self._errors():
            found = dict.fromkeys(self._client.scan_iter(pattern, _PAGE))
        for key in found:
            yield key.decode("utf-8", "replace").removeprefix(start)

    def delete(self, key: str) -> bool:
        with self._errors():
            return bool(self._client.delete(self._key("record", key)))

    def close(self) -> None:
        self._pool.disconnect()

    def _key(self, kind: str, key: str) -> str:
        return f"{self._prefix}{kind}:{key}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of redis-py as StoreError, without credentials."""
        try:
            yield
        except ReadOnlyError:
            raise StoreError("it is a read-only replica: REP_STORE must name the primary") from None
        except (RedisError, OSError) as error:
            # What redis-py writes before the server's reason has the text of a script.
            reason = str(error).rpartition(" of pipeline caused error: ")[2]
            message = f"{type(error).__name__}: {reason}"
            for secret in self._secrets:
                message = message.replace(secret, "***")
            raise StoreError(message) from None
