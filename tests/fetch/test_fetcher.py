"""What is asked of a site's robots.txt, by whom and how: DESIGN section 2, SPEC S and F."""

import asyncio
import logging
from functools import partial

import pytest
from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import StopDownload
from scrapy.http.request import NO_CALLBACK

from scrapy_rep.cache import lookups
from tests.crawling.crawl import HAS_ROBOTS_PARSED, SCRAPYS_QUEUE, ListSpider, crawl, hearing
from tests.crawling.web import RULES, answer, held, redirect, robots
from tests.redis_server import RedisServer, needs_redis
from tests.waiting import PATIENCE, until

DAY = 86_400


def moved(web, path="/hidden", agent="*"):
    """A site whose robots.txt is at ``path`` of another, and this one, which disallows /hidden."""
    hidden = robots(f"User-agent: {agent}\nDisallow: /hidden")
    other = web.site(hidden, paths={path: [robots(RULES)]})
    return web.site(redirect(other.url(path))), other


@pytest.mark.spec("S-1", "S-8")
async def test_an_unconditional_get_of_the_lower_case_name_without_userinfo(web):
    site = web.site(robots(RULES))
    settings = {"DEFAULT_REQUEST_HEADERS": {"If-None-Match": "x", "Range": "bytes=0-5"}}
    result = await crawl(f"http://user:secret@127.0.0.1:{site.port}/private", settings=settings)
    assert set(result.dropped.values()) == {"rule"}
    (asked,) = site.robots_requests
    assert asked["method"] == "GET"
    assert asked["target"] == "/robots.txt"
    assert not {"if-none-match", "range", "authorization"} & asked["headers"].keys()
    assert not [text for text in (str(site.journal), *result.messages()) if "secret" in text]


@pytest.mark.spec("F-2")
async def test_the_rules_of_another_host_hold_for_the_origin_first_asked(web):
    other = web.site(robots(RULES), host="127.0.0.1")
    site = web.site(redirect(f"http://localhost:{other.port}/robots.txt"))
    result = await crawl(site.url("/private"), site.url("/public"))
    assert result.fetched == [site.url("/public")]
    assert result.dropped == {site.url("/private"): "rule"}
    assert result.failures[0].value.verdict.robotstxt_url == site.url("/robots.txt")


@pytest.mark.parametrize("path", ["/robots.txt", "/elsewhere"])
async def test_the_answer_is_the_target_origins_too_if_it_was_its_robots_txt(web, path):
    is_theirs = path == "/robots.txt"
    other = web.site(robots(RULES if is_theirs else ""), paths={path: [robots(RULES)]})
    site = web.site(redirect(other.url(path)))
    result = await crawl(site.url("/public"), phases=[[other.url("/private")]])
    assert (other.url("/private") in result.dropped) == is_theirs
    assert len(other.robots_requests) == 1


async def test_an_error_in_what_is_kept_for_the_target_origin_is_logged(web, monkeypatch):
    def fails(_):
        raise RuntimeError("not kept")

    monkeypatch.setattr(lookups, "other_origin", fails)
    site, _ = moved(web)
    result = await crawl(site.url("/public"), site.url("/private"))
    assert result.dropped == {site.url("/private"): "rule"}
    assert "Error in a task in the background" in result.messages(logging.ERROR)


async def test_too_many_redirects_are_not_the_result_of_the_target_origin(web):
    other = web.site(redirect("/rules"), paths={"/rules": [robots(RULES)]})
    hops = {f"/{n}": [redirect(f"/{n + 1}")] for n in range(4)}
    site = web.site(redirect("/0"), paths={**hops, "/3": [redirect(other.url("/robots.txt"))]})
    result = await crawl(site.url("/public"), phases=[[other.url("/private")]])
    assert result.fetched == [site.url("/public")]
    assert result.dropped == {other.url("/private"): "rule"}


@pytest.mark.spec("F-3")
@pytest.mark.parametrize(
    "path", ["/hidden", "/pub/%2e%2e/hidden/r", "/pub/./%2E%2e/hidden", "/hid%64en"]
)
async def test_a_hop_that_known_rules_disallow_in_any_spelling_ends_the_chain_as_404(web, path):
    site, other = moved(web, path)
    result = await crawl(other.url("/a"), phases=[[site.url("/private"), other.url(path)]])
    assert result.dropped == {other.url(path): "rule"}
    assert site.targets == ["/private"]
    assert other.targets == ["/a"]


