"""Broad crawls: no site holds up another, and what is unreachable is not lost."""

import asyncio
import logging
from itertools import pairwise

import pytest
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider

from scrapy_rep.admission.admission import Admission
from tests.crawling.crawl import (
    Downloads,
    Lines,
    ListSpider,
    close,
    closing_when,
    crawl,
    hearing,
    releasing_as_it_closes,
    stat,
)
from tests.crawling.web import HANGS, RULES, answer, held, robots
from tests.test_signals import Ear
from tests.waiting import until

LONG = 3600
DEFER = {"REP_DEFER_TIMEOUT": 300, "REP_RETRY_DELAY": 0.4, "REP_RETRY_DELAY_MAX": 0.4}
DEFER_LONG = {
    "REP_RETRY_DELAY": LONG,
    "REP_RETRY_DELAY_MAX": LONG,
    "REP_DEFER_TIMEOUT": 10 * LONG,
}


# Deferring.


async def test_unreachable_for_a_while_loses_nothing(web):
    site = web.site(answer(503))
    other = web.site(robots(RULES))
    paths = ("/1", "/private", "/3", "/4")
    urls = [*(site.url(path) for path in paths), other.url("/1")]
    ear = Ear("robotstxt_fetched")
    lines = Lines("Waiting for")

    def opened(crawler):
        ear.listen(crawler)
        lines.listen(crawler)

    async def meanwhile(crawler):
        await until(lambda: lines.heard and len(site.robots_requests) >= 3)
        site.change(robots(RULES))

    # Long enough for a look at the engine while nothing goes on, sooner or later.
    slow = {"REP_RETRY_DELAY": 1.2, "REP_RETRY_DELAY_MAX": 1.2}
    result = await crawl(*urls, settings={**DEFER, **slow}, opened=opened, meanwhile=meanwhile)
    assert sorted(site.targets) == ["/1", "/3", "/4"]
    assert result.dropped == {site.url("/private"): "rule"}
    assert result.fetched[0] == other.url("/1")
    assert result.stats["robotstxt/deferred"] == 4
    assert "robotstxt/deferred_dropped" not in result.stats
    (line,) = lines.heard
    assert line.startswith(f"Waiting for 1 unreachable origin: {site.url('')} (status 503, next ")
    # Between the tries nothing was asked of the site.
    records = [w["record"] for _, w in ear.heard if str(w["origin"]) == site.url("")]
    assert len(records) == len(site.robots_requests)
    for sooner, later in pairwise(records):
        assert sooner.next_try <= later.last.evidence.at


def lost(result):
    return [text for text in result.messages(logging.INFO) if text.startswith("Deferred requests")]


async def test_requests_are_counted_as_soon_as_they_are_deferred(web):
    site = web.site(answer(503))
    busy = web.site(robots(""), paths={"/": [held(answer())]})

    async def meanwhile(crawler):
        await until(Admission.of(crawler).deferral.count_deferred)
        await until(lambda: stat(crawler, "scheduler/enqueued") == 21)
        for more in (0, 3):
            for number in range(more):
                crawler.engine.crawl(crawler.spider.prepare(site.url(f"/more{number}")))
            await until(lambda more=more: stat(crawler, "robotstxt/deferred") == 20 + more)
        close(crawler)
        busy.release()

    result = await crawl(
        busy.url("/"),
        *(site.url(f"/{n}") for n in range(20)),
        settings=DEFER_LONG,
        meanwhile=meanwhile,
    )
    assert result.stats["robotstxt/deferred"] == result.stats["robotstxt/deferred_waiting"] == 23
    assert lost(result) == ["Deferred requests lost, because JOBDIR is not set: 23"]


async def test_closing_while_deferred_keeps_all_for_the_next_crawl(web, tmp_path):
    deferred = web.site(answer(503), robots(RULES))
    hanging = web.site(HANGS, robots(RULES))
    settings = {**DEFER_LONG, "JOBDIR": str(tmp_path)}

    def both_wait(crawler):
        return Admission.of(crawler).deferral.count_deferred() and hanging.robots_requests

    paths = ("/1", "/private", "/3")
    first = await crawl(
        *(Request(site.url(path), priority=2) for site in (deferred, hanging) for path in paths),
        settings=settings,
        meanwhile=closing_when(both_wait),
    )
    assert first.failures == []
    # The one that is deferred; the other one was not waited for.
    assert first.stats["robotstxt/outcome_count/unreachable"] == 1
    assert first.stats["scheduler/enqueued/disk"] == 6
    assert first.stats["robotstxt/deferred"] == first.stats["robotstxt/deferred_waiting"] == 3
    assert "scheduler/dequeued" not in first.stats
    assert lost(first) == []
    second = await crawl(settings=settings)
    for site in (deferred, hanging):
        assert sorted(site.targets) == ["/1", "/3"]
    assert sorted(second.dropped.values()) == ["rule", "rule"]
    assert {(r.request.priority, r.request.dont_filter) for r in second.responses} == {(2, False)}
    assert not [key for r in second.responses for key in r.meta if key.startswith("_robotstxt")]


