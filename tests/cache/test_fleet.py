"""Several processes, one store: one robots.txt request per origin, and nobody waits for the dead."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import pytest_twisted
import scrapy

from tests.crawling.crawl import SCRAPYS_QUEUE, crawl
from tests.crawling.web import answer, robots
from tests.redis_server import RedisServer, needs_redis

MODE_CRAWL = Path(__file__).parents[1] / "crawling" / "mode_crawl.py"
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


class Worker:
    def __init__(self, store, urls, mode="asyncio", close_after=None, **settings):
        settings = {"REP_STORE": store, "CONCURRENT_REQUESTS_PER_DOMAIN": 100, **settings}
        settings.setdefault("CONCURRENT_REQUESTS", 100)
        # A machine that is busy with tests is no store that fails.
        settings.setdefault("REP_STORE_TIMEOUT", 10)
        order = {
            "mode": mode,
            "settings": settings,
            "urls": urls,
            "close_after": close_after,
            "cancels": [],
        }
        self.process = subprocess.Popen(
            [sys.executable, str(MODE_CRAWL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.process.stdin.write(json.dumps(order))
        self.process.stdin.close()

    def result(self):
        output, log = self.process.stdout.read(), self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert self.process.wait(60) == 0, log
        assert log == ""
        return json.loads(output)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def test_four_workers_that_want_the_same_at_once_fetch_it_once(web, store):
    # The first so slow that all workers come while it is fetched.
    sites = [web.site([["wait", 0.3 if i else 4.0], *RULES]) for i in range(SITES)]
    urls = [site.url(path) for site in sites for path in ("/private", "/public")]
    results = [worker.result() for worker in [Worker(store, urls, mode) for mode in MODES]]
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


def test_the_fleet_backs_off_together_and_a_restart_does_not_begin_again(web, store):
    site = web.site(answer(503))
    settings = {"REP_RETRY_DELAY": 60}
    for worker in [Worker(store, [site.url("/1")], **settings) for _ in range(2)]:
        assert worker.result()["dropped"] == {site.url("/1"): "unreachable"}
    assert Worker(store, [site.url("/2")], **settings).result()["dropped"] == {
        site.url("/2"): "unreachable"
    }
    assert len(site.robots_requests) == 1


def test_a_worker_that_is_killed_delays_others_by_a_lease_at_most(web, store):
    site = web.site([["wait", 60]], RULES)
    urls = [site.url("/private"), site.url("/public")]
    dead = Worker(store, urls, REP_TIMEOUT=2)
    while not site.robots_requests:
        time.sleep(0.05)
    start = time.monotonic()
    dead.kill()
    result = Worker(store, urls, REP_TIMEOUT=2).result()
    took = time.monotonic() - start
    assert result["dropped"] == {urls[0]: "rule"}
    assert result["fetched"] == [urls[1]]
    assert len(site.robots_requests) == 2
    assert site.targets == ["/public"]
    # REP_TIMEOUT, five seconds to store the record, one between two looks; and the start.
    assert 2 < took < 2 + 5 + 1 + 4


def test_a_worker_that_ends_in_good_order_delays_nobody(web, store):
    site = web.site([["wait", 60]], RULES)
    first = Worker(store, [site.url("/public")], CLOSESPIDER_TIMEOUT=2)
    while not site.robots_requests:
        time.sleep(0.05)
    first.result()
    start = time.monotonic()
    assert Worker(store, [site.url("/public")]).result()["fetched"] == [site.url("/public")]
    assert time.monotonic() - start < 6
    assert len(site.robots_requests) == 2


@pytest.mark.parametrize("jobdir", [False, True])
@pytest_twisted.ensureDeferred
async def test_a_second_crawl_within_the_day_asks_for_no_robots_txt(web, store, jobdir, tmp_path):
    sites = [web.site(RULES), web.site(answer(404)), web.site(robots("User-agent: *\nDisallow: /"))]
    settings = {"REP_STORE": store, **({"JOBDIR": str(tmp_path / "job")} if jobdir else {})}
    for path in ("/private", "/other"):
        await crawl(*(site.url(path) for site in sites), settings=settings)
    assert [len(site.robots_requests) for site in sites] == [1, 1, 1]
    assert [site.targets for site in sites] == [["/other"], ["/private", "/other"], []]


@pytest.mark.parametrize("mode", sorted(set(MODES)))
def test_closing_while_the_store_hangs_begins_no_fetch(web, mode, tmp_path):
    needs_redis()
    server = RedisServer(tmp_path)
    server.pause()
    site = web.site(RULES)
    worker = Worker(
        server.uri, [site.url("/1")], mode, close_after=0.7, REP_STORE_TIMEOUT=4, **SCRAPYS_QUEUE
    )
    try:
        result = worker.result()
    finally:
        server.stop()
    assert result["dropped"] == {site.url("/1"): "closing"}
    assert site.journal == []
    assert result["stats"]["elapsed_time_seconds"] < 20
