"""Crawl-delay and Request-rate in real crawls."""

from __future__ import annotations

import logging
from itertools import pairwise
from types import SimpleNamespace

import pytest
import pytest_twisted
from scrapy import signals
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Request

from scrapy_rep.utils.scrapy_internals import keep_apart
from tests.crawling.crawl import SCRAPYS_QUEUE, ListSpider, crawl
from tests.crawling.web import robots


def asks(*lines):
    return robots("\n".join(("User-agent: *", *lines, "")))


class Watches(ListSpider):
    """Notes the delay of the slot at each page, and when the last download of it was begun.

    The downloader's own times: how long they take to the site, on a machine that is busy, is
    nobody's business.
    """

    def parse(self, response):
        slot = self.crawler.engine.downloader.slots[response.meta["download_slot"]]
        self.delays.append(slot.delay)
        self.begun.append(slot.lastseen)
        self.drawn.update(slot.download_delay() for _ in range(20))
        return super().parse(response)


async def watched(*urls, settings=None, **kwargs):
    delays, begun, drawn = [], [], set()
    result = await crawl(
        *urls,
        settings={"RANDOMIZE_DOWNLOAD_DELAY": True, **(settings or {})},
        spidercls=Watches,
        delays=delays,
        begun=begun,
        drawn=drawn,
        **kwargs,
    )
    result.drawn = drawn
    result.gaps = [later - sooner for sooner, later in pairwise(sorted(set(begun)))]
    return result, delays


def told(result):
    return [line for line in result.messages(logging.INFO) if " asks for " in line]


pytestmark = pytest.mark.filterwarnings("ignore:The RANDOMIZE_DOWNLOAD_DELAY setting")


@pytest.mark.parametrize("line", ["Crawl-delay: 0.4", "Request-rate: 5/2s"])
@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
@pytest_twisted.ensureDeferred
async def test_pages_are_as_far_apart_as_the_site_asks(web, line, queue):
    site = web.site(asks(line))
    result, delays = await watched(*(site.url(f"/{n}") for n in range(5)), settings=queue)
    assert len(site.targets) == 5
    assert delays == [0.4] * 5
    assert result.drawn == {0.4}, "with Scrapy's random part it would be 0.2 now and then"
    assert min(result.gaps) > 0.39
    field, value = line.lower().split(": ")
    assert told(result) == [
        f"robots.txt of {site.url('')} asks for 0.4 s between two requests "
        f"({field}: {value}, line 2): 0.4 s are taken"
    ]
    assert result.stats["robotstxt/crawl_delay"] == 1


@pytest.mark.parametrize(
    ("line", "settings", "delay", "what"),
    [
        ("Crawl-delay: 500", {"REP_CRAWL_DELAY_MAX": 0.2}, 0.2, "0.2 s are taken, REP_CRAWL_DELAY_MAX"),
        ("Crawl-delay: 0.1", {"DOWNLOAD_DELAY": 0.3}, 0.3, None),
        ("Crawl-delay: 9", {"REP_CRAWL_DELAY": False}, 0, None),
        ("Crawl-delay: 9", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.1}}}, 0.1, "the delay of DOWNLOAD_SLOTS['127.0.0.1'] stands"),
        ("Crawl-delay: 0.2", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 2}}}, 0.2, "0.2 s are taken"),
        ("Crawl-delay: -9", {}, 0, None),
        ("Crawl-delay: inf", {}, 0, None),
        ("Crawl-delay: 99999999999999", {}, 0, None),
    ],
)  # fmt: skip
@pytest_twisted.ensureDeferred
async def test_what_is_taken_of_what_is_asked(web, line, settings, delay, what):
    site = web.site(asks(line))
    result, delays = await watched(*(site.url(f"/{n}") for n in range(3)), settings=settings)
    assert delays == [delay] * 3
    if what:
        assert [text.rpartition(": ")[2] for text in told(result)] == [what]
    capped = int("REP_CRAWL_DELAY_MAX" in settings)
    assert result.stats.get("robotstxt/crawl_delay_capped", 0) == capped


class QuickSite(AutoThrottle):
    """AutoThrottle that finds every site quick, however busy the machine is."""

    def _adjust_delay(self, slot, latency, response):
        super()._adjust_delay(slot, 0.001, response)


@pytest_twisted.ensureDeferred
async def test_autothrottle_comes_not_below(web):
    site = web.site(asks("Crawl-delay: 0.3"))
    extensions = {"scrapy.extensions.throttle.AutoThrottle": None, QuickSite: 0}
    settings = {
        "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_START_DELAY": 0.35,
        "EXTENSIONS": extensions,
    }
    result, delays = await watched(*(site.url(f"/{n}") for n in range(5)), settings=settings)
    assert min(delays) >= 0.3
    assert delays[-1] == pytest.approx(0.3)
    assert min(result.gaps) > 0.29


