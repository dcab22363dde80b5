"""The check nearest the engine: the URL of a response that another middleware has changed."""

import pytest
from scrapy import Request

from scrapy_rep import RobotsTxtDisallowed, SettingsError
from scrapy_rep.protocol.verdict import Reason
from tests.crawling.crawl import SCRAPYS_QUEUE, Downloads, crawl, releasing_as_it_closes
from tests.crawling.web import RULES, answer, held, redirect, robots
from tests.downloadermiddlewares.test_robotstxt_fetch import FOLLOWS
from tests.test_signals import Ear

ORDERS = [1, 50, 99, 100, 101, 560, 725, 900, 950]


class Resolves:
    """Gives a response the URL that its page came from, as middlewares of APIs do."""

    def process_response(self, request, response):
        to = request.meta.get("resolved")
        return response if to is None else response.replace(url=to)


class LooksAtPages:
    """A spider middleware of the user's, nearest the engine."""

    seen: list = []  # noqa: RUF012 - of the one crawl

    def process_spider_input(self, response):
        self.seen.append(response.url)


def resolving(order=725, **settings):
    return {"DOWNLOADER_MIDDLEWARES": {Resolves: order}, "RETRY_ENABLED": False, **settings}


def resolved(site, path, to):
    return Request(path if ":" in path else site.url(path), meta={"resolved": to})


def check_dropped(result, request, to):
    (failure,) = result.failures
    assert failure.request.url == request.url
    assert isinstance(failure.value, RobotsTxtDisallowed)
    assert failure.value.redirected_to == to
    assert failure.request.meta["robotstxt"]["allowed"] is False
    assert not [key for key in failure.request.meta if key.startswith("_robotstxt")]
    assert result.stats["robotstxt/forbidden_response_count"] == 1
    assert result.stats["robotstxt/forbidden"] == 1
    begin = f"Dropped the response to <GET {request.url}>: another middleware has changed its URL"
    shown = to.rstrip("?")
    assert [line for line in result.messages() if line.startswith(begin) and shown in line]


@pytest.mark.parametrize(
    ("url", "to", "settings"),
    [
        *(("/a", "/private", resolving(order)) for order in ORDERS),
        ("data:text/plain,words", "/private", resolving()),
        ("/a", "/%70rivate#a", resolving()),
        ("/a", "/x/../private", resolving()),
        ("/a", "/private?", resolving()),
    ],
)
async def test_a_page_whose_url_becomes_a_disallowed_one_is_dropped(web, url, to, settings):
    """No spider middleware gets it either."""
    site = web.site(robots(RULES))
    request = resolved(site, url, site.url(to))
    LooksAtPages.seen.clear()
    settings = {**settings, "SPIDER_MIDDLEWARES": {LooksAtPages: -1}}
    result = await crawl(request, resolved(site, "/b", site.url("/a")), settings=settings)
    assert result.fetched == LooksAtPages.seen == [site.url("/a")]
    assert len(site.robots_requests) == 1
    check_dropped(result, request, site.url(to))


async def test_a_page_whose_url_becomes_that_of_an_unreachable_site_is_fetched_once(web):
    site, gone = web.site(robots(RULES)), web.site(answer(503))
    result = await crawl(
        resolved(site, "/a", gone.url("/x")), settings=resolving(REP_DEFER_TIMEOUT=60)
    )
    assert site.targets == ["/a"]
    assert [failure.value.verdict.reason for failure in result.failures] == [Reason.UNREACHABLE]


@pytest.mark.parametrize(
    ("to", "settings"),
    [
        ("{}/a#part", {}),
        ("{}/%7ea", {}),
        ("{}/./a", {}),
        ("data:text/plain,words", {}),
        ("file:///etc/hostname", {}),
        ("about:blank", {}),
        ("no URL", {}),
        ("{}/private", {"REP_DRY_RUN": True}),
    ],
)
async def test_what_passes(web, to, settings):
    """Another spelling, a URL without robots.txt, and what a dry run would drop."""
    site = web.site(robots(RULES))
    request = resolved(site, "/~a" if "%7e" in to else "/a", to.format(site.url("")))
    result = await crawl(request, settings=resolving(**settings))
    assert len(result.responses) == 1
    assert result.failures == []
    assert result.stats.get("robotstxt/dry_run/forbidden", 0) == len(settings)


