"""tdmrep.json in crawls: asked for once per origin, before the pages that it speaks of."""

import json
import logging
import sqlite3
from contextlib import closing

import pytest
import scrapy
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep import Robots, RobotsUsageDisallowed
from tests.crawling.crawl import SCRAPYS_QUEUE, ListSpider, closing_when, crawl, releasing_when
from tests.crawling.process import CrawlProcess
from tests.crawling.web import HANGS, PAGE, answer, gzipped, held, redirect, robots
from tests.downloadermiddlewares.test_modes import MODES
from tests.test_signals import Ear
from tests.waiting import until

TDMREP = "/.well-known/tdmrep.json"
SETTINGS = {
    "REP_PURPOSES": "tdm",
    "REP_USAGE_ACTION": "drop",
    "REP_USAGE_SOURCES": "content-usage, tags, tdmrep",
}
QUEUES = pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])


def reserved(*locations, value=1):
    return json.dumps([{"location": each, "tdm-reservation": value} for each in locations])


def file(*locations, **more):
    return answer(200, reserved(*locations, **more), headers={"Content-Type": "application/json"})


def site_of(web, *answers, rules="", **more):
    paths = {TDMREP: list(answers), **more.pop("paths", {})}
    return web.site(robots(f"User-agent: *\n{rules}"), paths=paths, **more)


def asked(site):
    return site.targets.count(TDMREP)


def pages(site):
    return {target for target in site.targets if target != TDMREP}


def in_store(path, table):
    with closing(sqlite3.connect(path)) as connection:
        return {origin for (origin,) in connection.execute(f"SELECT origin FROM {table}")}


def said(response):
    return response.meta["robotstxt"]["usage"]


def raws(usage):
    return [(s["source"], s["value"], s["raw"]) for s in usage["statements"]]


@QUEUES
async def test_it_is_asked_for_once_and_decides_before_the_request(web, queue):
    site = site_of(web, file("/no"))
    urls = [site.url(path) for path in ("/a", "/no/1", "/b", "/no/2", "/c")]
    result = await crawl(*urls, settings={**SETTINGS, **queue})
    assert asked(site) == 1
    assert pages(site) == {"/a", "/b", "/c"}
    assert result.dropped == {site.url("/no/1"): "usage", site.url("/no/2"): "usage"}
    error = result.failures[0].value
    assert isinstance(error, RobotsUsageDisallowed)
    assert error.results == {"tdm": "disallow"}
    assert str(error) == (f"Forbidden by usage preferences in {site.url(TDMREP)}: tdm: disallow")
    cause = f"usage preferences in {site.url(TDMREP)}: tdm: disallow"
    assert f"Forbidden by {cause}: <GET {site.url('/no/1')}>" in result.messages(logging.INFO)
    (summary,) = [text for text in result.messages() if text.startswith("Requests dropped")]
    assert summary == f"Requests dropped because of robots.txt: 2\n       2  {cause}"
    # Evidence finds the file of the rules by it.
    assert error.verdict.robotstxt_url == site.url("/robots.txt")
    (statement,) = error.usage.statements
    assert (statement.place, statement.label) == ("tdmrep.json", "tdm-reservation")
    assert said(result.responses[0])["results"] == {"tdm": "unknown"}
    assert result.stats["robotstxt/request_count"] == 1
    assert result.stats["robotstxt/tdmrep_count/available"] == 1
    assert result.stats["response_received_count"] == 3


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"REP_PURPOSES": "tdm"},
        {"REP_USAGE_SOURCES": "tdmrep"},
        {"REP_PURPOSES": "tdm", "REP_USAGE_SOURCES": "content-usage,tags"},
    ],
)
async def test_without_purposes_or_the_source_it_is_not_asked_for(web, settings):
    site = site_of(web, file("/"))
    await crawl(site.url("/page"), settings=settings)
    assert site.targets == ["/page"]


@QUEUES
async def test_where_robotstxt_disallows_it_or_the_pages_it_is_not_asked_for(web, queue):
    closed = site_of(web, file("/"), rules="Disallow: /.well-known\n")
    hidden = site_of(web, file("/"), rules="Disallow: /private\n")
    urls = [closed.url("/page"), hidden.url("/private/1"), hidden.url("/private/2")]
    result = await crawl(*urls, settings={**SETTINGS, **queue})
    assert closed.targets == ["/page"]
    assert hidden.targets == []
    assert set(result.dropped.values()) == {"rule"}
    usage = said(result.responses[0])
    assert usage["results"] == {"tdm": "unknown"}
    assert raws(usage) == [("tdmrep", "unknown", "robots.txt disallows /.well-known/tdmrep.json")]


