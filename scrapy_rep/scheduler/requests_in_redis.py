"""Lua scripts that run in Redis for the queues shared by workers; each is one atomic step.

They use three keys beside scrapy-redis's queue:

- ``:deferred``, a sorted set of all requests that wait, by origin and then in their order;
- ``:deferred:due``, a sorted set of the origins, by the time at which each is due;
- ``:deferred:since``, a hash of the times since when requests of unreachable origins are deferred.

A request that a worker has taken stays in ``:deferred``, under the name of the worker and a number,
until the worker tells in a later call that it has left. If the worker tells anything else, because
Redis or the worker failed in between, the request returns to the queue. If the worker was killed,
it returns when the name of the worker is due.

Times are milliseconds of the server's clock, as the clocks of workers may differ.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from secrets import token_hex
from typing import Any, Final

PRIORITY: Final = """
local queue = KEYS[1]
local function rank(score) return math.max(-1e12, math.min(1e12, score)) + 1e12 end
local function push(score, data) redis.call('ZADD', queue, score, data) end
local function pop() return unpack(redis.call('ZPOPMIN', queue)) end
local function size() return redis.call('ZCARD', queue) end
"""
FIFO: Final = """
local queue = KEYS[1]
local function rank() return 0 end
local function push(_, data) redis.call('RPUSH', queue, data) end
local function pop() return redis.call('RPOP', queue), 0 end
local function size() return redis.call('LLEN', queue) end
"""
LIFO: Final = FIFO.replace("RPUSH", "LPUSH").replace("RPOP", "LPOP")
"""Operations on the three queues of scrapy-redis.

``pop`` returns a request and its score. ``push`` gives a request back: with FIFO and LIFO, it is
the next to be popped.
"""

# Scripts remove before they add: a Redis without free memory lets a script write only after it has
# removed something, so a full Redis can still be emptied.

# A member of ``:deferred`` is the origin, the rank and the server's time (16 digits each), the
# score and the request. That of a request that is taken has the name of the worker and a number of
# 32 digits. All members have the score 0, so Redis sorts them by these bytes.
#
# ``taken`` and ``left`` are such names with numbers: that for the request which this call takes, or
# the last one took; and that of the last request which has left. ``settle`` removes the request
# that has left; any other that the worker has is given back. A worker that makes no call for 60
# seconds counts as killed.
BEGIN: Final = """
local waiting, due, since = KEYS[2], KEYS[3], KEYS[4]
local taken, left = ARGV[1], ARGV[2]
local worker = string.match(taken, '^[^\\n]*')
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
local function requeue(name, most)
    local members = last(name, most)
    for _, member in ipairs(members) do
        redis.call('ZREM', waiting, member)
        push(parts(name, member))
    end
    forget(name)
    return #members
end
local function take(score, data)
    redis.call('ZADD', waiting, 0, taken .. ' ' .. score .. ' ' .. data)
    redis.call('ZADD', due, now + 60000, worker)
end
local function settle()
    local has_left = redis.call('ZREMRANGEBYLEX', waiting, '[' .. left .. ' ', '(' .. left .. '!')
    if has_left == 0 then requeue(worker, 1) else redis.call('ZREM', due, worker) end
end
local function defer(origin, milliseconds, timeout)
    local is_new = redis.call('HSETNX', since, origin, now)
    local ends = redis.call('HGET', since, origin) + timeout
    local next_try = now + milliseconds
    redis.call('ZADD', due, next_try > ends and now or next_try, origin)
    return is_new == 1
end
"""

WAIT: Final = """
-- Let the request that was taken wait; return how many become deferred. If it waits for a lookup or
-- a turn, the timeout is -1.
local origin, milliseconds, timeout = unpack(ARGV, 3)
local member = first(worker, 1)[1]
if not member or string.sub(member, 1, #taken) ~= taken then return 0 end -- it was given back
redis.call('ZREM', waiting, member)
redis.call('ZREM', due, worker)
local score, data = parts(worker, member)
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
-- the origin is due again only after `lease`. Else take a request and return {2, request}.
-- Else return {3, unreachable origins, milliseconds until the next one is due or -1}.
settle()
local has_room, lease = ARGV[3] == '1', ARGV[4]
while has_room do
    local origin = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 1)[1]
    if not origin then break end
    local member = first(origin, 1)[1]
    if member and string.find(origin, '://', 1, true) then
        redis.call('ZREM', due, origin)
        redis.call('ZADD', due, now + lease, origin)
        local began = redis.call('HGET', since, origin)
        local _, data = parts(origin, member)
        return {1, origin, began and now - began or 0, data}
    end
    requeue(origin, 1) -- a worker that was killed; or an origin without requests
end
local data, score = pop()
if data then
    take(score, data)
    return {2, data}
end
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
-- Give at most `most` requests of an origin back to the queue, the last ones first. If there are
-- more, the origin is due again at once.
local origin, most = ARGV[3], tonumber(ARGV[4])
if requeue(origin, most) == most then redis.call('ZADD', due, now, origin) end
"""

FIRST: Final = """
-- Return the first requests of an origin, at most `most`; they stay.
local origin, most = ARGV[3], tonumber(ARGV[4])
local found = {}
for number, member in ipairs(first(origin, most)) do
    local _, data = parts(origin, member)
    found[number] = data
