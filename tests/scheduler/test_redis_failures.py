"""What scrapy-redis's queues keep where Redis fails, or a worker is killed, at any of their calls."""

from collections import Counter

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from scrapy_rep.admission.ticket import take_ticket
from scrapy_rep.stats import QUEUE_ERRORS
from tests.redis_proxy import IS_REFUSED, LOSES_ITS_REPLY, PASSES, RedisProxy
from tests.redis_server import RedisServer
from tests.running import in_asyncio, refusing_port
from tests.scheduler.test_redis_queue import (
    KEPT,
    QUEUE_CLASSES,
    Doors,
    drain,
    end_waits,
    fill,
    queue_of,
)
from tests.waiting import until, wait_until

OPEN, DOWN, NEW, SLOW = (f"http://{name}.example" for name in ("open", "down", "new", "slow"))
URLS = [f"{site}/{number}" for number in range(3) for site in (OPEN, DOWN, NEW, SLOW)]
IS_READ_ONLY = "is read-only"
ROUNDS = 5
ALLOWED = 3
"""Pops in a row that return nothing, as a request was moved, or a call has failed."""


@pytest.fixture
def redis(redis_server):
    client = redis_server.client
    client.flushall()
    yield client
    client.replicaof("NO", "ONE")


@pytest.fixture
def proxy(redis_server):
    proxy = RedisProxy(redis_server.port)
    yield proxy
    proxy.stop()


class Crawl:
    """The pops of workers, one after the other.

    ``redis`` is the client of the test, ``server`` that of the workers.
    """

    def __init__(self, redis, server, kind):
        self.redis = redis
        self.server = server
        self.kind = kind
        self.popped = Counter()
        self.dies = False
        """Whether the worker is killed when a call fails."""
        self.recover = lambda: None
        self.start_worker()
        fill(self.queue, *URLS)

    def start_worker(self):
        self.doors = Doors()
        self.queue = queue_of(self.server, self.doors, self.kind)

    def pop(self):
        """Pop until there is nothing more."""
        nothing = 0
        while nothing < ALLOWED:
            nothing += 1
            try:
                request = self.queue.pop()
            except RedisError:
                if self.dies:
                    self.start_worker()
                    return
                continue  # the engine logs it, and pops again
            # A direct request to a site that is unreachable is dropped: it is lost.
            if request is not None and take_ticket(request).source != "direct":
                self.popped[request.url] += 1
                nothing = 0

    def pop_what_is_open(self):
        """Pop while one site is unreachable, one not known and one slow."""
        self.doors.seconds, self.doors.turns = {DOWN: 600.0, NEW: None}, {SLOW: False}
        self.pop()

    def run(self):
        """Do so; then pop until all are done."""
        self.pop_what_is_open()
        for _ in range(ROUNDS):
            self.doors.seconds, self.doors.turns = {}, {SLOW: True}
            for site in (NEW, SLOW):
                self.doors.tell(site)
            self.recover()
            end_waits(self.redis)
            self.pop()

    @property
    def wrong(self):
        lost, twice = Counter(URLS) - self.popped, self.popped - Counter(URLS)
        return f"{sum(lost.values())} lost, {sum(twice.values())} twice"


def client_of(proxy, retries=0):
    return Redis(port=proxy.port, retry=Retry(NoBackoff(), retries))


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


def failures(redis, proxy, kind, how, length, retries=0, *, dies=False):
    """Yield the number of the first call that fails, and the crawl; until none fails."""
    first, calls = 1, 1
    while first <= calls:
        redis.replicaof("NO", "ONE")
        redis.flushall()
        crawl = Crawl(redis, client_of(proxy, retries), kind)
        crawl.dies = dies
        crawl.recover = lambda: redis.replicaof("NO", "ONE")
        fail(redis, proxy, how, range(first, first + length))
        crawl.run()
        yield first, crawl
        first, calls = first + 1, proxy.calls


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
@pytest.mark.parametrize(("length", "retries"), [(1, 0), (3, 0), (1, 3)])
@pytest.mark.parametrize("how", [IS_REFUSED, LOSES_ITS_REPLY, IS_READ_ONLY])
def test_each_request_comes_once_whichever_call_fails(redis, proxy, how, length, retries, kind):
    wrong = {
        first: crawl.wrong
        for first, crawl in failures(redis, proxy, kind, how, length, retries)
        if crawl.popped != Counter(URLS)
    }
    assert wrong == {}


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
@pytest.mark.parametrize("how", [IS_REFUSED, LOSES_ITS_REPLY])
def test_a_killed_worker_loses_nothing_whichever_its_last_call_was(redis, proxy, how, kind):
    wrong = {
        first: crawl.wrong
        for first, crawl in failures(redis, proxy, kind, how, 1, dies=True)
        # Redis was not told that the last request which it popped has left.
        if set(URLS) - set(crawl.popped) or (crawl.popped - Counter(URLS)).total() > 1
    }
    assert wrong == {}