@pytest.mark.parametrize(
    ("answers", "raw"),
    [
        ([answer(503)], "status 503"),
        ([answer(403)], "status 403"),
        ([[["close"]]], "connection closed"),
        ([HANGS], "timed out after 0.2 s"),
        ([answer(200, "<p>no")], "<p>no"),
        ([redirect("/private/t")], None),
        ([redirect(TDMREP)], "more than 5 redirects"),
    ],
)
async def test_what_can_not_be_had_is_unknown(web, tmp_path, answers, raw):
    site = site_of(web, *answers, rules="Disallow: /private\nContent-Usage: search=y\n")
    raw = raw or f"redirect to a disallowed URL: {site.url('/private/t')}"
    settings = {**SETTINGS}
    if answers == [HANGS]:
        settings["REP_STORE"] = f"sqlite:///{tmp_path}/robots.sqlite"
        # Its robots.txt is known then: what is short of time is the other file alone.
        await crawl(site.url("/private"), settings={**settings, "REP_USAGE_SOURCES": "tags"})
        settings["REP_TIMEOUT"] = 0.2
    result = await crawl(site.url("/1"), site.url("/2"), settings=settings)
    assert pages(site) == {"/1", "/2"}
    for response in result.responses:
        usage = said(response)
        assert usage["results"] == {"tdm": "unknown"}
        assert ("tdmrep", "unknown", raw) in raws(usage)


@pytest.mark.parametrize("status", [404, 410])
async def test_where_there_is_none_it_is_not_used(web, status):
    site = site_of(web, answer(status))
    result = await crawl(site.url("/page"), settings=SETTINGS)
    usage = {"results": {"tdm": "unknown"}, "statements": [], "tokens": ["testbot"]}
    assert said(result.responses[0]) == usage


async def test_unreachable_it_is_tried_again_when_its_time_has_come(web, clock):
    site = site_of(web, answer(503), file("/"))
    phases = [[site.url("/1b")], clock.later(3600, site.url("/2"))]
    result = await crawl(site.url("/1"), settings=SETTINGS, phases=phases)
    assert asked(site) == 2
    assert pages(site) == {"/1", "/1b"}
    assert result.dropped == {site.url("/2"): "usage"}


@QUEUES
async def test_where_it_expires_at_once_it_is_asked_for_once_a_page_at_most(web, queue):
    site = site_of(web, file("/no"), rules="Crawl-delay: 0.1\n")
    urls = [site.url(f"/{number}") for number in range(4)]
    settings = {**SETTINGS, **queue, "REP_CACHE_TTL": 0, "REP_CACHE_TTL_MIN": 0}
    result = await crawl(*urls, settings=settings)
    assert sorted(result.fetched) == urls
    assert 1 <= asked(site) <= len(urls)


@QUEUES
@pytest.mark.parametrize("delay", ["", "Crawl-delay: 0.05\n"])
async def test_no_page_is_lost_where_it_is_used_up_by_others_of_its_lookup(web, queue, delay):
    at_once = {"Cache-Control": "max-age=0", "Content-Type": "application/json"}
    site = site_of(web, answer(200, "[]", headers=at_once), rules=delay)
    urls = [site.url(f"/{number}") for number in range(8)]
    result = await crawl(*urls, settings={**SETTINGS, **queue, "REP_CACHE_TTL_MIN": 0})
    assert sorted(result.fetched) == urls


async def test_a_page_without_purposes_does_not_wait_for_it(web):
    site = site_of(web, held(file("/no")))

    class Spider(ListSpider):
        async def start(self):
            for number, purposes in enumerate((["tdm"], [], [])):
                meta = {"robotstxt_purposes": purposes}
                yield scrapy.Request(site.url(f"/{number}"), meta=meta)

    others = releasing_when(lambda _: pages(site) == {"/1", "/2"} and asked(site), site)
    settings = {**SETTINGS, **SCRAPYS_QUEUE, "REP_PURPOSES": []}
    result = await crawl(settings=settings, spidercls=Spider, meanwhile=others)
    assert pages(site) == {"/0", "/1", "/2"}
    assert "robotstxt/store/found" not in result.stats  # this crawl has fetched them


