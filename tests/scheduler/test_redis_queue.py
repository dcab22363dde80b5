"""scrapy-redis's queues with requests kept back, in a real Redis that several crawls use."""

import math

import pytest
import scrapy
from scrapy_redis.spiders import RedisMixin

from scrapy_rep import (
    RobotsAwareRedisFifoQueue,
    RobotsAwareRedisLifoQueue,
    RobotsAwareRedisQueue,
)
from scrapy_rep.admission.hold import UNKNOWN, UNREACHABLE, Hold
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler import redis_queue
from scrapy_rep.stats import QUEUE_ERRORS
from scrapy_rep.utils.concurrency import Clock
from tests.crawling.crawl import SCRAPYS_QUEUE, ListSpider, crawl
from tests.crawling.process import MODES, CrawlProcess
from tests.crawling.web import answer, held, robots
from tests.scheduler import queues
from tests.scheduler.queues import FakeCrawler
from tests.waiting import wait_until

RULES = robots("User-agent: *\nDisallow: /private\n")
QUEUE_CLASSES = [RobotsAwareRedisQueue, RobotsAwareRedisFifoQueue, RobotsAwareRedisLifoQueue]
LONG = 3600
DOWN, UP = "http://down.example", "http://up.example"
WAITING = "list:requests:waiting"
LOSES = "unreachable are dropped at once, because the scheduler does not defer them"


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


@pytest.mark.parametrize(
    ("kind", "mode"), list(zip(QUEUE_CLASSES, [*MODES, "select"], strict=False))
)
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


def in_redis(redis):
    return sum(redis.zcard(key) for key in redis.keys(f"{WAITING}:*"))


def test_what_is_deferred_outlives_a_worker_that_is_killed(start, web, redis):
    sites = [web.site(answer(503)) for _ in range(5)]
    urls = [site.url(path) for site in sites for path in ("/1", "/2")]
    first = start(*urls, REP_CONCURRENT_FETCHES=1)
    wait_until(lambda: in_redis(redis) == len(urls))
    first.kill()
    # Nobody waits for the end of its leases.
    for key in redis.keys("robots:lease:*"):
        redis.delete(key)
    for site in sites:
        site.change(RULES)
    assert sorted(start().result()["fetched"]) == sorted(urls)


def test_workers_that_are_terminated_lose_and_repeat_nothing(start, web, redis):
    quick, refuses, down, slow, hangs = (
        [web.site(RULES) for _ in range(20)],
        web.site(RULES, paths={"/1": [answer(429, headers={"Retry-After": "2"}), answer()]}),
        web.site(answer(503)),
        web.site(robots("User-agent: *\nCrawl-delay: 0.4\n")),
        web.site(held(RULES)),
    )
    sites = (hangs, down, slow, refuses, *quick)
    urls = [site.url(f"/{n}") for n in range(6) for site in sites]
    # Else a worker that finds nothing ends before another one has given back what it had taken.
    stays = {"script": [["say", "here"], ["stay"]]}
    workers = [start(*urls, **stays)]
    wait_until(lambda: redis.scard("list:dupefilter") == len(urls))
    workers.append(start(**stays))
    for number in range(3):
        wait_until(lambda many=20 * number: sum(len(site.targets) for site in quick) > many)
        workers[number].hear("here")  # else the signal ends the process before the crawl begins
        workers[number].process.terminate()
        workers.append(start(**stays))
    down.change(RULES)
    hangs.release()
    wait_until(lambda: sum(len(site.targets) for site in sites) > len(urls))
    for each in workers[3:]:
        each.tell("enough")
    results = [each.result() for each in workers]
    assert sorted(url for each in results for url in each["fetched"]) == sorted(urls)
    assert not any("ERROR" in each["log"] for each in results)


class FedSpider(RedisMixin, ListSpider):
    """Reads start URLs from Redis when it is idle, as RedisSpider does."""

    redis_key = "starts"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        return spider

    def make_request_from_data(self, data):
        return self.prepare(data.decode())


def test_no_delay_and_no_pause_holds_up_start_urls_in_redis(start, web, redis):
    refusal = answer(429, headers={"Retry-After": "60"})
    refuses = web.site(RULES, paths={"/1": [refusal]}, host="127.0.0.2")
    slow = web.site(robots("User-agent: *\nCrawl-delay: 60\n"), host="127.0.0.3")
    up = web.site(RULES)
    urls = [refuses.url("/1"), slow.url("/1"), slow.url("/2")]
    redis.rpush("starts", up.url("/1"))
    script = [["hear", "enough"], ["close"]]
    worker = start(*urls, spider=f"{__name__}.FedSpider", script=script, LOG_LEVEL="INFO")
    wait_until(lambda: up.targets)
    worker.tell("enough")
    result = worker.result()
    assert len(refuses.targets) == len(slow.targets) == 1, "the others wait"
    assert "Waiting for" not in result["log"]


def test_a_worker_that_is_stopped_before_its_engine_runs_takes_nothing(start, web, redis):
    site = web.site(held(RULES))
    urls = [site.url(f"/{n}") for n in range(200)]
    start(*urls, script=[["stats", {"scheduler/enqueued/redis": 200}], ["interrupt"]]).result()
    assert redis.zcard("list:requests") == 200
    start(script=[["interrupt"]]).result()
    assert redis.zcard("list:requests") == 200


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

    def hold(self, ask):
        name = str(ask.origin)
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
        self.admission._hold_changed(origin_of(name))

    def come(self, name):
        self.turns[name] = True
        self.tell(name)