@pytest.mark.parametrize("order", ORDERS)
async def test_a_url_of_an_origin_that_is_not_known_waits_for_its_robotstxt(web, order):
    closed, open_ = web.site(robots("User-agent: *\nDisallow: /")), web.site(answer(404))
    site = web.site(robots(RULES))
    requests = [resolved(site, f"/{n}", to.url("/x")) for n, to in enumerate([closed, open_])]
    result = await crawl(*requests, settings=resolving(order))
    assert result.fetched == [open_.url("/x")]
    check_dropped(result, requests[0], closed.url("/x"))
    assert [len(other.robots_requests) for other in (closed, open_)] == [1, 1]


async def test_a_response_that_a_component_awaits_is_checked_too(web):
    site = web.site(robots(RULES))
    media = {"media": [site.url("/a")], "media_meta": {"resolved": site.url("/private")}}
    result = await crawl(site.url("/"), settings=resolving(), spidercls=Downloads, **media)
    assert [error.redirected_to for error in result.ends] == [site.url("/private")]


async def test_what_is_exempt_may_have_any_url_and_counts_once(web):
    site = web.site(robots(RULES), paths={"/in": [redirect("/private/x")]})
    requests = [resolved(site, "/a", site.url("/private")), Request(site.url("/in"))]
    for request in requests:
        request.meta["dont_obey_robotstxt"] = True
    result = await crawl(*requests, settings=resolving(**FOLLOWS))
    assert sorted(result.fetched) == [site.url("/private"), site.url("/private/x")]
    assert result.stats["robotstxt/exempt"] == 2
    assert site.robots_requests == []


async def test_a_url_that_a_handler_followed_to_is_judged_once(web):
    site = web.site(robots(RULES), paths={"/in": [redirect("/out")], "/a": [redirect("/b")]})
    ear = Ear("robotstxt_verdict")
    requests = [Request(site.url("/in")), resolved(site, "/a", site.url("/private"))]
    result = await crawl(*requests, settings=resolving(**FOLLOWS), opened=ear.listen)
    assert result.fetched == [site.url("/out")]
    verdicts = sorted(what["request"].url for _, what in ear.heard)
    assert verdicts == [site.url(path) for path in ("/a", "/b", "/in", "/out", "/private")]
    (response,) = result.responses
    assert not [key for key in response.meta if key.startswith("_robotstxt")]


@pytest.mark.parametrize("order", [-1_000_000, -1_000_001])
async def test_a_middleware_nearer_the_engine_stops_the_crawl_at_the_start(web, order):
    site = web.site(robots(RULES))
    with pytest.raises(SettingsError, match=r"DOWNLOADER_MIDDLEWARES .*Resolves at -100000\d"):
        await crawl(site.url("/a"), settings=resolving(order))
    assert site.journal == []


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "Scrapy's"])
async def test_a_page_that_is_checked_when_the_crawl_closes_is_kept(web, tmp_path, queue):
    other, site = web.site(held(robots(RULES))), web.site(robots(RULES))
    settings = resolving(JOBDIR=str(tmp_path / "job"), **queue)
    beside = releasing_as_it_closes(lambda _: other.robots_requests, other)
    request = resolved(site, "/p", other.url("/api"))
    result = await crawl(request, settings=settings, meanwhile=beside)
    assert result.fetched == [other.url("/api")]
    result = await crawl(settings=settings)
    assert result.fetched == []
    assert site.targets == ["/p"]


async def test_a_response_that_is_awaited_when_the_crawl_closes_comes_once(web, tmp_path):
    other, site = web.site(held(robots(RULES))), web.site(robots(RULES))
    settings = resolving(JOBDIR=str(tmp_path / "job"))
    beside = releasing_as_it_closes(lambda _: other.robots_requests, other)
    media = {"media": [site.url("/a")], "media_meta": {"resolved": other.url("/x")}}
    downloads = {"spidercls": Downloads, "meanwhile": beside, **media}
    result = await crawl(site.url("/"), settings=settings, **downloads)
    assert [end.url for end in result.ends] == [other.url("/x")]
    assert site.targets == ["/", "/a"]


async def test_a_page_that_has_come_is_kept_though_the_host_of_its_url_refuses_all(web):
    busy = {"*": [answer(429, headers={"Retry-After": "999"})]}
    site, other = web.site(robots(RULES)), web.site(robots(RULES), host="127.0.0.2", paths=busy)
    requests = other.url("/1"), resolved(site, "/a", other.url("/2"))
    settings = {"CONCURRENT_REQUESTS": 1, "REP_DEFER_TIMEOUT": 60}
    result = await crawl(*requests, settings=resolving(**settings))
    assert (other.targets, site.targets) == (["/1"], ["/a"])
    assert result.fetched == [other.url("/1"), other.url("/2")]
