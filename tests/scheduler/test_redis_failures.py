"""What scrapy-redis's queues keep where Redis refuses any of their calls."""

from collections import Counter

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from scrapy_rep.admission.ticket import take_ticket
from tests.ports import refusing_port
from tests.redis_proxy import IS_REFUSED, PASSES, RedisProxy
from tests.scheduler.test_redis_queue import (
    QUEUE_CLASSES,
    Doors,
    end_waits,
    fill,
    queue_of,
)

OPEN, DOWN, NEW, SLOW = (f"http://{name}.example" for name in ("open", "down", "new", "slow"))
URLS = [f"{site}/{number}" for number in range(3) for site in (OPEN, DOWN, NEW, SLOW)]
IS_READ_ONLY = "is read-only"
ROUNDS = 5
ALLOWED = 3
"""Pops in a row that return nothing, as a request was moved, or a call has failed."""


@pytest.fixture
def proxy(redis_server):
    proxy = RedisProxy(redis_server.port)
    yield proxy
    proxy.stop()


class Crawl:
    """The pops of a worker; ``redis`` is the client of the test, ``server`` that of the worker."""

    def __init__(self, redis, server, kind):
        self.redis = redis
        self.popped = Counter()
        self.doors = Doors()
        self.queue = queue_of(server, self.doors, kind)
        fill(self.queue, *URLS)

    def pop(self):
        nothing = 0
        while nothing < ALLOWED:
            nothing += 1
            try:
                request = self.queue.pop()
            except RedisError:
                continue  # the engine logs it, and pops again
            # A direct request to a site that is unreachable is dropped: it is lost.
            if request is not None and take_ticket(request).source != "direct":
                self.popped[request.url] += 1
                nothing = 0

    def run(self):
        """Pop while one site is unreachable, one not known and one slow; then until all are done."""
        self.doors.seconds, self.doors.turns = {DOWN: 600.0, NEW: None}, {SLOW: False}
        self.pop()
        for _ in range(ROUNDS):
            self.doors.seconds, self.doors.turns = {}, {SLOW: True}
            for site in (DOWN, NEW, SLOW):
                self.doors.tell(site)
            self.redis.replicaof("NO", "ONE")
            end_waits(self.redis)
            self.queue._waiting.check_at = 0.0
            self.pop()

    @property
    def wrong(self):
        lost, twice = Counter(URLS) - self.popped, self.popped - Counter(URLS)
        return f"{sum(lost.values())} lost, {sum(twice.values())} twice"


def fail(redis, proxy, how, calls):
    """Let the calls whose numbers are in ``calls`` fail."""

    def fate(number):
        if how != IS_READ_ONLY:
            return how if number in calls else PASSES
        # A replica of a primary that is away keeps its data, and refuses all that writes.
        if number == calls.start:
            redis.replicaof("127.0.0.1", refusing_port())
        elif number == calls.stop:
            redis.replicaof("NO", "ONE")
        return PASSES

    proxy.calls, proxy.fate = 0, fate


def failures(redis, proxy, kind, how, length):
    """Yield the number of the first call that fails, and the crawl; until none fails."""
    first, calls = 1, 1
    while first <= calls:
        redis.replicaof("NO", "ONE")
        redis.flushall()
        crawl = Crawl(redis, Redis(port=proxy.port, retry=Retry(NoBackoff(), 0)), kind)
        fail(redis, proxy, how, range(first, first + length))
        crawl.run()
        yield first, crawl
        first, calls = first + 1, proxy.calls


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("how", [IS_REFUSED, IS_READ_ONLY])
def test_each_request_comes_once_whichever_call_fails(redis, proxy, how, length, kind):
    wrong = {
        first: crawl.wrong
        for first, crawl in failures(redis, proxy, kind, how, length)
        if crawl.popped != Counter(URLS)
    }
    assert wrong == {}
