"""Many wait for one robots.txt: each gets the answer, nobody waits for ever, nothing gets out.

These are crawls with another queue than ours, where requests wait in the middleware; and downloads
of components (``download_async``) that wait there for the delay of a site.
"""

import pytest
from scrapy import Request, signals

from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.unknown_origins import UnknownOrigins
from scrapy_rep.decision.decider import Decider
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.protocol.parser import RobotsTxt
from tests.crawling.crawl import SCRAPYS_QUEUE, Downloads, hearing, releasing_when, stat
from tests.crawling.crawl import crawl as crawl_with
from tests.crawling.web import held, robots
from tests.waiting import until


def crawl(*requests, settings=None, **kwargs):
    return crawl_with(*requests, settings={**SCRAPYS_QUEUE, **(settings or {})}, **kwargs)


async def test_waiters_with_other_tokens_get_their_own_rules(web):
    site = web.site(held(robots("User-agent: a\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n")))
    pages = [
        Request(site.url(f"/{path}?{agent}"), headers={"User-Agent": f"{agent}/1"})
        for agent in "abc"
        for path in "abc"
    ]

    def all_wait(crawler):
        return stat(crawler, "robotstxt/waited") >= len(pages)

    result = await crawl(*pages, meanwhile=releasing_when(all_wait, site))
    assert sorted(result.dropped) == [site.url("/a?a"), site.url("/b?b")]
    assert len(site.robots_requests) == 1


def boom(*args, **kwargs):
    raise RuntimeError("boom")


async def async_boom(*args, **kwargs):
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (RobotsTxt, "parse", boom),
        (RobotsTxt, "rules_for", boom),
        (Fetcher, "fetch", async_boom),
        (Fetcher, "_follow_redirects", async_boom),
        ("scrapy_rep.decision.decider", "split_url", boom),
        ("scrapy_rep.cache.cache", "Entry", boom),
        ("scrapy_rep.protocol.access_policy.Policy", "access", boom),
        ("scrapy_rep.decision.request_tokens.ProductTokens", "of_request", boom),
    ],
)
async def test_an_error_of_ours_lets_nothing_out(web, monkeypatch, owner, name, error):
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{name}", error)
    else:
        monkeypatch.setattr(owner, name, error)
    site = web.site(robots(""))
    one_by_one = {"CONCURRENT_REQUESTS": 1}
    result = await crawl(*(site.url(path) for path in ("/1", "/2", "/3")), settings=one_by_one)
    assert site.targets == []
    assert len(site.robots_requests) <= 1
    assert set(result.dropped.values()) == {"error"}
    assert len(result.failures) == 3
    assert result.stats["finish_reason"] == "finished"
    assert [text for text in result.messages(40) if text.startswith("Error while ")]


@pytest.mark.parametrize(
    ("owner", "name", "begin"),
    [
        (Admission, "admit", "Error while checking "),
        (UnknownOrigins, "hold", "Error while checking "),
        (Decider, "origin_governing", "Error while asking what governs <GET "),
    ],
)
async def test_after_an_error_in_the_queue_the_middleware_decides(
    web, monkeypatch, owner, name, begin
):
    monkeypatch.setattr(owner, name, boom)
    site = web.site(robots("User-agent: *\nDisallow: /private"))
    result = await crawl_with(site.url("/1"), site.url("/private"), site.url("/3"))
    assert sorted(site.targets) == ["/1", "/3"]
    assert list(result.dropped.values()) == ["rule"]
    assert result.stats["robotstxt/queue/error_count"] >= 1
    assert [text for text in result.messages(40) if text.startswith(begin)]


async def test_an_error_in_a_handler_of_robots_parsed_harms_nobody(web):
    site = web.site(robots("User-agent: *\nDisallow: /private"))
    opened = hearing(signals.robots_parsed, boom)
    result = await crawl(site.url("/1"), site.url("/private"), opened=opened)
    assert site.targets == ["/1"]
    assert list(result.dropped.values()) == ["rule"]


async def test_rules_that_memory_has_no_room_for_are_read_again(web, monkeypatch, tmp_path):
    monkeypatch.setattr("scrapy_rep.downloadermiddlewares.waits._MOST_UNCOUNTED", 0)
    sites = [web.site(robots("User-agent: *\nDisallow: /4")) for _ in range(2)]
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite", "CONCURRENT_REQUESTS": 1}
    urls = [site.url(f"/{number}") for number in range(5) for site in sites]
    result = await crawl(*urls, settings={**settings, "REP_MEMORY_MAX_BYTES": 1})
    assert [len(site.robots_requests) for site in sites] == [1, 1]
    assert sorted(result.dropped) == sorted(site.url("/4") for site in sites)
    assert result.stats["robotstxt/memory/misses"] == result.stats["robotstxt/store/found"] >= 3
    assert "robotstxt/memory/misses" not in (await crawl(*urls, settings=settings)).stats


DELAY = "User-agent: *\nCrawl-delay: 0.2\n"


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_robots_txt_that_changes_while_they_wait_is_obeyed(web, allowed):
    site = web.site(robots(DELAY))

    async def change(crawler):
        await until(lambda: site.targets)
        site.change(robots(DELAY if allowed else f"{DELAY}Disallow: /media\n"))

    result = await crawl_with(
        site.url("/"),
        settings={"REP_CACHE_TTL": 0.5, "REP_CACHE_TTL_MIN": 0},
        spidercls=Downloads,
        meanwhile=change,
        media=[site.url(f"/media/{n}") for n in range(8)],
    )
    assert len(result.ends) == 8
    # Until the one that was fetched first has expired, they may be sent.
    dropped = [end for end in result.ends if hasattr(end, "verdict")]
    assert len(site.targets) == 1 + 8 - len(dropped)
    assert (len(dropped) >= 4) is not allowed
    assert len(site.robots_requests) > 1
