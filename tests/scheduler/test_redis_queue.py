"""scrapy-redis's queues with requests kept back, in a real Redis that several crawls use."""

import math
import pickle
from contextlib import contextmanager, nullcontext, suppress

import pytest
import scrapy

from scrapy_rep import (
    RobotsAwareRedisFifoQueue,
    RobotsAwareRedisLifoQueue,
    RobotsAwareRedisQueue,
)
from scrapy_rep.admission.lookup import UNKNOWN, Lookups
from scrapy_rep.admission.reason import Hold
from scrapy_rep.admission.ticket import take_ticket
from scrapy_rep.admission.unreachable import UNREACHABLE
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler import requests_in_redis
from scrapy_rep.utils.clock import Clock
from tests.crawling.crawl import SCRAPYS_QUEUE, crawl
from tests.crawling.process import CrawlProcess
from tests.crawling.web import answer, held, robots
from tests.scheduler import queues
from tests.scheduler.queues import LEFT_OPEN, FakeCrawler
from tests.waiting import wait_until

RULES = robots("User-agent: *\nDisallow: /private\n")
QUEUE_CLASSES = [RobotsAwareRedisQueue, RobotsAwareRedisFifoQueue, RobotsAwareRedisLifoQueue]
MODES = ["asyncio", "select", "none" if scrapy.version_info >= (2, 15) else "select"]
LONG = 3600
DOWN, UP = "http://down.example", "http://up.example"
KEPT = "{list:requests}:deferred"
LOSES = "unreachable are dropped at once, because the scheduler does not defer them"


@pytest.fixture
def redis(redis_server):
    client = redis_server.client
    client.flushall()
    return client


# Real crawls.


@pytest.fixture
def start(redis, redis_server):
    """A function that starts a crawl; all share a queue and a store."""

    def start(*urls, mode="asyncio", kind=RobotsAwareRedisQueue, **order):
        settings = {
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "SCHEDULER_QUEUE_CLASS": f"scrapy_rep.{kind.__name__}",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "SCHEDULER_PERSIST": True,
            "REDIS_URL": redis_server.uri,
            "REP_STORE": redis_server.uri,
            "REP_RETRY_DELAY": 0.5,
            "REP_RETRY_DELAY_MAX": 0.5,
            "REP_DEFER_TIMEOUT": LONG,
            **order,
        }
        return CrawlProcess(mode, urls, **settings)

    return start


@pytest.mark.parametrize(("kind", "mode"), list(zip(QUEUE_CLASSES, MODES, strict=True)))
def test_requests_wait_until_their_site_is_back(start, web, redis, kind, mode):
    down, up = web.site(answer(503)), web.site(RULES)
    urls = [site.url(path) for site in (down, up) for path in ("/1", "/2", "/private")]
    deferred = {"script": [["stats", {"robotstxt/deferred": 3}], ["say", "deferred"]]}
    worker = start(*urls, kind=kind, mode=mode, **deferred)
    worker.hear("deferred")
    down.change(RULES)
    result = worker.result()
    assert sorted(down.targets) == sorted(up.targets) == ["/1", "/2"]
    assert set(result["dropped"].values()) == {"rule"}
    assert len(result["dropped"]) == 2
    assert result["stats"]["robotstxt/deferred"] == 3
    assert "ERROR" not in result["log"]
    assert redis.keys("*list:requests*") == []


def test_a_file_that_expires_at_once_is_fetched_once_for_each_page_at_most(start, web):
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.2\n"))
    urls = [site.url(f"/{n}") for n in range(6)]
    result = start(*urls, REP_CACHE_TTL=0, REP_CACHE_TTL_MIN=0).result()
    assert sorted(result["fetched"]) == urls
    assert len(site.robots_requests) <= len(urls)


def test_they_are_dropped_after_the_timeout(start, web, redis):
    site = web.site(answer(503))
    waits = {"REP_RETRY_DELAY": 1.5, "REP_RETRY_DELAY_MAX": 1.5, "REP_DEFER_TIMEOUT": 2}
    result = start(site.url("/1"), site.url("/2"), LOG_LEVEL="INFO", **waits).result()
    assert list(result["dropped"].values()) == ["unreachable"] * 2
    assert result["stats"]["robotstxt/deferred"] == 2
    assert result["stats"]["robotstxt/deferred_dropped"] == 2
    assert LOSES not in result["log"]
    assert result["log"].count("Waiting for 1 unreachable origin: ") == 1
    assert redis.keys("*list:requests*") == []


def end_leases(redis):
    """End those of workers that were killed: nobody waits for that."""
    for key in redis.keys("robots:lease:*"):
        redis.delete(key)