@pytest.mark.spec("F-3")
async def test_a_chain_that_ended_at_rules_for_one_crawler_ends_for_no_other(web, tmp_path):
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    site, other = moved(web, agent="testbot")
    result = await crawl(other.url("/a"), phases=[[site.url("/private")]], settings=settings)
    assert site.url("/private") in result.fetched
    settings["USER_AGENT"] = "otherbot/1.0"
    for _ in range(2):
        result = await crawl(site.url("/private"), settings=settings)
        assert result.dropped == {site.url("/private"): "rule"}
    assert other.targets == ["/a", "/hidden"]


@pytest.mark.spec("F-3")
async def test_a_hop_that_stored_rules_disallow_ends_the_chain_as_404(web, tmp_path, clock):
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    site, other = moved(web)
    await crawl(other.url("/a"), settings=settings)
    result = await crawl(site.url("/private"), settings=settings, phases=[[other.url("/b")]])
    assert result.fetched == [site.url("/private"), other.url("/b")]
    assert other.targets == ["/a", "/b"]
    assert len(other.robots_requests) == 1
    # The rules that were read for the hop count as new for the pages of their origin.
    if HAS_ROBOTS_PARSED:
        assert [request.url for _, request in result.parsed] == [other.url("/b")]
    # Rules that have expired end none.
    clock.advance(DAY)
    result = await crawl(site.url("/private"), settings=settings)
    assert result.dropped == {site.url("/private"): "rule"}
    assert len(other.robots_requests) == 1


@pytest.mark.spec("F-3")
async def test_the_stored_rules_of_the_file_itself_end_no_chain(web, tmp_path, clock):
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    moved = robots("User-agent: *\nDisallow: /private\nDisallow: /moved")
    site = web.site(redirect("/moved"), paths={"/moved": [moved]})
    for _ in range(2):
        result = await crawl(site.url("/private"), settings=settings)
        assert result.dropped == {site.url("/private"): "rule"}
        clock.advance(DAY)
    assert site.targets == ["/moved"] * 2


@pytest.mark.spec("F-3")
async def test_sites_that_redirect_to_each_other_wait_for_each_other_never(web):
    one, two = web.site(), web.site()
    for site, other in ((one, two), (two, one)):
        site.change(redirect(other.url("/rules")), paths={"/rules": [robots(RULES)]})
    urls = [one.url("/private"), two.url("/private")]
    assert (await crawl(*urls)).dropped == dict.fromkeys(urls, "rule")


@pytest.mark.spec("F-3")
async def test_a_store_that_hangs_at_a_hop_does_not_make_the_site_unreachable(web, tmp_path):
    needs_redis()
    server = RedisServer(tmp_path)
    other = web.site(paths={"/rules": [robots(RULES)]})
    site = web.site(held(redirect(other.url("/rules"))))

    async def pause(crawler):
        await until(lambda: site.robots_requests)
        server.pause()
        site.release()
        await until(lambda: other.targets)
        server.resume()

    # The store alone would use up the time limit of the fetch.
    settings = {"REP_STORE": f"{server.uri}?timeout={PATIENCE}", "REP_TIMEOUT": 5}
    try:
        result = await crawl(site.url("/private"), settings=settings, meanwhile=pause)
    finally:
        server.stop()
    assert result.dropped == {site.url("/private"): "rule"}


@pytest.mark.parametrize("of_environment", [False, True])
async def test_no_redirect_from_a_public_host_to_a_private_one(web, monkeypatch, of_environment):
    inside = web.site(robots(RULES))
    proxy = web.site(paths={"/robots.txt": [redirect(inside.url("/robots.txt"))]})
    if of_environment:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
    meta = {} if of_environment else {"proxy": proxy.url("")}
    result = await crawl(Request("http://public.example/a", meta=meta))
    assert set(result.dropped.values()) == {"unreachable"}
    assert inside.journal == []
    assert [entry["target"] for entry in proxy.journal] == ["http://public.example/robots.txt"]