def position(redis):
    return redis.info("replication")["master_repl_offset"]


@pytest.mark.parametrize("call", [2, 6, 10, 15, 21])
def test_each_request_comes_once_in_spite_of_a_failover(tmp_path, call):
    at_once = ["--repl-diskless-sync-delay", "0"]
    primary = RedisServer(tmp_path, *at_once)
    replica = RedisServer(tmp_path, *at_once, "--replicaof", "127.0.0.1", str(primary.port))
    proxy = RedisProxy(primary.port)

    def fate(number):
        if number == call:
            wait_until(lambda: position(replica.client) == position(redis))
            replica.client.replicaof("NO", "ONE")
            redis.replicaof("127.0.0.1", replica.port)
        elif number == call + 1:
            proxy.behind = replica.port
            return IS_REFUSED
        return PASSES

    try:
        wait_until(lambda: replica.client.info("replication")["master_link_status"] == "up")
        with primary.client as redis, client_of(proxy) as client:
            crawl = Crawl(client, client, QUEUE_CLASSES[0])
            proxy.fate = fate
            crawl.run()
    finally:
        proxy.stop()
        primary.stop()
        replica.stop()
    assert proxy.behind == replica.port
    assert crawl.wrong == "0 lost, 0 twice"


@in_asyncio
async def test_redis_is_told_what_has_left_although_nothing_else_is_popped(redis, monkeypatch):
    monkeypatch.setattr("scrapy_rep.scheduler.redis_queue._SETTLE_INTERVAL", 0.0)
    queue = queue_of(redis, Doors())
    fill(queue, f"{OPEN}/1", f"{OPEN}/2")
    assert queue.pop() is not None
    assert redis.zcard(KEPT) == 1
    redis.replicaof("127.0.0.1", refusing_port())
    await until(lambda: queue._crawler.stats.get(QUEUE_ERRORS))
    redis.replicaof("NO", "ONE")
    await until(lambda: redis.zcard(KEPT) == 0)
    assert len(queue) == 1
    queue.stop()


def test_a_worker_that_is_closed_leaves_nothing_behind(redis):
    queue = queue_of(redis, Doors())
    fill(queue, f"{OPEN}/1")
    assert queue.pop() is not None
    queue.stop()
    assert redis.keys("*") == []


@pytest.mark.parametrize("how", [IS_REFUSED, LOSES_ITS_REPLY])
def test_what_a_call_took_that_failed_is_given_back_at_the_close(redis, proxy, how):
    queue = queue_of(client_of(proxy), Doors())
    fill(queue, f"{OPEN}/1")
    assert len(queue) == 1
    proxy.fate = lambda _: how
    with pytest.raises(RedisError):
        queue.pop()
    proxy.fate = lambda _: PASSES
    queue.stop()
    assert redis.keys("*") == [b"list:requests"]


def test_what_a_worker_took_and_lost_is_not_its_own_any_more(redis, monkeypatch):
    """A worker that was silent for so long that another one got its request moves nothing."""
    doors, other_doors = Doors(), Doors()
    queue, other = (queue_of(redis, each) for each in (doors, other_doors))
    doors.seconds = other_doors.seconds = {DOWN: 600.0}
    fill(queue, f"{DOWN}/1")
    wait = queue._requests.wait

    def wait_late(*args, **kwargs):
        end_waits(redis)
        assert drain(other) == []
        return wait(*args, **kwargs)

    monkeypatch.setattr(queue._requests, "wait", wait_late)
    assert drain(queue) == []
    assert len(queue._requests) == 1
