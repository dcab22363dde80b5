"""The middleware closest to the downloader: what is sent and what came is what was decided on."""

import logging

import pytest
from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.http import HtmlResponse
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.python import global_object_name

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtFetchMiddleware, SettingsError
from scrapy_rep.utils.concurrency import sleep
from tests.crawling.crawl import OfCrawler, close, crawl, hearing
from tests.crawling.web import HANGS, PAGE, RULES, answer, redirect, robots
from tests.waiting import PATIENCE, until

NAMED = "User-agent: *\nDisallow:\n\nUser-agent: otherbot\nDisallow: /for-others\n"


class Rewrites:
    """Sends another URL than the one that was decided on, as proxies' packages do."""

    def process_request(self, request):
        if "/alias" in request.url:
            request._set_url(request.url.replace("/alias", request.meta["to"]))


class SetsUserAgent:
    """As the middlewares that take turns with User-Agents do."""

    def process_request(self, request):
        request.headers["User-Agent"] = "otherbot/2.0"


class Retries:
    """Tries again whatever it sees, as packages of rotating proxies do."""

    def process_response(self, request, response):
        if response.status >= 400 and "again" not in request.meta:
            return request.replace(dont_filter=True, meta={**request.meta, "again": True})
        return response

    def process_exception(self, request, exception):
        if "again" not in request.meta:
            return request.replace(dont_filter=True, meta={**request.meta, "again": True})
        return None


class MeantForPages:
    def process_request(self, request):
        request.meta.update(playwright=True, impersonate="chrome")
        request.meta.update(download_slot="all", dont_cache=False)
        request.headers["Range"] = "bytes=0-10"


class FetchAsync(RobotsTxtFetchMiddleware):
    async def process_response(self, request, response):
        return await ensure_awaitable(super().process_response(request, response))

    async def process_exception(self, request, exception):
        return super().process_exception(request, exception)


class FetchWithSpider(RobotsTxtFetchMiddleware):
    def process_response(self, request, response, spider):
        return super().process_response(request, response)

    def process_exception(self, request, exception, spider):
        return super().process_exception(request, exception)


def wrapped(text):
    return f'<html><head></head><body><pre style="word-wrap: break-word">{text}</pre></body></html>'


class Renders:
    """Answers everything with what a browser shows of it, as middlewares for Selenium do."""

    shown = ""

    def process_request(self, request):
        return HtmlResponse(request.url, body=self.shown, encoding="utf-8", request=request)


class Follows(HTTP11DownloadHandler):
    """Follows redirects by itself, as browsers do."""

    async def download_request(self, request):
        response = await super().download_request(request)
        while "Location" in response.headers and "robots.txt" not in request.url:
            url = response.urljoin(response.headers["Location"].decode())
            response = await super().download_request(Request(url, headers=request.headers))
        return response


class TellsMeta(HTTP11DownloadHandler):
    seen: list = []  # noqa: RUF012 - of the one crawl

    async def download_request(self, request):
        self.seen.append((request.url, {k for k in request.meta if not k.startswith("_robotstxt")}))
        assert request.meta["download_slot"] != "all" or "robots.txt" not in request.url
        return await super().download_request(request)


def behind(*middlewares, order=700):
    return {"DOWNLOADER_MIDDLEWARES": dict.fromkeys(middlewares, order), "RETRY_ENABLED": False}


FOLLOWS = {"DOWNLOAD_HANDLERS": {"http": Follows}}
FOR_TESTBOT = "User-agent: testbot\nAllow: /\n\nUser-agent: *\nDisallow: /\n"
FOR_OTHER = FOR_TESTBOT.replace("testbot", "other")
WITHOUT_AGENTS = {"DOWNLOADER_MIDDLEWARES": {global_object_name(UserAgentMiddleware): None}}
AS_NAMED = (NAMED, ["/for-others", "/a"], ["/a"])