async def test_requests_that_come_after_the_scheduler_was_closed_are_told(web, tmp_path):
    site = web.site(robots(""))
    closed, ended = asyncio.Event(), asyncio.Event()

    class Late(ListSpider):
        async def start(self):
            await closed.wait()
            for n in range(3):
                yield self.prepare(Request(site.url(f"/{n}"), dont_filter=True))
            ended.set()

    async def while_closing():
        closed.set()  # the scheduler is closed before this signal
        await ended.wait()

    async def meanwhile(crawler):
        crawler.signals.connect(while_closing, signals.spider_closed, weak=False)
        close(crawler)

    result = await crawl(settings={"JOBDIR": str(tmp_path)}, meanwhile=meanwhile, spidercls=Late)
    assert result.messages(logging.WARNING) == [
        f"<GET {site.url(f'/{n}')}> came after the queue was closed, and is not stored in JOBDIR"
        for n in range(3)
    ]
    assert result.stats["scheduler/unserializable"] == 3
    assert (await crawl(settings={"JOBDIR": str(tmp_path)})).fetched == []


@pytest.mark.parametrize("dead", [answer(503), HANGS], ids=["failing", "hanging"])
async def test_a_spider_that_is_fed_when_it_is_idle_does_not_wait_for_unreachable_origins(
    web, dead
):
    """As with Scrapy, it is told each time that the crawl is idle again."""
    unreachable, healthy = web.site(answer(503), dead), web.site(robots(RULES))
    left = [healthy.url(f"/{n}") for n in range(20)]

    def idle(spider):
        if len(unreachable.robots_requests) > 1 and left:
            spider.crawler.engine.crawl(spider.prepare(left.pop()))
        raise DontCloseSpider

    async def meanwhile(crawler):
        await until(lambda: len(unreachable.robots_requests) > 1)
        crawler.engine.crawl(crawler.spider.prepare(left.pop()))
        await until(lambda: len(healthy.targets) == 20)
        close(crawler)

    result = await crawl(
        unreachable.url("/1"),
        settings={**DEFER, "REP_DEFER_TIMEOUT": LONG, "REP_TIMEOUT": LONG},
        opened=hearing(signals.spider_idle, idle),
        meanwhile=meanwhile,
    )
    assert sorted(healthy.targets) == sorted(f"/{n}" for n in range(20))
    assert unreachable.targets == []
    assert result.stats["robotstxt/deferred_waiting"] == 1


# Past the scheduler.


@pytest.mark.parametrize(("seconds", "fetched"), [(2, True), (62, False)])
async def test_a_direct_download_waits_for_the_next_try_if_that_is_soon(web, seconds, fetched):
    front, recovers = web.site(robots("")), web.site(answer(503), robots(""))
    settings = {**DEFER, "REP_RETRY_DELAY": seconds, "REP_RETRY_DELAY_MAX": seconds}
    media = {"media": [recovers.url("/1")]}
    result = await crawl(front.url("/"), settings=settings, spidercls=Downloads, **media)
    assert [hasattr(end, "status") for end in result.ends] == [fetched]
    assert "robotstxt/deferred" not in result.stats


@pytest.mark.parametrize("job", [True, False])
async def test_a_direct_download_waits_for_its_lookup_also_as_the_crawl_closes(web, tmp_path, job):
    front, other = web.site(robots("")), web.site(held(robots("")))
    settings = {"JOBDIR": str(tmp_path) if job else None}
    media = {"media": [other.url("/1"), other.url("/2")], "spidercls": Downloads}
    beside = releasing_as_it_closes(lambda _: other.robots_requests, other)
    result = await crawl(front.url("/"), settings=settings, meanwhile=beside, **media)
    assert [end.status for end in result.ends] == [200, 200]


@pytest.mark.parametrize(
    ("refusal", "probe", "closes_at"),
    [
        (held(answer(429, headers={"Retry-After": "3"})), answer(), "/1"),
        (answer(429, headers={"Retry-After": "1"}), [["wait", 1.5], *answer()], "/2"),
    ],
    ids=["in a slot", "behind the probe"],
)
async def test_a_direct_download_waits_for_a_pause_also_as_the_crawl_closes(
    web, refusal, probe, closes_at
):
    paths = {"/1": [refusal], "/2": [probe]}
    front, other = web.site(robots("")), web.site(robots(""), host="127.0.0.2", paths=paths)
    settings = {"RETRY_ENABLED": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    media = {"media": [other.url(f"/{number}") for number in range(1, 5)], "spidercls": Downloads}
    beside = releasing_as_it_closes(lambda _: closes_at in other.targets, other)
    result = await crawl(front.url("/"), settings=settings, meanwhile=beside, **media)
    assert [end.status for end in result.ends] == [429, 200, 200, 200]


@pytest.mark.parametrize("limit", ["soon", -1])
@pytest.mark.filterwarnings("ignore:.*download_timeout:scrapy.exceptions.ScrapyDeprecationWarning")
async def test_a_time_limit_that_is_none_closes_no_site(web, limit):
    class Spider(ListSpider):
        download_timeout = limit

    page = Request(web.site(robots("")).url("/"), meta={"download_timeout": 60})
    assert (await crawl(page, spidercls=Spider)).fetched == [page.url]