@pytest.mark.parametrize("waits", [answer(503), held(RULES)], ids=["deferred", "looked up"])
def test_a_killed_worker_takes_nothing_along_that_waits(start, web, redis, waits):
    sites = [web.site(waits) for _ in range(5)]
    urls = [site.url(path) for site in sites for path in ("/1", "/2")]
    first = start(*urls, REP_CONCURRENT_FETCHES=1)
    wait_until(lambda: redis.zcard(KEPT) == len(urls))
    first.kill()
    end_leases(redis)
    for site in sites:
        site.change(RULES)
    assert sorted(start().result()["fetched"]) == sorted(urls)


def test_requests_that_wait_for_their_turn_hold_up_no_other_site(start, web, redis):
    slow, quick = web.site(robots(f"User-agent: *\nCrawl-delay: {LONG}\n")), web.site(RULES)
    urls = [site.url(f"/{number}") for number in range(5) for site in (slow, quick)]
    worker = start(*urls, CONCURRENT_REQUESTS=1, REP_CRAWL_DELAY_MAX=LONG)
    wait_until(lambda: len(quick.targets) == 5)
    wait_until(lambda: len(slow.targets) == 1)
    wait_until(lambda: redis.zcard(KEPT) == 4)
    worker.kill()


def test_workers_keep_the_delay_of_a_site_together(start, web):
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.4\nDisallow: /private\n"))
    urls = [site.url(f"/{number}") for number in range(6)]
    first = start(*urls, site.url("/private"))
    results = [each.result() for each in (first, start(mode=MODES[1]))]
    assert sorted(url for result in results for url in result["fetched"]) == urls
    times = sorted(each["at"] for each in site.journal if each["target"] != "/robots.txt")
    assert times[-1] - times[0] > 1.9


def test_requests_that_wait_at_the_close_return_to_a_queue_that_defers_nothing(start, web):
    theirs = {"SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.PriorityQueue"}
    site = web.site(held(RULES))
    urls = [site.url("/1"), site.url("/2")]
    first = start(*urls, script=[["hear", "asked"], ["interrupt"]], **theirs)
    wait_until(lambda: site.robots_requests)
    first.tell("asked")
    assert first.result()["dropped"] == {}
    site.change(RULES)
    assert sorted(start(**theirs).result()["fetched"]) == urls


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, 0),
        (SCRAPYS_QUEUE, 1),
        ({**SCRAPYS_QUEUE, "REP_DEFER_TIMEOUT": 0}, 0),
        ({**SCRAPYS_QUEUE, "REP_DRY_RUN": True}, 0),
    ],
)
async def test_it_is_told_of_other_schedulers_too(settings, told):
    result = await crawl(settings={"REP_DEFER_TIMEOUT": 300, **settings})
    assert sum(LOSES in message for message in result.messages()) == told


# The queue alone.


class Doors(queues.Doors):
    """The only reason to wait of an admission, which stands for several."""

    def __init__(self):
        super().__init__()
        self.seconds = {}
        """For how long origins are unreachable; None is not known."""
        self.turns = {}
        """Whether the turn has come of origins that ask for a delay."""
        self.heads = []
        """The requests that would have left, of those who were asked about."""

    def hold(self, ask):
        name = str(ask.origin)
        with suppress(LookupError):
            self.heads.append(ask.head().url)
        seconds = self.seconds.get(name, 0.0)
        if seconds is None:
            return Hold(UNKNOWN, math.inf)
        if seconds:
            return Hold(UNREACHABLE, Clock().monotonic() + seconds)
        return Hold(queues.CLOSED, math.inf) if self.turns.get(name) is False else None

    def reserve(self, ask):
        if str(ask.origin) in self.turns:
            self.turns[str(ask.origin)] = False

    def tell(self, name):
        """Tell the queue that something has changed of an origin."""
        self.admission._notify(origin_of(name))

    def come(self, name):
        """Let the turn of an origin come."""
        self.turns[name] = True
        self.tell(name)

    @property
    def waiting(self):
        """The origins that wait for this worker, each with its next request."""
        (queue,) = self.admission.queues
        held = [origin for origin, *_ in queue.holds()]
        return {str(origin): queue.head_of(origin).url for origin in held}


def queue_of(redis, doors=None, kind=RobotsAwareRedisQueue):
    """Return the queue of a worker."""
    spider = scrapy.Spider("list")
    spider.crawler = FakeCrawler(doors, REP_DEFER_TIMEOUT=LONG)
    queue = kind(redis, spider, "%(spider)s:requests")
    LEFT_OPEN.append(queue._waiting)
    return queue


@pytest.fixture
def kind():
    return RobotsAwareRedisQueue


@pytest.fixture
def doors():
    return Doors()


@pytest.fixture
def queue(redis, doors, kind):
    return queue_of(redis, doors, kind)


def fill(queue, *urls, **attributes):
    for url in urls:
        queue.push(scrapy.Request(url, **attributes))