@pytest_twisted.ensureDeferred
async def test_several_origins_of_a_slot_get_the_longest(web):
    sites = [web.site(asks("Crawl-delay: 0.1")), web.site(asks("Crawl-delay: 0.4"))]
    urls = [site.url(f"/{n}") for n in range(3) for site in sites]
    result, delays = await watched(*urls, settings={"CONCURRENT_REQUESTS": 1})
    assert delays[-1] == 0.4
    assert min(result.gaps[2:]) > 0.39


@pytest_twisted.ensureDeferred
async def test_a_site_that_asks_for_less_gets_less(web, clock):
    site = web.site(asks("Crawl-delay: 0.5"), asks("Crawl-delay: 0.1"), asks("Crawl-delay: x"))

    def then(response):
        if response.url in {site.url("/2"), site.url("/5")}:
            clock.advance(3600)
        number = int(response.url.rpartition("/")[2])
        return [site.url(f"/{number + 1}")] if number < 8 else []

    settings = {"REP_CACHE_TTL_MIN": 0, "REP_CACHE_TTL": 3600, "DOWNLOAD_DELAY": 0.05}
    result, delays = await watched(site.url("/0"), settings=settings, then=then)
    assert delays == [0.5] * 3 + [0.1] * 3 + [0.05] * 3
    assert len(told(result)) == 2


@pytest_twisted.ensureDeferred
async def test_the_delay_is_set_again_for_a_slot_that_was_forgotten(web):
    site = web.site(asks("Crawl-delay: 0.1"))

    delays = []

    class Forgets(ListSpider):
        def parse(self, response):
            self.crawler.engine.downloader._slot_gc(age=-60)
            return super().parse(response)

    def opened(crawler):
        def downloaded(request):
            slot = crawler.engine.downloader.slots.get(request.meta["download_slot"])
            if request.url.startswith(site.url("/page")):
                delays.append(slot.delay)

        crawler.downloaded = downloaded
        crawler.signals.connect(downloaded, signals.response_downloaded)

    await crawl(
        *(site.url(f"/page{n}") for n in range(3)),
        settings={"CONCURRENT_REQUESTS": 1},
        spidercls=Forgets,
        opened=opened,
    )
    assert delays == [0.1] * 3


@pytest_twisted.ensureDeferred
async def test_a_slow_site_holds_up_no_other(web):
    """Its requests wait in the scheduler, not in the few places of the downloader."""
    slow = web.site(asks("Crawl-delay: 0.5"))
    quick = web.site(robots(""), host="127.0.0.2")
    places = []

    class Chain(ListSpider):
        def parse(self, response):
            self.crawl.responses.append(response)
            downloader = self.crawler.engine.downloader
            taken = [slow.url("/") in request.url for request in downloader.active]
            places.append(sum(taken))
            if response.url == slow.url("/0"):  # its rules are known
                for path in range(1, 5):
                    yield self.prepare(Request(slow.url(f"/{path}")))
                yield self.prepare(Request(quick.url("/0")))
            if response.url.startswith(quick.url("/")):
                number = int(response.url.rpartition("/")[2])
                if number < 15:
                    yield self.prepare(Request(quick.url(f"/{number + 1}")))

    result = await crawl(
        slow.url("/0"),
        settings={"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 2},
        spidercls=Chain,
    )
    assert len(result.responses) == 21
    # Of the four places it has as many as it may have requests at a time.
    assert max(places) <= 2


@pytest.mark.parametrize(
    ("delay", "jitter", "seconds", "delay_then", "jitter_then"),
    [
        (0, 0.5, 2, 2, 0),
        (5, 0.5, 2, 5, 0.5),
        (3, 0.5, 2, 3, 0),
        (2, 0.0, 2, 2, 0),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_no_delay_is_lowered_and_no_chance_undercuts(  # noqa: PLR0917 - of the table
    old, delay, jitter, seconds, delay_then, jitter_then
):
    if old:  # as in Scrapy before 2.19
        slot = SimpleNamespace(delay=delay, randomize_delay=bool(jitter))
    else:
        slot = SimpleNamespace(delay=delay, jitter=jitter)
    keep_apart(slot, seconds)
    assert slot.delay == delay_then
    if old:
        assert slot.randomize_delay == bool(jitter_then)
    else:
        assert slot.jitter == jitter_then