@pytest.mark.parametrize(
    ("rules", "paths", "sent", "settings", "attributes"),
    [
        (RULES, {"/alias?1": "/private", "/alias?2": "/public"}, ["/public?2"], behind(Rewrites), {}),
        *((*AS_NAMED, behind(SetsUserAgent, order=n), {}) for n in (50, 400, 560, 700, 999_999)),
        (NAMED, ["/for-others"], ["/for-others"], {**behind(SetsUserAgent), "ROBOTSTXT_USER_AGENT": "testbot"}, {}),
        (FOR_TESTBOT, ["/page"], [], WITHOUT_AGENTS, {}),
        (FOR_TESTBOT, ["/page"], [], {}, {"user_agent": None}),
        (FOR_TESTBOT, ["/page"], [], {}, {"user_agent": ""}),
        *(
            (FOR_OTHER, ["/page"], ["/page"], {"DEFAULT_REQUEST_HEADERS": {name: "other/1.0"}}, {})
            for name in ("User-Agent", "user-agent", b"User-Agent")
        ),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The 'user_agent' spider attribute")
async def test_what_is_sent_decides(web, rules, paths, sent, settings, attributes):
    """A URL that is rewritten, and the User-Agent wherever it is set; without one, no token."""
    site = web.site(robots(rules))
    to = paths if isinstance(paths, dict) else {}
    requests = [Request(site.url(path), meta={"to": to.get(path)}) for path in paths]
    result = await crawl(*requests, settings=settings, **attributes)
    assert site.targets == sent
    assert list(result.dropped.values()) == ["rule"] * (len(paths) - len(sent))
    assert len(site.robots_requests) == 1


class AsksAtOnce(OfCrawler):
    """A pipeline that sends a request before the signal ``spider_opened``."""

    async def open_spider(self, spider=None):
        request = Request(self.settings["FIRST"], meta={"dont_obey_robotstxt": True})
        await self.crawler.engine.download_async(request)

    def process_item(self, item):
        return item


async def test_what_is_sent_before_the_spider_is_open_is_sent(web):
    site = web.site(robots(RULES))
    settings = {"ITEM_PIPELINES": {AsksAtOnce: 1}, "FIRST": site.url("/first")}
    await crawl(site.url("/a"), settings=settings)
    assert site.targets == ["/first", "/a"]


async def test_an_override_is_counted_once_whatever_user_agent_is_sent(web):
    site = web.site(robots("User-agent: *\nDisallow: /"))
    override = {"host": "127.0.0.1", "policy": "ignore", "reason": "our own", "until": "2099-01-01"}
    settings = {**behind(SetsUserAgent), "REP_OVERRIDES": [override]}
    result = await crawl(site.url("/a"), settings=settings)
    assert site.targets == ["/a"]
    assert result.stats["robotstxt/override_count/ignore"] == 1


async def test_a_response_of_a_disallowed_url_is_dropped_where_the_handler_followed_to_it(web):
    site = web.site(
        robots(RULES),
        paths={"/in": [redirect("/private/x")], "/out": [redirect("/public")]},
    )
    result = await crawl(site.url("/in"), site.url("/out"), settings=FOLLOWS)
    assert result.fetched == [site.url("/public")] or result.fetched == [site.url("/out")]
    (failure,) = result.failures
    assert failure.request.url == site.url("/in")
    assert isinstance(failure.value, RobotsTxtDisallowed)
    assert failure.value.redirected_to == site.url("/private/x")
    assert failure.value.verdict.line == 2
    assert str(failure.value).endswith(f", of {site.url('/private/x')} after a redirect")
    assert failure.request.meta["robotstxt"]["allowed"] is False
    assert result.stats["robotstxt/forbidden_response_count"] == 1
    assert result.stats["robotstxt/forbidden"] == 1
    assert any(
        f"<GET {site.url('/in')}>" in line and site.url("/private/x") in line
        for line in result.messages()
    )


async def test_preferences_about_use_are_those_of_the_url_that_the_handler_followed_to(web):
    lines = ["/in train-ai=y", "/out train-ai=n", "/no train-ai=n", "/ok train-ai=y"]
    rules = "User-agent: *\n" + "".join(f"Content-Usage: {line}\n" for line in lines)
    paths = {"/in": [redirect("/no")], "/out": [redirect("/ok")], "/up": [redirect("/down")]}
    site = web.site(robots(rules), paths=paths)
    settings = {**FOLLOWS, "REP_PURPOSES": ["ai-training"]}
    urls = [site.url(path) for path in paths]
    result = await crawl(*urls, settings=settings)
    assert {
        response.url: response.meta["robotstxt"]["usage"]["results"]["ai-training"]
        for response in result.responses
    } == {site.url("/no"): "disallow", site.url("/ok"): "allow", site.url("/down"): "unknown"}
    result = await crawl(*urls, settings={**settings, "REP_USAGE_ACTION": "drop"})
    assert result.fetched == [site.url("/down")]
    assert result.dropped == {site.url("/in"): "usage", site.url("/out"): "usage"}


@pytest.mark.spec("F-7")
@pytest.mark.parametrize("story", [answer(404), answer(503), [["close"]]])
async def test_nobody_tries_again_what_came_of_a_robotstxt(web, story):
    site = web.site(story)
    await crawl(site.url("/a"), settings=behind(Retries))
    assert len(site.robots_requests) == 1


async def test_the_cut_of_one_answer_is_not_that_of_the_next(web):
    site = web.site(answer(503, "x" * 600_000), robots(f"{RULES}Disallow: /last"))
    settings = {**behind(Retries, order=900), "REP_RETRY_DELAY": PATIENCE}
    await crawl(site.url("/last"), settings=settings)
    assert site.targets == []


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (wrapped(RULES), "rule"),
        (RULES, "rule"),
        (wrapped("Service unavailable"), "unreachable"),
        ("<html><h1>Not found</h1></html>", "unreachable"),
        ("", "unreachable"),
    ],
)
async def test_what_another_middleware_shows_of_a_robotstxt_counts_where_it_has_rules(
    web, shown, reason
):
    site = web.site(answer(503))
    renders = type("Renders", (Renders,), {"shown": shown})
    result = await crawl(site.url("/private"), settings=behind(renders))
    assert result.dropped == {site.url("/private"): reason}
    told = [line for line in result.messages(logging.WARNING) if "another middleware" in line]
    assert len(told) == (reason == "unreachable")