def queue_of(redis, doors=None, kind=RobotsAwareRedisQueue):
    spider = scrapy.Spider("list")
    spider.crawler = FakeCrawler(doors, REP_DEFER_TIMEOUT=LONG)
    return kind(redis, spider, "%(spider)s:requests")


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


def drain(queue):
    """Pop as often as a crawl does that is told to ask again; return the URLs."""
    popped = []
    for _ in range(99):
        queue._waiting.check_at = 0.0
        popped.append(queue.pop())
    return [request.url for request in popped if request is not None]


def end_waits(redis):
    for name in redis.zrange(WAITING, 0, -1):
        redis.zadd(WAITING, {name: 0})


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
def test_what_is_open_comes_in_the_order_of_scrapy_redis(redis, queue, kind):
    theirs = kind.__bases__[1](redis, scrapy.Spider("theirs"), "%(spider)s:requests")
    for each in (queue, theirs):
        for number in range(5):
            each.push(scrapy.Request(f"{UP}/{number}", priority=number % 3))
    assert drain(queue) == [theirs.pop().url for _ in range(5)]
    assert len(queue) == 0


@pytest.mark.parametrize("kind", QUEUE_CLASSES)
def test_what_is_deferred_waits_in_redis(redis, doors, queue, monkeypatch, kind):
    monkeypatch.setattr(redis_queue, "_MOST_CLAIMED", 2)
    monkeypatch.setattr(redis_queue, "_CHECK_INTERVAL", 0.0)
    doors.seconds = {DOWN: 600.0}
    urls = [f"{DOWN}/{number}" for number in range(5)]
    for number, url in enumerate(urls):
        fill(queue, url, priority=-number)
    fill(queue, f"{UP}/1")
    assert drain(queue) == [f"{UP}/1"]
    assert (in_redis(redis), redis.zcard(WAITING)) == (5, 1)
    assert queue._crawler.stats["robotstxt/deferred"] == 5
    assert queue._own.count_deferred() == (1, True)
    line = "Waiting for 1 unreachable origin: the next try is in "
    assert queue._own.idle_line().startswith(line)
    assert len(queue) == 0
    # It is due, and again unreachable for a while.
    end_waits(redis)
    assert drain(queue) == []
    assert (in_redis(redis), redis.zcard(WAITING)) == (5, 1)
    doors.seconds = {}
    end_waits(redis)
    assert drain(queue) == urls
    assert queue._crawler.stats["robotstxt/deferred"] == 5
    assert redis.keys("*") == []


def test_a_table_that_is_full_holds_up_no_other_site(redis, doors, queue, monkeypatch):
    monkeypatch.setattr(redis_queue, "_MOST_ROWS", 4)
    doors.turns = {DOWN: False}
    urls = [f"{DOWN}/{number:02}" for number in range(20)]
    for number, url in enumerate(urls):
        fill(queue, url, priority=-number)
    fill(queue, f"{UP}/1", priority=-99)
    assert drain(queue) == [f"{UP}/1"]
    assert queue._own._requests.size + in_redis(redis) == len(urls)
    assert queue._own._requests.size <= 4
    left = []
    for _ in urls:
        end_waits(redis)
        doors.come(DOWN)
        left += drain(queue)
    assert left == urls
    assert redis.keys("*") == []


@pytest.mark.parametrize(("slow", "popped", "rows"), [(0, [], 4), (9, [f"{UP}/4"], 6)])
def test_while_lookups_hang_few_are_taken(redis, doors, queue, monkeypatch, slow, popped, rows):
    for name, value in (("_ENOUGH", 4), ("_MOST_ROWS", 12)):
        monkeypatch.setattr(redis_queue, name, value)
    monkeypatch.setattr(Lookups, "has_room", False)
    queue._own._admission.unknown.lookups.slow = range(slow)
    sites = [f"http://{number}.down.example" for number in range(8)]
    doors.seconds = dict.fromkeys(sites)
    for number, site in enumerate([*sites[:4], UP, *sites[4:]]):
        fill(queue, f"{site}/{number}", priority=-number)
    assert (drain(queue), queue._own._requests.size) == (popped, rows)
    assert redis.zcard("list:requests") == 9 - len(popped) - rows


def test_without_the_middleware_nothing_waits(redis):
    queue = queue_of(redis)
    fill(queue, f"{DOWN}/1", f"{UP}/1")
    assert sorted(drain(queue)) == [f"{DOWN}/1", f"{UP}/1"]
    assert len(queue) == 0


def test_a_request_that_cannot_be_read_holds_up_no_other(redis, doors, queue):
    doors.seconds = {DOWN: 600.0}
    fill(queue, f"{DOWN}/1")
    assert drain(queue) == []
    redis.zadd(f"{WAITING}:{DOWN}", {b"0 0 broken": -1})
    end_waits(redis)
    doors.seconds = {}
    assert drain(queue) == [f"{DOWN}/1"]
    assert queue._crawler.stats[QUEUE_ERRORS] == 1


def test_clear_removes_all(redis, doors, queue):
    doors.seconds, doors.turns = {DOWN: 600.0}, {UP: False}
    fill(queue, f"{DOWN}/1", f"{UP}/1")
    assert drain(queue) == []
    queue.clear()
    assert len(queue) == 0
    assert redis.keys("*") == []