end
return found
"""

TAKE: Final = """
-- Take the first request of an origin, and return it with the number of others, at most 1. The
-- others are due after `lease`; if that is 0, they stay deferred.
settle()
local origin, lease = ARGV[3], tonumber(ARGV[4])
local members = first(origin, 2)
if members[1] then redis.call('ZREM', waiting, members[1]) end
if lease > 0 then redis.call('HDEL', since, origin) end
if members[2] then redis.call('ZADD', due, now + lease, origin) else forget(origin) end
if not members[1] then return false end
local score, data = parts(origin, members[1])
take(score, data)
return {data, #members - 1}
"""

DEFER: Final = """
-- Defer the waiting requests of an origin; return how many become deferred.
local origin, milliseconds, timeout = unpack(ARGV, 3)
local number = count(origin)
if number == 0 then
    forget(origin)
    return 0
end
return defer(origin, milliseconds, timeout) and number or 0
"""

SIZE: Final = """
if count(worker) > 0 then settle() end
return size() + redis.call('ZCARD', waiting)
"""

DUE: Final = 1
TAKEN: Final = 2
NOTHING_DUE: Final = 3
"""The first values that ``NEXT`` returns."""

LEASE: Final = 5.0
"""Seconds for which only the worker that found an origin due handles the origin."""
_BATCH: Final = 1_000
"""Requests that go back to the queue in one step, which takes the server about 2 milliseconds."""


class RequestsInRedis:
    """The requests in Redis: those in the queue of scrapy-redis, and those that wait beside it.

    ``name`` is always an origin, ``data`` a serialized request.

    ``next`` and ``take`` take a request. It is this worker's until ``leave`` or ``wait`` is called
    for it, and returns to the queue if ``next``, ``take`` or ``len`` is called before that.
    """

    def __init__(self, server: Any, key: str, kind: str, defer_timeout: float) -> None:
        """``kind`` is PRIORITY, FIFO or LIFO; ``defer_timeout`` is in seconds."""
        self._script = cache(lambda text: server.register_script(f"{kind}{BEGIN}{text}"))
        self._timeout = _milliseconds(defer_timeout)
        worker = token_hex(8)
        self._names = (f"{worker}\n{number:032d}" for number in count())
        self._taken = self._left = next(self._names)
        """The names of the last request that was to be taken, and of the last that has left."""
        self.is_settled = True
        """Whether Redis keeps no request as taken by this worker."""
        # In a Redis cluster, all keys of a script must be in one hash slot, which depends only on
        # the text in braces.
        beside = key if "{" in key else f"{{{key}}}"
        self.keys: list[str] = [
            key,
            *(f"{beside}:deferred{part}" for part in ("", ":due", ":since")),
        ]

    def __len__(self) -> int:
        size = int(self._settle(SIZE))
        self.is_settled = True
        return size

    def next(self, *, has_room: bool) -> list[Any]:
        """Return DUE or TAKEN, each with a request, or NOTHING_DUE; and more, as ``NEXT`` says.

        Origins that are due are returned only if there is room for lookups.
        """
        found: list[Any] = self._settle(NEXT, int(has_room), _milliseconds(LEASE))
        self.is_settled = found[0] != TAKEN
        return found

    def take(self, name: str, *, is_overdue: bool) -> tuple[Any, bool]:
        """Take the next request of an origin; return it, or None, and whether others are left.

        If ``is_overdue``, the others stay deferred, and the origin is due at once.
        """
        lease = 0 if is_overdue else _milliseconds(LEASE)
        data, others = self._settle(TAKE, name, lease) or (None, 0)
        self.is_settled = data is None
        return data, bool(others)

    def leave(self) -> None:
        """Note that the request that was taken leaves, or can't be read.

        The next call of ``next``, ``take`` or ``len`` tells Redis.
        """
        self._left = self._taken

    def wait(self, name: str, seconds: float, *, defers: bool = False) -> int:
        """Let the request that was taken wait, unless given back; return how many become deferred.

        The origin is due after ``seconds``. If the request ``defers``, it is deferred, and with the
        first one all others of the origin that wait.
        """
        timeout = self._timeout if defers else -1
        number = int(self._run(WAIT, name, _milliseconds(seconds), timeout))
        self.is_settled = True
        return number

    def defer_all(self, name: str, seconds: float) -> int:
        """Defer the requests of an origin that wait; return how many become deferred."""
        return int(self._run(DEFER, name, _milliseconds(seconds), self._timeout))

    def requeue(self, name: str) -> None:
        self._run(REQUEUE, name, _BATCH)

    def first(self, name: str, limit: int = 1) -> list[Any]:
        found: list[Any] = self._run(FIRST, name, limit)
        return found

    def _settle(self, script: str, *arguments: Any) -> Any:
        """Run a script that first settles what became of the request that was taken before."""
        self._taken, self.is_settled = next(self._names), False
        return self._run(script, *arguments)

    def _run(self, script: str, *arguments: Any) -> Any:
        return self._script(script)(keys=self.keys, args=[self._taken, self._left, *arguments])


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)