async def test_what_is_meant_for_pages_is_taken_off_the_request_for_robotstxt(web):
    site = web.site(robots(RULES))
    TellsMeta.seen.clear()
    settings = {**behind(MeantForPages), "DOWNLOAD_HANDLERS": {"http": TellsMeta}}
    await crawl(site.url("/a"), settings=settings)
    seen = dict(TellsMeta.seen)
    assert {"playwright", "impersonate"} <= seen[site.url("/a")]
    assert not {"playwright", "impersonate"} & seen[site.url("/robots.txt")]
    (entry,) = site.robots_requests
    assert "range" not in str(entry).lower()


async def test_scrapys_stats_count_robotstxt_as_ever(web):
    site, gone = web.site(robots(RULES)), web.site([["close"]])
    result = await crawl(site.url("/a"), gone.url("/a"), settings={"RETRY_ENABLED": False})
    assert result.stats["downloader/request_count"] == 3
    assert result.stats["downloader/response_count"] == 2
    # The robots.txt that failed, and the page that was dropped for it.
    assert result.stats["downloader/exception_count"] == 2


@pytest.mark.parametrize("subclass", [FetchAsync, FetchWithSpider])
@pytest.mark.filterwarnings("ignore:.* requires a spider argument")
async def test_the_last_middleware_may_be_a_subclass(web, subclass):
    site, gone = web.site(robots(RULES)), web.site([["close"]])
    settings = behind(subclass, order=1_000_000)
    result = await crawl(site.url("/a"), site.url("/private"), gone.url("/a"), settings=settings)
    assert site.targets == ["/a"]
    assert result.dropped == {site.url("/private"): "rule", gone.url("/a"): "unreachable"}
    assert result.stats["robotstxt/unreachable_count/connection closed"] == 1


