"""Crawl-delay and Request-rate, in real crawls."""

import logging
from itertools import pairwise
from time import monotonic

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse

from scrapy_rep.utils import download_slots
from scrapy_rep.utils.scrapy_internals import wrap_downloads
from tests.crawling.crawl import SCRAPYS_QUEUE, OfCrawler, crawl
from tests.crawling.web import robots


def asks(*lines):
    return robots("\n".join(("User-agent: *", *lines, "")))


async def watched(*urls, settings=None, opened=None, only="", **kwargs):
    """Crawl, and note when each page, ``only`` of one site, is handed to its download handler.

    How long it takes from there to the site, on a machine that is busy, is nobody's business.
    """
    begun = []

    async def note(request, download):
        if request.url.startswith(only) and not request.url.endswith("/robots.txt"):
            begun.append(monotonic())
        return await download(request)

    def wrap(crawler):
        assert wrap_downloads(crawler, note)
        if opened is not None:
            opened(crawler)

    settings = {"RANDOMIZE_DOWNLOAD_DELAY": True, **(settings or {})}
    result = await crawl(*urls, settings=settings, opened=wrap, **kwargs)
    result.begun = begun
    result.gaps = [later - sooner for sooner, later in pairwise(begun)]
    return result


def told(result):
    return [line for line in result.messages(logging.INFO) if " asks for " in line]


pytestmark = pytest.mark.filterwarnings("ignore:The RANDOMIZE_DOWNLOAD_DELAY setting")


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("Crawl-delay: 0.4", None),
        ("Request-rate: 5/2s", None),
        ("Crawl-delay: 0.4", "scrapy.core.downloader.Slot.queue"),
    ],
)
@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
async def test_pages_are_as_far_apart_as_the_site_asks(web, monkeypatch, line, missing, queue):
    """Also where the attributes of download slots are not known."""
    monkeypatch.setattr(download_slots, "_missing_slot_attribute", lambda: missing)
    site = web.site(asks(line))
    result = await watched(*(site.url(f"/{n}") for n in range(5)), settings=queue)
    assert len(site.targets) == 5
    assert min(result.gaps) > 0.38
    field, value = line.lower().split(": ")
    assert told(result) == [
        f"robots.txt of {site.url('')} asks for 0.4 s between two requests "
        f"({field}: {value}, line 2): the delay is 0.4 s"
    ]
    assert result.stats["robotstxt/crawl_delay"] == 1


@pytest.mark.parametrize("order", [50, 600])
@pytest.mark.parametrize("drops", [False, True])
async def test_pages_that_another_middleware_ends_take_no_turns(web, order, drops):
    class Ends:
        def process_request(self, request):
            if request.url.endswith("/robots.txt"):
                return None
            if drops:
                raise IgnoreRequest
            return HtmlResponse(request.url, body=b"words", request=request, flags=["cached"])

    site = web.site(asks("Crawl-delay: 300"))
    urls = (site.url(f"/{number}") for number in range(6))
    result = await crawl(*urls, settings={"DOWNLOADER_MIDDLEWARES": {Ends: order}})
    assert len(result.failures if drops else result.responses) == 6
    assert site.targets == []


async def test_pages_that_another_middleware_fetches_keep_the_delay(web):
    """As with a browser: it may have sent what it answers."""
    fetched = []

    class Fetches:
        def process_request(self, request):
            if request.url.endswith("/robots.txt"):
                return None
            fetched.append(monotonic())
            return HtmlResponse(request.url, body=b"words", request=request)

    site = web.site(asks("Crawl-delay: 0.4"))
    urls = (site.url(f"/{number}") for number in range(4))
    await crawl(*urls, settings={"DOWNLOADER_MIDDLEWARES": {Fetches: 600}})
    assert len(fetched) == 4
    assert min(later - sooner for sooner, later in pairwise(fetched)) > 0.38