def drain(queue, looks=99):
    """Pop as often as a crawl does that is told to ask again; return the URLs."""
    popped = [queue.pop() for _ in range(looks)]
    return [request.url for request in popped if request is not None]


def end_waits(redis, *names):
    """End the waits in Redis, without names all: for sites, and for workers that were killed."""
    for name in names or redis.zrange(f"{KEPT}:due", 0, -1):
        redis.zadd(f"{KEPT}:due", {name: 0})


@contextmanager
def without_memory(redis):
    redis.config_set("maxmemory", 1)
    try:
        yield
    finally:
        redis.config_set("maxmemory", 0)


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
def test_what_is_open_comes_in_the_order_of_scrapy_redis(redis, queue, kind):
    theirs = kind.__bases__[1](redis, scrapy.Spider("theirs"), "%(spider)s:requests")
    for each in (queue, theirs):
        for number in range(5):
            each.push(scrapy.Request(f"{UP}/{number}", priority=number % 3))
    assert drain(queue) == [theirs.pop().url for _ in range(5)]
    assert len(queue) == 0


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
def test_what_comes_back_is_next_in_that_order(redis, doors, queue, kind):
    doors.seconds = {DOWN: 600.0}
    urls = [[f"{DOWN}/{number}" for number in range(3)], [f"{UP}/1", f"{UP}/2"]]
    for each in urls[::-1] if kind is RobotsAwareRedisLifoQueue else urls:
        fill(queue, *each)
    assert len(queue) == 5
    assert wait_until(queue.pop).url.startswith(UP)
    assert len(queue) == 4
    doors.seconds = {}
    end_waits(redis, DOWN)
    urls = drain(queue)
    numbers = [int(url[-1]) for url in urls if url.startswith(DOWN)]
    if kind is RobotsAwareRedisQueue:
        assert sorted(numbers) == [0, 1, 2]
    else:
        assert numbers == ([0, 1, 2] if kind is RobotsAwareRedisFifoQueue else [2, 1, 0])
        assert urls[-1].startswith(UP)
    assert redis.keys("*") == []


def test_each_pop_begins_lookups_for_which_there_is_room_now(doors, queue):
    looked = []
    doors.admission.lookups.begin = lambda: looked.append(None)
    for number in range(3):
        assert len(looked) == number
        assert queue.pop() is None


def test_the_admission_is_asked_about_the_request_that_would_leave(doors, queue):
    doors.turns = {DOWN: False}
    fill(queue, f"{DOWN}/1")
    assert drain(queue) == []
    fill(queue, f"{DOWN}/2", priority=1)
    assert drain(queue) == []
    assert doors.waiting == {DOWN: f"{DOWN}/2"}
    doors.heads.clear()
    doors.come(DOWN)
    assert drain(queue) == [f"{DOWN}/2"]
    assert doors.heads == [f"{DOWN}/2", f"{DOWN}/1"]


def test_without_room_it_only_makes_way(redis, doors, queue, monkeypatch):
    doors.seconds = {DOWN: None}
    doors.crawler.engine.paused = True
    monkeypatch.setattr(Lookups, "has_room", False)
    fill(queue, f"{DOWN}/1", f"{UP}/1")
    assert drain(queue) == [f"{UP}/1"]
    assert doors.waiting == {}
    # Another worker has room.
    monkeypatch.undo()
    assert drain(queue_of(redis, Doors())) == [f"{DOWN}/1"]


def test_one_that_is_overdue_leaves_to_be_dropped(redis, doors, queue):
    doors.seconds = {DOWN: 600.0}
    fill(queue, f"{DOWN}/1", f"{DOWN}/2")
    assert drain(queue) == []
    redis.hset(f"{KEPT}:since", DOWN, 1)
    end_waits(redis, DOWN)
    popped = wait_until(queue.pop)
    assert take_ticket(popped).source == "overdue"
    assert wait_until(queue.pop).url.startswith(DOWN)
    assert drain(queue) == []
    assert redis.keys("*") == []


def test_one_whose_next_try_comes_too_late_leaves_at_once(doors, queue):
    doors.seconds = {DOWN: LONG + 600.0}
    fill(queue, f"{DOWN}/1")
    assert take_ticket(queue.pop()).source == "overdue"
    assert queue.head_of(origin_of(DOWN)) is None
    assert queue.idle_line() == ""
    assert drain(queue) == []