async def test_redirects_are_followed_and_the_answer_is_read_as_robotstxt_is(web):
    end = site_of(web, gzipped(reserved("/")))
    start = site_of(web, redirect(end.url(TDMREP)))
    ask_start = [scrapy.Request(start.url("/page"))]
    result = await crawl(end.url("/page"), settings=SETTINGS, phases=[lambda: ask_start])
    assert (start.targets, end.targets) == ([TDMREP], [TDMREP] * 2)
    assert result.dropped == {end.url("/page"): "usage", start.url("/page"): "usage"}


async def test_no_redirect_leads_to_where_no_robots_txt_allows_it(web):
    other = web.site(robots("User-agent: *\nDisallow: /\n"))
    start = site_of(web, redirect(other.url("/secret.json")))
    result = await crawl(start.url("/page"), settings=SETTINGS)
    assert other.journal == []
    raw = f"redirect to a disallowed URL: {other.url('/secret.json')}"
    assert ("tdmrep", "unknown", raw) in raws(said(result.responses[0]))


@pytest.mark.parametrize("path", ["/pub/%2e%2e/private/data.json", "/priv%61te/data.json"])
async def test_a_redirect_is_judged_in_all_spellings_as_a_page_is(web, path):
    site = site_of(web, redirect(path), rules="Disallow: /private\n")
    result = await crawl(site.url("/page"), settings=SETTINGS)
    assert site.targets == [TDMREP, "/page"]
    assert result.fetched == [site.url("/page")]


async def test_what_the_site_that_it_redirects_to_reserves_is_no_matter(web):
    other = site_of(web, file("/"), paths={"/other.json": [file("/")]})
    start = site_of(web, redirect(other.url("/other.json")))
    page = scrapy.Request(other.url("/page"), meta={"robotstxt_purposes": []})
    later = scrapy.Request(start.url("/page"))
    result = await crawl(page, settings=SETTINGS, phases=[lambda: [later]])
    assert other.targets == ["/page", "/other.json"]
    assert result.dropped == {later.url: "usage"}


async def test_of_a_file_that_is_too_long_all_is_taken_to_be_reserved(web):
    site = site_of(web, file("/a", "/" + 40_000 * "x"))
    result = await crawl(site.url("/page"), settings=SETTINGS)
    assert result.dropped == {site.url("/page"): "usage"}


async def test_what_comes_later_replaces_it(web):
    paths = {"/open": [answer(200, PAGE, headers={"TDM-Reservation": "0"})]}
    site = site_of(web, file("/"), paths=paths)
    settings = {**SETTINGS, "REP_USAGE_ACTION": "record"}
    result = await crawl(site.url("/open"), site.url("/page"), settings=settings)
    results = {r.url: said(r)["results"]["tdm"] for r in result.responses}
    assert results == {site.url("/open"): "allow", site.url("/page"): "disallow"}