@pytest.mark.usefixtures("all_names_are_here")
async def test_a_redirect_within_a_private_network_is_followed_whatever_its_host_name(web):
    inside = web.site(robots(RULES))
    # Versions of Scrapy before 2.19 don't tell the address of a response without a body.
    intranet = web.site(paths={"/robots.txt": [redirect(inside.url("/robots.txt"), body="moved")]})
    result = await crawl(f"http://intranet.example:{intranet.port}/private")
    assert set(result.dropped.values()) == {"rule"}
    assert [entry["target"] for entry in inside.journal] == ["/robots.txt"]


async def test_proxy_and_user_agent_of_the_page_are_carried_over(web):
    proxy = web.site(robots(RULES))
    others = {"Cookie": "a=b", "Authorization": "Basic x", "X-Mine": "1", "Referer": "http://a/"}
    headers = {"User-Agent": "pagebot/2", **others}
    meta = {"proxy": f"http://name:word@127.0.0.1:{proxy.port}"}
    await crawl(Request("http://site.example/public", headers=headers, meta=meta))
    asked, _ = proxy.journal
    assert asked["target"] == "http://site.example/robots.txt"
    assert asked["headers"]["user-agent"] == "pagebot/2"
    assert asked["headers"]["proxy-authorization"].startswith("basic ")
    assert not {"cookie", "authorization", "x-mine", "referer"} & asked["headers"].keys()


async def test_no_redirect_to_a_name_that_leads_inside(web, monkeypatch):
    """The only stand-in here: no test has a public name that leads to loopback."""
    monkeypatch.setattr("scrapy_rep.fetch.redirects.is_private_host", lambda host: False)
    monkeypatch.setattr(
        "scrapy_rep.fetch.redirects.Chain.check_address", lambda chain, answer: None
    )
    inside = web.site(robots(RULES))
    result = await crawl(web.site(redirect(f"http://localhost:{inside.port}/robots.txt")).url("/a"))
    assert set(result.dropped.values()) == {"unreachable"}
    assert inside.journal == []


async def test_credentials_of_the_crawl_do_not_follow_a_redirect(web):
    other = web.site(robots(RULES))
    site = web.site(redirect(other.url("/robots.txt")))
    headers = {"Cookie": "a=b", "Authorization": "Basic x"}
    settings = {"DEFAULT_REQUEST_HEADERS": headers, "COOKIES_ENABLED": False}
    await crawl(site.url("/a"), settings=settings)
    assert "cookie" not in site.robots_requests[0]["headers"]
    assert site.robots_requests[0]["headers"]["authorization"] == "basic x"
    assert not {"cookie", "authorization"} & other.journal[0]["headers"].keys()


@pytest.mark.filterwarnings("ignore:Use the HTTPAUTH_USER")  # settings that Scrapy 2.14 lacks
async def test_credentials_follow_a_redirect_within_their_domain(web):
    other = web.site(robots(RULES))
    site = web.site(redirect(other.url("/robots.txt")))
    # Scrapy compares the domain with host and port.
    attributes = {"http_user": "u", "http_pass": "p", "http_auth_domain": f"127.0.0.1:{other.port}"}
    assert set((await crawl(site.url("/private"), **attributes)).dropped.values()) == {"rule"}
    assert other.journal[0]["headers"]["authorization"].startswith("basic ")


async def test_a_401_without_the_credentials_of_the_crawl_allows_nothing(web):
    """The credentials do not follow the redirect, so the target can't show its rules."""
    other = web.site(answer(401, headers={"WWW-Authenticate": "Basic realm=x"}))
    site = web.site(redirect(other.url("/robots.txt")))
    settings = {"DEFAULT_REQUEST_HEADERS": {"Authorization": "Basic x"}}
    result = await crawl(site.url("/private"), settings=settings)
    assert set(result.dropped.values()) == {"unreachable"}
    assert site.targets == []
    assert result.stats["robotstxt/not_of_origin_count"] == 1


