"""What runs inside Redis for the queue that workers share: each script is one step, or none of it.

Beside scrapy-redis's queue there are three keys: all requests that are kept back, in one sorted set
by origin and age; when the requests of an origin are due, in a sorted set by that time; since when
an origin is unreachable, in a hash. Times are the server's own, in milliseconds: those of the
workers may differ.
"""

from __future__ import annotations

from typing import Final

PRIORITY: Final = """
local function push(score, data) redis.call('ZADD', queue, score, data) end
local function pop() return redis.call('ZPOPMIN', queue)[1] end
local function size() return redis.call('ZCARD', queue) end
"""
FIFO: Final = """
newest_first = true
local function push(_, data) redis.call('RPUSH', queue, data) end
local function pop() return redis.call('RPOP', queue) end
local function size() return redis.call('LLEN', queue) end
"""
LIFO: Final = """
local function push(_, data) redis.call('LPUSH', queue, data) end
local function pop() return redis.call('LPOP', queue) end
local function size() return redis.call('LLEN', queue) end
"""
"""How scrapy-redis has its queues: what is pushed here is the next of its kind to be popped."""

# A member is the origin, the time of the server in 16 digits, the score and the request: as all
# have the score 0 they are in the order of these bytes.
BEGIN: Final = """
local queue, kept, due, since = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock = redis.call('TIME')
local newest_first = false
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function first(origin, count)
    local from, to = '[' .. origin .. '\\n', '(' .. origin .. '\\11'
    return redis.call('ZRANGEBYLEX', kept, from, to, 'LIMIT', 0, count)
end
local function count(origin)
    return redis.call('ZLEXCOUNT', kept, '[' .. origin .. '\\n', '(' .. origin .. '\\11')
end
local function parts(origin, member)
    local from = #origin + 19
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
    redis.call('ZADD', due, math.min(now + milliseconds, ends), origin)
    return is_new == 1
end
"""

KEEP: Final = """
-- Keep a request; return how many are deferred by that. A timeout of -1: it is not known for what.
local origin, milliseconds, timeout, score, data = unpack(ARGV)
local stamp = string.format('%010d%06d', clock[1], clock[2])
redis.call('ZADD', kept, 0, origin .. '\\n' .. stamp .. ' ' .. score .. ' ' .. data)
if tonumber(timeout) < 0 then
    redis.call('ZADD', due, 'NX', now + milliseconds, origin)
    return 0
end
return defer(origin, milliseconds, timeout) and count(origin) or 1
"""

NEXT: Final = """
-- Return 1 and the first request of an origin that is due, which stays, and nobody else is given it
-- for a while; or 2 and a request that is taken out of the queue; or 3 and how long there is none.
local has_room, hold = ARGV[1] == '1', ARGV[2]
while has_room do
    local origin = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 1)[1]
    if not origin then break end
    local member = first(origin, 1)[1]
    if member then
        redis.call('ZADD', due, now + hold, origin)
        local began = redis.call('HGET', since, origin)
        local _, data = parts(origin, member)
        return {1, origin, began and now - began or 0, data}
    end
    forget(origin)
end
local data = pop()
if data then return {2, data} end
local next_due = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
return {3, redis.call('HLEN', since), next_due and math.max(0, next_due - now) or -1}
"""

OPEN: Final = """
-- Give the requests of an origin back to the queue, so many at a time.
local origin, most = ARGV[1], tonumber(ARGV[2])
local members = first(origin, most)
for i = 1, #members do
    local member = members[newest_first and #members + 1 - i or i]
    push(parts(origin, member))
    redis.call('ZREM', kept, member)
end
forget(origin)
if #members == most then redis.call('ZADD', due, now, origin) end
return #members
"""

SHUT: Final = """
-- Defer what is kept of an origin; return how many requests that are which were not before.
local origin, milliseconds, timeout = unpack(ARGV)
local number = count(origin)
if number == 0 then
    forget(origin)
    return 0
end
return defer(origin, milliseconds, timeout) and number or 0
"""

OVERDUE: Final = """
-- Take a request of an origin that has been unreachable for too long.
local origin = ARGV[1]
if redis.call('HEXISTS', since, origin) == 0 then return false end
local member = first(origin, 1)[1]
if not member then
    forget(origin)
    return false
end
redis.call('ZREM', kept, member)
redis.call('ZADD', due, now, origin)
local _, data = parts(origin, member)
return data
"""

SIZE: Final = "return size() + redis.call('ZCARD', kept)"
