"""Lua scripts that run in Redis for the queues shared by workers; each is one atomic step.

They use three keys beside scrapy-redis's queue:

- ``:deferred``, a sorted set of all requests that wait, by origin and then in their order;
- ``:deferred:due``, a sorted set of the origins, by the time at which each is due;
- ``:deferred:since``, a hash of the times since when requests of unreachable origins are deferred.

Times are milliseconds of the server's clock, as the clocks of workers may differ.
"""

from __future__ import annotations

from typing import Any, Final

PRIORITY: Final = """
local function rank(score) return math.max(-1e12, math.min(1e12, score)) + 1e12 end
local function push(score, data) redis.call('ZADD', queue, score, data) end
local function pop() return redis.call('ZPOPMIN', queue)[1] end
local function size() return redis.call('ZCARD', queue) end
"""
FIFO: Final = """
local function rank() return 0 end
local function push(_, data) redis.call('RPUSH', queue, data) end
local function pop() return redis.call('RPOP', queue) end
local function size() return redis.call('LLEN', queue) end
"""
LIFO: Final = """
local function rank() return 0 end
local function push(_, data) redis.call('LPUSH', queue, data) end
local function pop() return redis.call('LPOP', queue) end
local function size() return redis.call('LLEN', queue) end
"""
"""Operations on the three queues of scrapy-redis.

``push`` gives a request back: with FIFO and LIFO, it is the next to be popped.
"""

# Scripts remove before they add: a Redis without free memory lets a script write only after it has
# removed something, so a full Redis can still be emptied.

# A member of ``:deferred`` is the origin, the rank and the server's time (16 digits each), the
# score and the request. All members have the score 0, so Redis sorts them by these bytes.
BEGIN: Final = """
local queue, waiting, due, since = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function ends(origin) return '[' .. origin .. '\\n', '(' .. origin .. '\\11' end
local function first(origin, count)
    local from, to = ends(origin)
    return redis.call('ZRANGEBYLEX', waiting, from, to, 'LIMIT', 0, count)
end
local function last(origin, count)
    local from, to = ends(origin)
    return redis.call('ZREVRANGEBYLEX', waiting, to, from, 'LIMIT', 0, count)
end
local function count(origin) return redis.call('ZLEXCOUNT', waiting, ends(origin)) end
local function parts(origin, member)
    local from = #origin + 35
    local space = string.find(member, ' ', from, true)
    return string.sub(member, from, space - 1), string.sub(member, space + 1)
end
local function forget(origin)
    redis.call('ZREM', due, origin)
    redis.call('HDEL', since, origin)
end
local function defer(origin, milliseconds, timeout)
    local is_new = redis.call('HSETNX', since, origin, now)
    local ends = redis.call('HGET', since, origin) + timeout
    local next_try = now + milliseconds
    redis.call('ZADD', due, next_try > ends and now or next_try, origin)
    return is_new == 1
end
"""

ADD_WAITING: Final = """
-- Add a request that waits; return how many become deferred. If it waits for a lookup or a turn,
-- the timeout is -1.
local origin, milliseconds, timeout, score, data = unpack(ARGV)
local stamp = string.format('%016.0f%010d%06d', rank(score), clock[1], clock[2])
redis.call('ZADD', waiting, 0, origin .. '\\n' .. stamp .. ' ' .. score .. ' ' .. data)
if tonumber(timeout) < 0 then
    redis.call('ZADD', due, 'NX', now + milliseconds, origin)
    return 0
end
return defer(origin, milliseconds, timeout) and count(origin) or 1
"""

NEXT: Final = """
-- Return {1, origin, age, request} for the first request of an origin that is due: it stays, and
-- the origin is due again only after `lease`. Else pop a request and return {2, request}.
-- Else return {3, unreachable origins, milliseconds until the next one is due or -1}.
local has_room, lease = ARGV[1] == '1', ARGV[2]
while has_room do
    local origin = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 1)[1]
    if not origin then break end
    local member = first(origin, 1)[1]
    if member then
        redis.call('ZREM', due, origin)
        redis.call('ZADD', due, now + lease, origin)
        local began = redis.call('HGET', since, origin)
        local _, data = parts(origin, member)
        return {1, origin, began and now - began or 0, data}
    end
    forget(origin)
end
local data = pop()
if data then return {2, data} end
local next_due = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
if not next_due then
    -- The key may have been evicted; without it the requests would stay for ever.
    local member = redis.call('ZRANGE', waiting, 0, 0)[1]
    if member then
        redis.call('ZADD', due, now, string.match(member, '^[^\\n]*'))
        next_due = now
    end
end
return {3, redis.call('HLEN', since), next_due and math.max(0, next_due - now) or -1}
"""

REQUEUE: Final = """
-- Give at most `most` requests of an origin back to the queue, the last ones first.
local origin, most = ARGV[1], tonumber(ARGV[2])
local members = last(origin, most)
for _, member in ipairs(members) do
    redis.call('ZREM', waiting, member)
    push(parts(origin, member))
end
forget(origin)
if #members == most then redis.call('ZADD', due, now, origin) end
return #members
"""