async def test_the_next_crawl_has_it_from_the_store(web, tmp_path):
    site = site_of(web, file("/"))
    settings = {**SETTINGS, "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    for _ in range(2):
        result = await crawl(site.url("/page"), settings=settings)
        assert result.dropped == {site.url("/page"): "usage"}
    assert asked(site) == 1
    assert len(site.robots_requests) == 1


async def test_crawls_that_use_a_store_fetch_it_once_together(web):
    site = site_of(web, file("/no"))
    crawls = [crawl(site.url("/no"), site.url(f"/{n}"), settings=SETTINGS) for n in range(3)]
    found = await DeferredList([Deferred.fromCoroutine(each) for each in crawls])
    assert all(result.dropped == {site.url("/no"): "usage"} for _, result in found)
    assert asked(site) == 1
    assert pages(site) == {"/0", "/1", "/2"}


@pytest.mark.parametrize("mode", MODES)
def test_it_decides_in_each_mode(web, mode):
    site = site_of(web, file("/no"))
    result = CrawlProcess(mode, [site.url("/a"), site.url("/no")], **SETTINGS).result()
    assert result["dropped"] == {site.url("/no"): "usage"}
    assert (asked(site), pages(site)) == (1, {"/a"})


@QUEUES
async def test_while_it_is_not_known_other_sites_go_on(web, queue):
    slow = site_of(web, held(file("/no")), rules="Disallow: /private\n")
    quick = site_of(web, file("/no"))
    urls = [slow.url("/private"), *(slow.url(f"/{number}") for number in range(20))]
    urls += [slow.url("/no"), quick.url("/a")]

    async def release(crawler):
        await until(lambda: "/a" in quick.targets and asked(slow))
        if not queue:
            # With our queue they are still in the scheduler.
            urls = {request.url for request in crawler.engine._slot.inprogress}
            # Scrapy 2.14 holds on to what has been dropped.
            assert urls <= {slow.url(TDMREP), quick.url("/a"), slow.url("/private")}
        slow.release()

    result = await crawl(
        *urls, settings={**SETTINGS, "CONCURRENT_REQUESTS": 2, **queue}, meanwhile=release
    )
    assert asked(slow) == 1
    assert len(result.responses) == 21
    assert ("robotstxt/put_off" in result.stats) == bool(queue)
    assert result.dropped == {slow.url("/private"): "rule", slow.url("/no"): "usage"}


async def test_robots_txt_is_stored_while_it_is_fetched(web, tmp_path):
    site = web.site(robots(""), paths={TDMREP: [held(file("/no"))]})
    path = tmp_path / "robots.sqlite"
    found = {}

    async def look(crawler):
        await until(lambda: asked(site))
        for table in ("records", "leases"):
            found[table] = in_store(path, table)
        site.release()

    settings = {**SETTINGS, "REP_STORE": f"sqlite:///{path}"}
    result = await crawl(site.url("/a"), settings=settings, meanwhile=look)
    assert found == {"records": {site.url("")}, "leases": {site.url(TDMREP)}}
    assert result.fetched == [site.url("/a")]


async def test_a_crawl_that_closes_waits_for_none(web):
    site = site_of(web, HANGS)
    settings = {**SETTINGS, **SCRAPYS_QUEUE}
    closing = closing_when(lambda _: asked(site))
    result = await crawl(site.url("/page"), settings=settings, meanwhile=closing)
    assert pages(site) == set()
    assert result.stats["finish_reason"] == "enough"


async def test_purposes_of_one_request_and_what_is_downloaded_directly(web):
    site = site_of(web, file("/no"))
    found = {}

    class Spider(ListSpider):
        async def start(self):
            declared = {"robotstxt_purposes": ["tdm"]}
            await Robots.of(self.crawler).robotstxt(scrapy.Request(site.url("/"), meta=declared))
            for path, purposes in (("/no/1", []), ("/no/2", ["tdm"])):
                request = scrapy.Request(site.url(path), meta={"robotstxt_purposes": purposes})
                try:
                    await self.crawler.engine.download_async(request)
                except RobotsUsageDisallowed as error:
                    found[path] = error.results
                else:
                    found[path] = asked(site)
            found["robots"] = (await Robots.of(self.crawler).usage(site.url("/no"))).statements
            return
            yield

    await crawl(settings={**SETTINGS, "REP_PURPOSES": []}, spidercls=Spider)
    assert found == {"/no/1": 0, "/no/2": {"tdm": "disallow"}, "robots": ()}


async def test_a_dry_run_tells_what_it_would_drop(web):
    site = site_of(web, file("/no"))
    settings = {**SETTINGS, "REP_DRY_RUN": True}
    result = await crawl(site.url("/no"), site.url("/a"), settings=settings)
    assert pages(site) == {"/no", "/a"}
    assert result.stats["robotstxt/dry_run/forbidden_reason_count/usage"] == 1
    told = result.messages(logging.INFO)
    url = site.url("/no")
    cause = f"usage preferences in {site.url(TDMREP)}: tdm: disallow"
    assert f"Dry run, would drop <GET {url}>: {cause}" in told
    differs = (
        f"Dry run, Scrapy's built-in would send <GET {url}>, scrapy-rep would drop it: {cause}"
    )
    assert differs in told


async def test_an_error_of_ours_drops_the_page(web, monkeypatch, tmp_path):
    site = site_of(web, file("/no"))
    monkeypatch.setattr("scrapy_rep.cache.entry.TdmRules", None)
    path = tmp_path / "robots.sqlite"
    result = await crawl(site.url("/a"), settings={**SETTINGS, "REP_STORE": f"sqlite:///{path}"})
    assert pages(site) == set()
    assert result.dropped == {site.url("/a"): "error"}
    # What was fetched is stored, and nobody waits for its lease.
    stored, leases = in_store(path, "records"), in_store(path, "leases")
    assert (stored, leases) == ({site.url(""), site.url(TDMREP)}, set())


async def test_a_signal_tells_what_it_came_to(web, tmp_path):
    site = site_of(web, file("/no"))
    settings = {**SETTINGS, "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    for source in ("fetch", "store"):
        ear = Ear("robotstxt_tdmrep")
        await crawl(site.url("/a"), settings=settings, opened=ear.listen)
        ((_, what),) = ear.heard
        assert (str(what["origin"]), what["source"]) == (site.url(""), source)
        assert what["record"].last.body.decode() == reserved("/no")
