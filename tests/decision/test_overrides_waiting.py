"""REP_OVERRIDES where requests wait: in the queue, deferred, on disk, and in the middleware."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from scrapy import Request

from tests.crawling.crawl import SCRAPYS_QUEUE, ListSpider, close, crawl, releasing_when, stat
from tests.crawling.web import HANGS, answer, held, robots
from tests.decision.test_overrides import overridden, override
from tests.scheduler.test_broad import DEFER
from tests.test_signals import Ear
from tests.waiting import until

RULES = "User-agent: *\nDisallow: /private\n\nUser-agent: partner\nDisallow: /partner\n"
AS_PARTNER = overridden(override("agent", agent="partner"))
QUEUES = pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "scrapys"])


@pytest.mark.parametrize(("policy", "fetched"), [("ignore", 3), ("disallow", 0), ("file", 2)])
async def test_what_an_override_decides_is_not_deferred(web, tmp_path, policy, fetched):
    (tmp_path / "rules").write_text("User-agent: *\nDisallow: /private\n")
    site = web.site(answer(503))
    path = {"path": str(tmp_path / "rules")} if policy == "file" else {}
    result = await crawl(
        *(site.url(path) for path in ("/1", "/2", "/private")),
        settings={**DEFER, **overridden(override(policy, **path))},
    )
    assert len(result.fetched) == fetched
    assert len(result.failures) == 3 - fetched
    assert site.robots_requests == []
    assert "robotstxt/deferred" not in result.stats
    assert result.stats[f"robotstxt/override_count/{policy}"] == 3


async def test_other_sites_are_deferred_beside_an_override(web):
    ours, theirs = web.site(answer(503)), web.site(answer(503), robots(RULES), host="127.0.0.2")
    result = await crawl(
        *(site.url(path) for site in (ours, theirs) for path in ("/1", "/private")),
        settings={**DEFER, **overridden(override("ignore"))},
    )
    assert sorted(ours.targets) == ["/1", "/private"]
    assert theirs.targets == ["/1"]
    assert result.dropped == {theirs.url("/private"): "rule"}
    assert result.stats["robotstxt/deferred"] == 2


@QUEUES
async def test_another_agent_waits_as_all_do_and_each_request_is_told_of_once(web, queue):
    site = web.site(held(answer(503)), robots(RULES))
    ear = Ear("robotstxt_verdict")
    paths = ["/1", "/private", "/partner"] + [f"/more/{number}" for number in range(9)]

    def all_wait(crawler):
        return stat(crawler, "scheduler/enqueued") >= len(paths)

    settings = {**DEFER, **queue, **AS_PARTNER, "CONCURRENT_REQUESTS": 4}
    urls = map(site.url, paths)
    at_last = releasing_when(all_wait, site)
    result = await crawl(*urls, meanwhile=at_last, settings=settings, opened=ear.listen)
    told = [what["request"].url for _, what in ear.heard if what["decision"].override]
    assert sorted(told) == sorted(site.url(path) for path in paths)
    assert result.stats["robotstxt/override_count/agent"] == len(paths)
    if queue:
        # Only our queue can defer.
        assert set(result.dropped.values()) <= {"unreachable", "rule"}
        assert "/partner" not in site.targets
        return
    assert sorted(site.targets) == sorted(set(paths) - {"/partner"})
    assert result.dropped == {site.url("/partner"): "rule"}
    assert len(site.robots_requests) == 2
    # Its rules were looked for by the name that the override gives.
    assert "robotstxt/waited" not in result.stats


async def test_another_agent_is_dropped_when_deferring_is_over(web):
    site = web.site(answer(503))
    result = await crawl(site.url("/1"), settings={**DEFER, **AS_PARTNER, "REP_DEFER_TIMEOUT": 1})
    assert result.dropped == {site.url("/1"): "unreachable"}
    assert result.stats["robotstxt/deferred_dropped"] == 1
    assert result.stats["robotstxt/override_count/agent"] == 1
    assert site.targets == []


async def test_an_override_that_ends_leaves_nothing_open_in_the_queue(web, clock):
    site = web.site(answer(503), robots(RULES), paths={"/slow": [held(answer(200))]})
    until_then = datetime.fromtimestamp(clock.time() + 3600, timezone.utc)
    urls = [site.url(path) for path in ("/1", "/private", "/private/2")]

    async def meanwhile(crawler):
        await until(lambda: site.targets)
        await until(lambda: stat(crawler, "scheduler/enqueued") >= 1 + len(urls))
        clock.advance(3600)
        site.release()

    settings = {
        **DEFER,
        **overridden(override("ignore", until=until_then)),
        "CONCURRENT_REQUESTS": 1,
    }
    slow = Request(site.url("/slow"), priority=1)
    result = await crawl(slow, *urls, meanwhile=meanwhile, settings=settings)
    # Whatever left the queue before the end, it was one request.
    assert sorted(site.targets) == ["/1", "/slow"]
    assert result.dropped == dict.fromkeys(urls[1:], "rule")


async def closed_when(condition, *requests, settings, site):
    async def meanwhile(crawler):
        await until(lambda: condition(crawler))
        close(crawler)
        site.release()

    return await crawl(*requests, settings=settings, meanwhile=meanwhile)


@pytest.mark.parametrize("robotstxt", [answer(503), HANGS], ids=["unreachable", "hangs"])
async def test_an_override_opens_what_an_earlier_crawl_left_waiting(web, tmp_path, robotstxt):
    site = web.site(robotstxt)
    long = dict.fromkeys(["REP_RETRY_DELAY", "REP_RETRY_DELAY_MAX", "REP_DEFER_TIMEOUT"], 3600)
    settings = {**DEFER, **long, "JOBDIR": str(tmp_path)}
    urls = [site.url(path) for path in ("/1", "/private")]

    other = web.site(answer(404), host="127.0.0.2", paths={"/slow": [held(answer(200))]})

    def waiting(crawler):
        deferred = robotstxt is HANGS or stat(crawler, "robotstxt/outcome_count/unreachable")
        return (
            deferred
            and site.robots_requests
            and stat(crawler, "scheduler/enqueued") >= 3
            and other.targets
        )

    # With nothing else left to do, what is unreachable for so long would be dropped.
    slow = Request(other.url("/slow"), priority=1)
    first = await closed_when(waiting, slow, *urls, settings=settings, site=other)
    assert first.failures == []
    assert first.stats["scheduler/dequeued"] == 1
    asked = len(site.robots_requests)
    second = await crawl(settings={**settings, **overridden(override("ignore"))})
    assert sorted(site.targets) == ["/1", "/private"]
    assert second.stats["robotstxt/override_count/ignore"] == 2
    # Such a site is asked for nothing.
    assert len(site.robots_requests) == asked


async def test_without_its_override_what_an_earlier_crawl_left_is_obeyed(web, tmp_path):
    site = web.site(robots(RULES), paths={"/slow": [held(answer(200))]})
    settings = {**DEFER, "JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS": 1}
    urls = [site.url(path) for path in ("/1", "/private")]

    def slow(crawler):
        return site.targets and stat(crawler, "scheduler/enqueued") >= 3

    first = await closed_when(
        slow,
        Request(site.url("/slow"), priority=1),
        *urls,
        settings={**settings, **overridden(override("ignore"))},
        site=site,
    )
    assert first.failures == []
    assert site.targets == ["/slow"]
    second = await crawl(settings=settings)
    assert site.targets == ["/slow", "/1"]
    assert second.dropped == {urls[1]: "rule"}


async def test_a_redirect_into_an_overridden_host_goes_by_the_override(web):
    target = web.site(answer(503), host="127.0.0.2")
    moved = answer(302, headers={"Location": target.url("/private")})
    site = web.site(robots(RULES), paths={"/moved": [moved]})
    spider = type("Spider", (ListSpider,), {"handle_httpstatus_all": False})
    result = await crawl(
        Request(site.url("/moved")),
        settings={**DEFER, **overridden(override("ignore", target.host))},
        spidercls=spider,
    )
    assert site.targets == ["/moved"]
    assert result.failures == []