@pytest.mark.parametrize(
    ("line", "settings", "delay", "what"),
    [
        ("Crawl-delay: 500", {"REP_CRAWL_DELAY_MAX": 0.2}, 0.2, "the delay is 0.2 s (REP_CRAWL_DELAY_MAX)"),
        ("Crawl-delay: 500", {"REP_CRAWL_DELAY_MAX": 0.2, "DOWNLOAD_DELAY": 0.3}, 0.2, "the delay is 0.3 s"),
        ("Crawl-delay: 0.1", {"DOWNLOAD_DELAY": 0.3}, 0.2, "the delay is 0.3 s"),
        ("Crawl-delay: 0.1", {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.3}, 0.1, "the delay is 0.3 s"),
        ("Crawl-delay: 9", {"REP_CRAWL_DELAY_MAX": 0}, 0, None),
        ("Crawl-delay: 9", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.1}}}, 0.05, "the delay in DOWNLOAD_SLOTS['127.0.0.1'] is used"),
        ("Crawl-delay: 0.2", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 2}}}, 0.2, "the delay is 0.2 s"),
        ("Crawl-delay: -9", {}, 0, None),
        ("Crawl-delay: inf", {}, 0, None),
        ("Crawl-delay: 99999999999999", {}, 0, None),
    ],
)  # fmt: skip
async def test_what_is_taken_of_what_is_asked(web, line, settings, delay, what):
    site = web.site(asks(line))
    result = await watched(*(site.url(f"/{n}") for n in range(3)), settings=settings)
    assert min(result.gaps, default=0) >= 0.95 * delay
    if what:
        assert [text.rpartition(": ")[2] for text in told(result)] == [what]
    capped = int(settings.get("REP_CRAWL_DELAY_MAX", 0) > 0)
    assert result.stats.get("robotstxt/crawl_delay_capped", 0) == capped


@pytest.mark.usefixtures("just_started")
@pytest.mark.parametrize("store", ["memory://", "sqlite:///robots.sqlite"])
async def test_the_first_page_does_not_wait_on_a_machine_that_was_just_started(
    web, store, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    site = web.site(asks("Crawl-delay: 100"))
    settings = {"REP_CRAWL_DELAY_MAX": 100, "REP_STORE": store}
    start = monotonic()
    assert (await watched(site.url("/a"), settings=settings)).begun[0] - start < 100


async def test_a_site_that_asks_for_less_gets_less(web, clock):
    delays = ("0.5", "0.5", "0.1", "x")
    site = web.site(*(asks(f"Crawl-delay: {delay}") for delay in delays))

    def then(response):
        if response.url in {site.url("/1"), site.url("/2"), site.url("/5")}:
            clock.advance(3600)
        number = int(response.url.rpartition("/")[2])
        return [site.url(f"/{number + 1}")] if number < 8 else []

    settings = {"REP_CACHE_TTL_MIN": 0, "REP_CACHE_TTL": 3600}
    result = await watched(site.url("/0"), settings=settings, then=then)
    assert len(site.robots_requests) == len(delays)
    # The clock moves between the others.
    assert result.gaps[0] > 0.48
    assert min(result.gaps[3:5]) > 0.09
    assert [text.rpartition(": ")[2] for text in told(result)] == [
        "the delay is 0.5 s",
        "the delay is 0.1 s",
    ]


@pytest.mark.parametrize(
    ("seconds", "level", "end"),
    [(29, "INFO", ""), (30, "WARNING", ", at most 120 requests per hour")],
)
async def test_a_delay_of_half_a_minute_is_a_warning(web, seconds, level, end):
    result = await crawl(web.site(asks(f"Crawl-delay: {seconds}")).url("/"))
    (line,) = [each for each in result.records if " asks for " in each.getMessage()]
    assert line.levelname == level
    assert line.getMessage().endswith(f": the delay is {seconds} s{end}")


async def test_a_page_whose_middleware_sends_another_each_time_does_not_go_round(web):
    """The page is given back once, and then waits for its turn after the other."""
    site = web.site(asks("Crawl-delay: 2.2"))

    class Token(OfCrawler):
        async def process_request(self, request):
            if request.url == site.url("/page"):
                await self.crawler.engine.download_async(Request(site.url("/token")))

    settings = {"DOWNLOADER_MIDDLEWARES": {Token: 543}, "CLOSESPIDER_TIMEOUT": 30}
    result = await watched(site.url("/page"), settings=settings)
    assert result.fetched == [site.url("/page")]
    assert site.targets == ["/token", "/token", "/page"]
    assert min(result.gaps) >= 2.2