async def test_robots_txt_does_not_wait_on_a_machine_that_was_just_started(web, just_started):
    site = web.site(robots(RULES))
    # A delay longer than a fetch may take, but for pages.
    delay = {"DOWNLOAD_DELAY": 10 * PATIENCE, "DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0}}}
    await crawl(site.url("/a"), settings=delay)
    assert site.targets == ["/a"]


@pytest.mark.parametrize("enabled", [True, False])
async def test_cookies_of_the_hops_of_a_fetch_are_sent_back_within_it(web, clock, enabled):
    cookie = {"Set-Cookie": "seen=1; Path=/", "Location": "/robots.txt"}
    robots_answers = {"/robots.txt Cookie: seen=1": [robots(RULES)]}
    site = web.site(answer(302, headers=cookie), paths=robots_answers)
    urls = [site.url(path) for path in ("/private", "/public")]
    other = clock.later(2 * DAY, site.url("/private/2"))
    result = await crawl(*urls, settings={"COOKIES_ENABLED": enabled}, phases=[other])
    assert set(result.dropped.values()) == {"rule"}
    assert site.targets == ["/public"]
    # It is forgotten after each fetch, and no page gets it.
    cookies = [entry["headers"].get("cookie") for entry in site.journal]
    assert cookies == [None, "seen=1", None, None, "seen=1"]


async def test_cookies_of_a_hop_are_for_its_site_alone(web):
    named = web.site(paths={"/robots.txt": [robots(RULES)]}, host="localhost")
    cookies = {"Set-Cookie": "secret=1; Path=/", "Location": named.url("/robots.txt")}
    result = await crawl(web.site(answer(302, headers=cookies)).url("/private"))
    assert set(result.dropped.values()) == {"rule"}
    assert [entry["headers"].get("cookie") for entry in named.journal] == [None]


async def test_the_http_cache_pins_no_answer(web, tmp_path):
    site = web.site(robots(RULES))
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    await crawl(site.url("/private"), site.url("/a"), settings=settings)
    result = await crawl(site.url("/private"), site.url("/a"), settings=settings)
    assert len(site.robots_requests) == 2
    assert result.stats["httpcache/hit"] == 1


async def test_robots_txt_leaves_neither_slot_nor_listeners_to_the_pages(web):
    site = web.site(robots(RULES))
    slots, left, listening = [], [], []

    class Spider(ListSpider):
        def parse(self, response):
            left.extend(self.crawler.engine.downloader.slots)
            listening.extend(dispatcher.getAllReceivers(self.crawler, signals.bytes_received))
            return super().parse(response)

    def reached(request):
        slots.append(request.meta["download_slot"])

    opened = hearing(signals.request_reached_downloader, reached)
    await crawl(site.url("/a"), settings={"DOWNLOAD_DELAY": 0.2}, spidercls=Spider, opened=opened)
    assert slots == [f"robots.txt of {site.url('')}: {site.url('/robots.txt')}", "127.0.0.1"]
    assert left == ["127.0.0.1"]
    assert listening == []


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("signal", ["headers_received", "bytes_received"])
async def test_a_robots_txt_that_a_signal_handler_stopped_is_not_believed(web, signal, fail):
    site = web.site(robots(RULES))

    def stop(request, *, spares=False):
        if not (spares and request.callback is NO_CALLBACK):
            raise StopDownload(fail=fail)

    heard = getattr(signals, signal)
    result = await crawl(site.url("/public"), opened=hearing(heard, stop))
    assert set(result.dropped.values()) == {"unreachable"}
    assert site.targets == []
    (warning,) = result.messages(logging.WARNING)
    assert "a signal handler of the crawl raised StopDownload" in warning
    assert warning.endswith("NO_CALLBACK, as it is of those for robots.txt")
    assert result.stats["robotstxt/not_of_origin_count"] == 1
    # What the warning advises.
    await crawl(site.url("/public"), opened=hearing(heard, partial(stop, spares=True)))
    assert site.targets == ["/public"]


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE, {"JOBDIR": "job"}], ids=str)
@pytest.mark.parametrize("delay", ["", "Crawl-delay: 0.2\n"], ids=["no delay", "delay"])
@pytest.mark.parametrize("other", [{}, {"REP_DRY_RUN": True}], ids=str)
async def test_a_file_that_expires_at_once_is_fetched_once_for_each_page_at_most(
    web, tmp_path, monkeypatch, queue, delay, other
):
    monkeypatch.chdir(tmp_path)
    site = web.site(answer(200, f"{RULES}{delay}", headers={"Cache-Control": "no-cache"}))
    urls = [site.url(f"/{n}") for n in range(6)]
    late = site.url("/late")

    def after_a_change():
        site.change(robots("User-agent: *\nDisallow: /late\n"))
        return [late]

    settings = {"REP_CACHE_TTL": 0, "REP_CACHE_TTL_MIN": 0, **queue, **other}
    result = await crawl(*urls, settings=settings, phases=[after_a_change])
    assert sorted(result.fetched) == [*urls, *([late] if other else [])]
    # The rules of an earlier page are not used.
    assert result.stats[f"robotstxt/{'dry_run/' if other else ''}forbidden"] == 1
    assert len(site.robots_requests) <= len(urls) + 1
    assert "robotstxt/returned_to_scheduler" not in result.stats