def test_without_the_middleware_nothing_waits(redis):
    queue = queue_of(redis)
    fill(queue, f"{DOWN}/1", f"{UP}/1")
    assert sorted(drain(queue)) == [f"{DOWN}/1", f"{UP}/1"]
    assert len(queue) == 0


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", QUEUE_CLASSES)
def test_more_than_a_batch_comes_back_in_its_order(redis, doors, queue, monkeypatch, kind, full):
    monkeypatch.setattr(requests_in_redis, "_BATCH", 2)
    doors.seconds = {DOWN: 600.0}
    urls = [f"{DOWN}/{number}" for number in range(5)]
    fill(queue, *urls)
    doors.seconds = {}
    end_waits(redis, DOWN)
    with without_memory(redis) if full else nullcontext():
        popped = drain(queue)
    if kind is RobotsAwareRedisQueue:
        popped.sort()
    assert popped == (urls[::-1] if kind is RobotsAwareRedisLifoQueue else urls)


def test_requests_wait_for_their_turn_in_redis_and_leave_in_the_order_of_the_queue(
    redis, doors, queue
):
    other_doors = Doors()
    other = queue_of(redis, other_doors)
    doors.turns = other_doors.turns = {DOWN: False}
    for number in range(3):
        fill(queue, f"{DOWN}/{number}", priority=number)
    fill(queue, f"{UP}/1")
    assert drain(queue) == [f"{UP}/1"]
    assert drain(other) == []
    assert len(queue) == 3
    for priority in (2, 1, 0):
        # The turn is asked for once, with one request for all of them.
        assert list(doors.waiting) == [DOWN]
        doors.come(DOWN)
        assert drain(queue) == [f"{DOWN}/{priority}"]
    assert doors.waiting == other_doors.waiting == {}
    assert redis.keys("*") == []


def test_who_finds_nothing_in_its_turn_waits_for_no_other(redis, doors, queue):
    doors.turns = {DOWN: False}
    fill(queue, f"{DOWN}/1")
    assert drain(queue) == []
    redis.delete(KEPT)  # another worker took it
    doors.come(DOWN)
    assert drain(queue) == []
    assert doors.waiting == {}


@pytest.mark.parametrize("seconds", [None, 600.0, 0.0], ids=["expired", "unreachable", "no delay"])
def test_what_has_changed_when_the_turn_comes(redis, doors, queue, seconds):
    doors.turns = {DOWN: False}
    urls = [f"{DOWN}/{number}" for number in range(3)]
    fill(queue, *urls)
    assert drain(queue) == []
    doors.seconds, doors.turns = {DOWN: seconds}, {}
    doors.tell(DOWN)
    assert sorted(drain(queue)) == ([] if seconds != 0 else urls)
    assert list(doors.waiting) == ([DOWN] if seconds is None else [])
    assert bool(redis.hlen(f"{KEPT}:since")) == bool(seconds)


def test_a_request_that_cannot_be_read_holds_up_no_other(redis, doors, queue):
    doors.seconds = {DOWN: 600.0}
    fill(queue, f"{DOWN}/1")
    redis.zadd(KEPT, {f"{DOWN}\n{0:032d} 0 broken".encode(): 0})
    end_waits(redis, DOWN)
    doors.seconds = {}
    urls, errors = [], []
    for _ in range(9):
        try:
            urls += drain(queue, 1)
        except (pickle.UnpicklingError, ValueError) as error:  # noqa: PERF203 - as scrapy-redis
            errors.append(error)
    assert urls == [f"{DOWN}/1"]
    assert len(errors) == 1


def test_what_the_admission_fails_for_goes_to_the_middleware(doors, queue):
    fill(queue, f"{DOWN}/1")
    doors.admission.hold = lambda ask: 1 / 0
    assert take_ticket(queue.pop()).source == "direct"
    assert drain(queue) == []


def test_requests_wait_for_their_turn_in_a_redis_that_is_full(redis, doors, queue):
    fill(queue, f"{DOWN}/1")
    doors.turns = {DOWN: False}
    with without_memory(redis):
        assert drain(queue) == []
        doors.come(DOWN)
        assert drain(queue) == [f"{DOWN}/1"]


def test_no_request_stays_for_ever_where_redis_lost_when_it_is_due(redis, doors, queue):
    doors.seconds = {DOWN: 600.0, UP: 600.0}
    urls = [f"{DOWN}/1", f"{DOWN}/2", f"{UP}/1"]
    fill(queue, *urls)
    redis.delete(f"{KEPT}:due")
    doors.seconds = {}
    assert sorted(drain(queue)) == urls


def test_in_a_cluster_all_keys_are_in_one_slot(redis):
    from redis.crc import key_slot

    for name in ("list:requests", "{list}:requests", "list:{requests}"):
        keys = requests_in_redis.RequestsInRedis(redis, name, "", 0).keys
        assert len({key_slot(key.encode()) for key in keys}) == 1


def test_clear_removes_all(redis, doors, queue):
    doors.seconds = {DOWN: 600.0}
    fill(queue, f"{DOWN}/1", f"{UP}/1")
    queue.clear()
    assert len(queue) == 0
    assert redis.keys("*") == []