@pytest.mark.parametrize("order", [1_000_000, 1_000_001])
async def test_a_middleware_behind_the_last_one_stops_the_crawl_at_the_start(web, order):
    site = web.site(robots(RULES), paths={"/a": [answer(200, PAGE)]})
    with pytest.raises(SettingsError, match=r"DOWNLOADER_MIDDLEWARES .*Rewrites at 100000\d"):
        await crawl(site.url("/a"), settings=behind(Rewrites, order=order))
    assert site.journal == []


# What was found by who tried to get around it.


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_what_is_sent_with_a_copy_of_the_request_is_not_taken_for_it(web, elsewhere):
    site = web.site(robots(RULES))
    url = web.site().url("/token") if elsewhere else site.url("/private")

    class SendsACopy(OfCrawler):
        async def process_request(self, request):
            if request.url.endswith("/robots.txt"):
                await self.crawler.engine.download_async(Request(url, meta=dict(request.meta)))

    result = await crawl(site.url("/private"), settings=behind(SendsACopy, order=350))
    assert site.targets == []
    assert result.dropped == {site.url("/private"): "unreachable"}


async def test_the_file_of_an_override_is_asked_for_the_user_agent_that_is_sent(web, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text(NAMED)
    override = {"host": "127.0.0.1", "policy": "file", "path": str(rules), "reason": "agreed"}
    site = web.site(robots(""))
    settings = {**behind(SetsUserAgent), "REP_OVERRIDES": [override]}
    await crawl(site.url("/for-others"), site.url("/a"), settings=settings)
    assert site.targets == ["/a"]


async def test_the_case_of_a_scheme_hides_no_user_agent(web):
    site = web.site(robots(NAMED))
    url = site.url("/for-others").replace("http:", "HTTP:")
    await crawl(Request(url, meta={"verbatim_url": True}), settings=behind(SetsUserAgent))
    assert site.targets == []


def sets_user_agent(request):
    request.headers["User-Agent"] = "otherbot/2.0"


def sets_user_agent_without_a_ticket(request):
    slot = request.meta["download_slot"]
    request.meta.clear()
    request.meta["download_slot"] = slot
    sets_user_agent(request)


@pytest.mark.parametrize("change", [sets_user_agent, sets_user_agent_without_a_ticket])
async def test_what_is_changed_in_a_download_slot_is_decided_on(web, change):
    site = web.site(robots(NAMED))

    def reached(request):
        if not request.url.endswith("/robots.txt"):
            change(request)

    opened = hearing(signals.request_reached_downloader, reached)
    result = await crawl(site.url("/for-others"), site.url("/a"), opened=opened)
    assert site.targets == ["/a"]
    assert result.dropped == {site.url("/for-others"): "rule"}


async def test_a_request_that_needs_a_lookup_at_the_wire_keeps_no_place_of_its_slot(web):
    healthy, hanging = web.site(robots(RULES)), web.site(HANGS)

    class Moves:
        def process_request(self, request):
            if request.url == healthy.url("/moved"):
                request._set_url(hanging.url("/moved"))

    def page(path):
        return Request(healthy.url(path), meta={"download_slot": "one"})

    async def meanwhile(crawler):
        await until(lambda: hanging.robots_requests)
        for number in range(3):
            crawler.engine.crawl(crawler.spider.prepare(page(f"/{number}")))
        await until(lambda: len(healthy.targets) == 3)
        close(crawler)

    settings = {**behind(Moves), "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await crawl(page("/moved"), settings=settings, meanwhile=meanwhile)
    assert hanging.targets == []
    assert result.stats["robotstxt/returned_to_scheduler"] == 1


async def test_a_request_is_given_back_for_a_lookup_at_the_wire_only_once(web):
    """Its rules may expire again and again on the way to the wire."""
    rules = answer(200, RULES, headers={"Content-Type": "text/plain", "Cache-Control": "no-store"})
    site = web.site([["wait", 2.5], *rules])

    class Keeps:
        async def process_request(self, request):
            if not request.url.endswith("/robots.txt"):
                await sleep(1.5)

    result = await crawl(site.url("/1"), settings={**behind(Keeps), "REP_CACHE_TTL_MIN": 0})
    assert site.targets == ["/1"]
    assert result.stats["robotstxt/returned_to_scheduler"] == 1
    assert len(site.robots_requests) <= 4