@pytest.mark.skipif(not HAS_ROBOTS_PARSED, reason="Scrapy before 2.18 has no robots_parsed")
async def test_robots_parsed_is_sent_once_in_each_crawl_for_all_user_agents(web, tmp_path):
    site = web.site(robots(RULES))
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    pages = [Request(site.url(f"/{n}"), headers={"User-Agent": f"bot{n}"}) for n in range(3)]
    results = [await crawl(*pages, settings=settings) for _ in range(2)]
    assert [len(result.parsed) for result in results] == [1, 1]
    assert len(site.robots_requests) == 1
    ((parser, request),) = results[0].parsed
    assert request.url == site.url("/0")
    assert parser.allowed(site.url("/a"), "testbot")
    assert not parser.allowed(site.url("/private").encode(), b"testbot")


@pytest.mark.skipif(not HAS_ROBOTS_PARSED, reason="Scrapy before 2.18 has no robots_parsed")
async def test_robots_parsed_is_sent_to_handlers_of_any_sender_alone(web):
    site = web.site(robots(RULES))
    told = []

    def handler(request):
        told.append(request.url)

    dispatcher.connect(handler, signals.robots_parsed)
    try:
        result = await crawl(
            site.url("/a"),
            opened=lambda crawler: crawler.signals.disconnect_all(signals.robots_parsed),
        )
    finally:
        dispatcher.disconnect(handler, signals.robots_parsed)
    assert (told, result.parsed) == ([site.url("/a")], [])


async def test_builtin_stats(web):
    site, dead, gone = web.site(robots(RULES)), web.site(answer(503)), web.site([["close"]])
    result = await crawl(site.url("/private"), dead.url("/a"), gone.url("/a"))
    counts = {
        "request_count": 3,
        "response_count": 2,
        "response_status_count/200": 1,
        "response_status_count/503": 1,
        "forbidden": 1,
        "forbidden_reason_count/rule": 1,
        "unreachable_dropped": 2,
        "outcome_count/available": 1,
        "outcome_count/unreachable": 2,
    }
    assert {name: result.stats[f"robotstxt/{name}"] for name in counts} == counts
    assert [name for name in result.stats if name.startswith("robotstxt/exception_count/")]


async def test_a_download_handler_is_not_cancelled_at_the_time_limit(web):
    """Its requests may share a task, such as a login, for which a page waits, too."""
    site, other = web.site(robots(RULES)), web.site(robots(RULES))

    class Handler(HTTP11DownloadHandler):
        login = None

        def is_over(self):
            return self._crawler.stats.get_value("robotstxt/outcome_count/unreachable")

        async def download_request(self, request):
            if self.login is None:
                self.login = asyncio.ensure_future(until(self.is_over))
            await self.login
            return await super().download_request(request)

    exempt = Request(other.url("/exempt"), meta={"dont_obey_robotstxt": True})
    settings = {"REP_TIMEOUT": 1, "DOWNLOAD_HANDLERS": {"http": Handler}}
    result = await crawl(site.url("/public"), exempt, settings=settings)
    assert result.fetched == [other.url("/exempt")]
    assert set(result.dropped.values()) == {"unreachable"}


async def test_what_a_middleware_sends_in_place_of_robots_txt_waits_for_no_delay(web):
    """The files of three sites are one, which the delay of pages would let come one by one."""
    target = web.site(robots(RULES))
    sites = [web.site(redirect(target.url("/robots.txt"))) for _ in range(3)]

    class Replaces:
        def process_request(self, request):
            if "replaced" not in request.meta and request.url.endswith("robots.txt"):
                return request.replace(meta={**request.meta, "replaced": True})
            return None

    settings = {"DOWNLOAD_DELAY": 3, "REP_TIMEOUT": 2, "DOWNLOADER_MIDDLEWARES": {Replaces: 500}}
    result = await crawl(*[site.url("/private") for site in sites], settings=settings)
    assert set(result.dropped.values()) == {"rule"}
