"""Several processes, one store: one robots.txt request per origin, and nobody waits for the dead."""

import pytest
import scrapy

from tests.crawling.crawl import SCRAPYS_QUEUE, crawl
from tests.crawling.process import CrawlProcess
from tests.crawling.web import HANGS, answer, held, redirect, robots
from tests.redis_server import RedisServer, needs_redis
from tests.sql import execute
from tests.waiting import until, wait_until

MODES = ["asyncio", "select", "none" if scrapy.version_info >= (2, 15) else "select", "asyncio"]
SITES = 25
RULES = robots("User-agent: *\nDisallow: /private\n")


@pytest.fixture(params=["sqlite", "redis"])
def store(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/robots.sqlite"
        return
    needs_redis()
    server = RedisServer(tmp_path)
    yield server.uri
    server.stop()


LONG = 3600
"""Seconds of a lease, or of a pause between two tries, that no test waits for."""
WAITED = "robotstxt/store/waited_for_other_worker"


class Lease:
    """The lease of an origin, in a store that crawls use."""

    def __init__(self, store, site):
        self.origin = site.url("")
        self.path = store.removeprefix("sqlite:///")
        self.client = None
        if store.startswith("redis:"):
            import redis

            self.client = redis.Redis.from_url(store)

    @property
    def end(self):
        """When it ends, in seconds since the epoch; None where there is none."""
        if self.client is None:
            statement = "SELECT taken + seconds FROM leases WHERE origin = ?"
            return next((end for (end,) in execute(self.path, statement, self.origin)), None)
        end = self.client.execute_command("PEXPIRETIME", f"robots:lease:{self.origin}")
        return None if end < 0 else end / 1000

    def expire(self):
        if self.client is None:
            execute(self.path, "UPDATE leases SET seconds = 0 WHERE origin = ?", self.origin)
        else:
            self.client.pexpire(f"robots:lease:{self.origin}", 1)


class Worker(CrawlProcess):
    def __init__(self, store, urls, mode="asyncio", **order):
        settings = {"REP_STORE": store, "CONCURRENT_REQUESTS_PER_DOMAIN": 100, **order}
        settings.setdefault("CONCURRENT_REQUESTS", 100)
        super().__init__(mode, urls, **settings)

    def result(self):
        result = super().result()
        assert result["log"] == ""
        return result


def asked(site):
    wait_until(lambda: site.robots_requests)


def test_four_workers_that_want_the_same_at_once_fetch_it_once(web, store):
    sites = [web.site(held(RULES)) for _ in range(SITES)]
    urls = [site.url(path) for site in sites for path in ("/private", "/public")]
    here = {"script": [["stats", {"scheduler/enqueued": len(urls)}], ["say", "here"]]}
    workers = [Worker(store, urls, mode, REP_TIMEOUT=LONG, **here) for mode in MODES]
    # All are there before the first is told anything.
    for worker in workers:
        worker.hear("here")
    for site in sites:
        site.release()
    results = [worker.result() for worker in workers]
    assert [len(site.robots_requests) for site in sites] == [1] * len(sites)
    assert {target for site in sites for target in site.targets} == {"/public"}
    for result in results:
        assert len(result["fetched"]) == len(result["dropped"]) == len(sites)
    stats = [result["stats"] for result in results]
    assert sum(each.get("robotstxt/request_count", 0) for each in stats) == len(sites)
    # Within the day everything is known, to whoever comes.
    again = Worker(store, urls).result()
    assert len(again["fetched"]) == len(again["dropped"]) == len(sites)
    assert [len(site.robots_requests) for site in sites] == [1] * len(sites)


def test_sites_that_another_worker_is_at_hold_up_no_other_site(web, store):
    theirs = [web.site(held(RULES)) for _ in range(SITES)]
    mine = web.site(RULES)
    many = {"REP_CONCURRENT_FETCHES": 2 * SITES, "REP_TIMEOUT": LONG}
    first = Worker(store, [site.url("/public") for site in theirs], **many)
    for site in theirs:
        asked(site)
    few = {"REP_CONCURRENT_FETCHES": 2, "REP_TIMEOUT": LONG}
    second = Worker(store, [site.url("/public") for site in (*theirs, mine)], **few)
    wait_until(lambda: mine.targets)
    assert all(site.targets == [] for site in theirs)
    for site in theirs:
        site.release()
    results = [worker.result() for worker in (first, second)]
    assert [len(site.robots_requests) for site in theirs] == [1] * SITES
    assert results[1]["stats"][WAITED] == SITES


async def test_a_slow_fetch_of_a_worker_that_is_alone_is_known_to_one_that_comes(
    web, store, monkeypatch
):
    monkeypatch.setattr("scrapy_rep.stores.write_behind._SETTLED", 0)
    first, slow = web.site(RULES), web.site(held(RULES))
    lease, others = Lease(store, slow), []

    async def meanwhile(_):
        await until(lambda: slow.robots_requests)
        await until(lambda: lease.end is not None)
        script = [["stats", {WAITED: 1}], ["say", "waiting"]]
        others.append(Worker(store, [slow.url("/private")], script=script))
        others[0].hear("waiting")
        slow.release()

    phases = [lambda: [slow.url("/public")]]
    settings = {"REP_STORE": store}
    result = await crawl(first.url("/"), settings=settings, phases=phases, meanwhile=meanwhile)
    assert result.fetched == [first.url("/"), slow.url("/public")]
    assert others[0].result()["dropped"] == {slow.url("/private"): "rule"}
    assert len(slow.robots_requests) == 1


def test_the_fleet_backs_off_together_and_a_restart_does_not_begin_again(web, store):
    site = web.site(answer(503))
    settings = {"REP_RETRY_DELAY": 10 * LONG, "REP_RETRY_DELAY_MAX": 10 * LONG}
    url = site.url("/")
    for workers in (2, 1):
        for worker in [Worker(store, [url], **settings) for _ in range(workers)]:
            assert worker.result()["dropped"] == {url: "unreachable"}
    assert len(site.robots_requests) == 1


def test_a_worker_that_is_killed_delays_others_by_a_lease_at_most(web, store):
    site = web.site(HANGS, RULES)
    lease = Lease(store, site)
    urls = [site.url("/private"), site.url("/public")]
    dead = Worker(store, urls, REP_TIMEOUT=LONG)
    asked(site)
    script = [["stats", {WAITED: 1}], ["say", "waiting"]]
    worker = Worker(store, urls, REP_TIMEOUT=LONG, script=script)
    worker.hear("waiting")
    dead.kill()
    # REP_TIMEOUT, and five seconds to store the record; it was taken before the site was asked.
    assert 0 < lease.end - site.robots_requests[0]["at"] < LONG + 5
    assert len(site.robots_requests) == 1
    lease.expire()
    result = worker.result()
    assert result["dropped"] == {urls[0]: "rule"}
    assert result["fetched"] == [urls[1]]
    assert len(site.robots_requests) == 2
    assert site.targets == ["/public"]


def test_a_worker_that_has_lost_its_lease_takes_the_record_that_another_has_stored(web, store):
    """As one does that was stopped while it fetched, and is continued later."""
    site = web.site(held(answer(503)), RULES)
    urls = [site.url("/private"), site.url("/public")]
    first = Worker(store, urls, REP_TIMEOUT=LONG)
    asked(site)
    Lease(store, site).expire()
    second = Worker(store, urls).result()
    site.release()
    for result in (first.result(), second, Worker(store, urls).result()):
        assert result["dropped"] == {urls[0]: "rule"}
        assert result["fetched"] == [urls[1]]
    assert len(site.robots_requests) == 2


def test_a_worker_that_ends_in_good_order_delays_nobody(web, store):
    site = web.site(HANGS, RULES)
    lease = Lease(store, site)
    script = [["hear", "close"], ["close"]]
    first = Worker(store, [site.url("/public")], REP_TIMEOUT=LONG, script=script)
    asked(site)
    assert lease.end is not None
    first.tell("close")
    assert "robotstxt/outcome_count/unreachable" not in first.result()["stats"]
    assert lease.end is None
    second = Worker(store, [site.url("/public")]).result()
    assert second["fetched"] == [site.url("/public")]
    assert WAITED not in second["stats"]
    assert len(site.robots_requests) == 2


@pytest.mark.spec("F-3")
def test_rules_that_another_worker_knows_end_a_chain(web, store):
    hidden = robots("User-agent: *\nDisallow: /hidden")
    other = web.site(hidden, paths={"/hidden": [RULES], "/long": [held(answer())]})
    site = web.site(redirect(other.url("/hidden")))
    first = Worker(store, [other.url("/long")])
    wait_until(lambda: other.targets)
    wait_until(lambda: Lease(store, other).end is None)  # it ends when the record is stored
    assert Worker(store, [site.url("/private")]).result()["fetched"] == [site.url("/private")]
    other.release()
    assert first.result()["fetched"] == [other.url("/long")]
    assert other.targets == ["/long"]
    assert len(other.robots_requests) == 1


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "Scrapy's"])
def test_two_workers_keep_the_delay_of_a_site_together(web, store, queue):
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.4\nDisallow: /private\n"))
    pages = [[site.url(f"/{name}{n}") for n in range(3)] for name in "ab"]
    workers = [
        Worker(store, [*urls, site.url("/private")], mode, **queue)
        for urls, mode in zip(pages, MODES[1:], strict=False)
    ]
    results = [worker.result() for worker in workers]
    assert [sorted(result["fetched"]) for result in results] == pages
    assert len(site.robots_requests) == 1
    for result in results:
        # What is dropped takes no turn.
        assert result["stats"]["robotstxt/turns"] == 3
    times = sorted(each["at"] for each in site.journal if each["target"] != "/robots.txt")
    # Six requests: each worker by itself would be done after 0.8 s.
    assert times[-1] - times[0] > 1.4


@pytest.mark.parametrize("mode", sorted(set(MODES)))
def test_closing_while_the_store_hangs_begins_no_fetch(web, mode, tmp_path):
    needs_redis()
    server = RedisServer(tmp_path)
    server.pause()
    site = web.site(RULES)
    script = [["stats", {"robotstxt/waited": 1}], ["close"]]
    store = f"{server.uri}?timeout={LONG}"
    worker = Worker(store, [site.url("/1")], mode, script=script, **SCRAPYS_QUEUE)
    try:
        result = worker.result()
    finally:
        server.stop()
    assert result["dropped"] == {site.url("/1"): "closing"}
    assert site.journal == []