FIRST: Final = """
-- Return the first requests of an origin, at most `most`; they stay.
local origin, most = ARGV[1], tonumber(ARGV[2])
local found = {}
for number, member in ipairs(first(origin, most)) do
    local _, data = parts(origin, member)
    found[number] = data
end
return found
"""

TAKE: Final = """
-- Remove and return the first request of an origin, and 1 if there are others: these are due only
-- after `lease`.
local origin, lease = unpack(ARGV)
local members = first(origin, 2)
redis.call('HDEL', since, origin)
if not members[2] then forget(origin) else redis.call('ZADD', due, now + lease, origin) end
if not members[1] then return false end
redis.call('ZREM', waiting, members[1])
local _, data = parts(origin, members[1])
return {data, #members - 1}
"""

DEFER: Final = """
-- Defer the waiting requests of an origin; return how many become deferred.
local origin, milliseconds, timeout = unpack(ARGV)
local number = count(origin)
if number == 0 then
    forget(origin)
    return 0
end
return defer(origin, milliseconds, timeout) and number or 0
"""

OVERDUE: Final = """
-- Remove and return the first request of an origin whose next try is too late.
local origin = ARGV[1]
local member = first(origin, 1)[1]
if not member then
    forget(origin)
    return false
end
redis.call('ZREM', waiting, member)
redis.call('ZADD', due, now, origin)
local _, data = parts(origin, member)
return data
"""

SIZE: Final = "return size() + redis.call('ZCARD', waiting)"

_LEASE: Final = 5_000
"""Milliseconds for which only the worker that found an origin due handles the origin."""
_BATCH: Final = 1_000
"""Requests that go back to the queue in one step, which takes the server about 2 milliseconds."""


class RedisRequests:
    """The requests in Redis: those in the queue of scrapy-redis, and those that wait beside it.

    ``name`` is always an origin, ``data`` a serialized request.
    """

    def __init__(self, server: Any, key: str, kind: str, defer_timeout: float) -> None:
        """``key`` is that of the queue; ``kind`` is PRIORITY, FIFO or LIFO.

        ``defer_timeout`` is in seconds.
        """
        self._server = server
        self._kind = kind
        self._timeout = round(1000 * defer_timeout)
        self._scripts: dict[str, Any] = {}
        # In a Redis cluster, all keys of a script must be in one hash slot, which depends only on
        # the text in braces.
        beside = key if "{" in key else f"{{{key}}}"
        self.keys: list[str] = [
            key,
            *(f"{beside}:deferred{part}" for part in ("", ":due", ":since")),
        ]

    def __len__(self) -> int:
        return int(self._run(SIZE))

    def next(self, *, has_room: bool) -> list[Any]:
        """Return an origin that is due, a popped request, or the time to wait, as ``NEXT`` does.

        Origins that are due are returned only if there is room for lookups.
        """
        found: list[Any] = self._run(NEXT, int(has_room), _LEASE)
        return found

    def defer(self, name: str, score: int, data: Any, seconds: float) -> int:
        """Add a request that is deferred for ``seconds``; return how many become deferred.

        With the first request, all others of the origin that wait become deferred, too.
        """
        return int(self._run(ADD_WAITING, name, round(1000 * seconds), self._timeout, score, data))

    def add_waiting(self, name: str, score: int, data: Any, *, is_ours: bool) -> None:
        """Add a request that waits for a lookup or a turn.

        If ``is_ours``, this worker does the lookup or waits for the turn; if not, any worker may.
        """
        self._run(ADD_WAITING, name, _LEASE if is_ours else 0, -1, score, data)

    def requeue(self, name: str) -> None:
        """Give the waiting requests of an origin back to the queue, at most ``_BATCH`` of them.

        If there are more, the origin is due again at once.
        """
        self._run(REQUEUE, name, _BATCH)

    def defer_all(self, name: str, seconds: float) -> int:
        """Defer waiting requests of an origin for ``seconds``; return how many become deferred."""
        return int(self._run(DEFER, name, round(1000 * seconds), self._timeout))

    def pop_overdue(self, name: str) -> Any:
        """Remove and return a request, or None, of an origin whose next try comes too late."""
        return self._run(OVERDUE, name)

    def first(self, name: str, limit: int = 1) -> list[Any]:
        """Return the next requests of an origin, at most ``limit``, without removing them."""
        found: list[Any] = self._run(FIRST, name, limit)
        return found

    def pop(self, name: str) -> tuple[Any, bool]:
        """Remove and return the next request of an origin, or None, and whether others are left."""
        data, others = self._run(TAKE, name, _LEASE) or (None, 0)
        return data, bool(others)

    def _run(self, script: str, *arguments: Any) -> Any:
        found = self._scripts.get(script)
        if found is None:
            found = self._scripts[script] = self._server.register_script(
                f"{BEGIN}{self._kind}{script}"
            )
        return found(keys=self.keys, args=arguments)
