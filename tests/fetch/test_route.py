"""What is not the origin's own answer says nothing of the origin: nothing of it is stored."""

import asyncio
import json
import logging
import socket
from functools import partial
from ipaddress import ip_address

import pytest
from scrapy import Request, exceptions
from scrapy.exceptions import NotSupported
from scrapy.http import Response
from twisted.internet import error as internet
from twisted.protocols.ftp import CommandFailed
from twisted.web.client import ResponseFailed, ResponseNeverReceived
from twisted.web.http import PotentialDataLoss

from scrapy_rep.fetch.errors import DecodingError, FetchError, InterferenceError
from scrapy_rep.fetch.is_from_origin import route_failure_in_answer, route_failure_in_error
from scrapy_rep.fetch.redirects import Chain
from scrapy_rep.fetch.transfer import Answer, Transfer
from scrapy_rep.protocol.origin import origin_of
from tests.crawling.crawl import SCRAPYS_QUEUE, OfCrawler, crawl
from tests.crawling.process import MODES, CrawlProcess
from tests.crawling.web import answer, redirect, robots
from tests.ports import refusing_port
from tests.sql import execute

ALL_FORBIDDEN = robots("User-agent: *\nDisallow: /\n")
URL, TUNNELLED = "http://a.example/robots.txt", "https://a.example/robots.txt"
API = "http://api.example/?url=a"


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/robots.sqlite"


def rows(store, table):
    return len(execute(store.removeprefix("sqlite:///"), f"SELECT * FROM {table}"))


def refusal(status, **headers):
    """What a proxy, or an API, answers to everything."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"*": [answer(status, "<html>no</html>", headers=headers)]}


class RequestError(Exception):
    """As API clients have it: no OSError."""


class Unloadable:
    lazy = True

    @classmethod
    def from_crawler(cls, crawler):
        raise RuntimeError("a library is missing")


class Rewriting(OfCrawler):
    """Sends everything to an API, as middlewares of rendering services do."""

    def process_request(self, request):
        api = self.settings["API"]
        if request.url.startswith(api):
            return None
        return request.replace(url=f"{api}/?url={request.url}", dont_filter=True)


def through_api(api):
    return {"API": api.url(""), "DOWNLOADER_MIDDLEWARES": {Rewriting: 500}}


def raising(error):
    class Raising:
        def process_request(self, request):
            raise error

    return {"DOWNLOADER_MIDDLEWARES": {Raising: 500}}


REFUSALS = {
    "a proxy's 407": refusal(407),
    "a proxy's 403 (X-Squid-Error)": refusal(403, X_Squid_Error="ERR_ACCESS_DENIED 0"),
    "a proxy's 200": refusal(200),
    "a proxy's 504 (Proxy-Status)": refusal(504, Proxy_Status='p.example; error="dns_timeout"'),
    "a service's 403 (Zyte-Error)": refusal(403, Zyte_Error="banned"),
}


async def crawled_through_and_then_directly(site, store, *, settings=None, meta=None):
    """What came of a crawl on which the origin can't be reached; after it a direct one is right."""
    url, stored = site.url("/private"), {"REP_STORE": store}
    first = await crawl(Request(url, meta=meta or {}), settings={**stored, **(settings or {})})
    assert first.dropped == {url: "unreachable"}
    assert first.stats["robotstxt/not_of_origin_count"] == 1
    assert (rows(store, "records"), rows(store, "leases")) == (0, 0)
    warned = [line for line in first.messages(logging.WARNING) if "was not fetched" in line]
    assert len(warned) == 1
    assert (await crawl(url, settings=stored)).dropped == {url: "rule"}
    assert site.targets == []
    assert rows(store, "records") == 1
    return warned[0]


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_of_a_proxy_is_not_the_sites(web, store, name):
    site, proxy = web.site(ALL_FORBIDDEN), web.site(paths=REFUSALS[name])
    meta = {"proxy": f"http://me:word@127.0.0.1:{proxy.port}"}
    line = await crawled_through_and_then_directly(site, store, meta=meta)
    status = name.split("'s ")[1][:3]
    assert line.startswith(
        f"robots.txt of {site.url('')} was not fetched: a proxy may have answered, not the site "
        f"(127.0.0.1:{proxy.port}, status {status}"
    )
    assert "word" not in line
    assert len(proxy.journal) == 1


@pytest.mark.parametrize("status", [403, 407, 502])
async def test_a_tunnel_that_is_refused_says_nothing_of_the_site(web, store, certificate, status):
    site = web.site(ALL_FORBIDDEN, certificate=certificate)
    proxy = web.site(paths=refusal(status))
    line = await crawled_through_and_then_directly(site, store, meta={"proxy": proxy.url("")})
    assert f"a proxy gave no answer (127.0.0.1:{proxy.port}: TunnelError: " in line


COMPONENTS = {
    "a middleware that has no network": (
        raising(ConnectionRefusedError("no database")),
        {},
        "another middleware raised builtins.ConnectionRefusedError",
    ),
    "a proxy that is down": (
        {},
        {"proxy": "http://127.0.0.1:1"},
        "a proxy gave no answer (127.0.0.1:",
    ),
}


@pytest.mark.parametrize("name", COMPONENTS)
async def test_a_component_that_fails_says_nothing_of_the_site(web, store, name):
    settings, meta, says = COMPONENTS[name]
    site = web.site(ALL_FORBIDDEN)
    line = await crawled_through_and_then_directly(site, store, settings=settings, meta=meta)
    assert says in line


WITHOUT_HANDLER = {
    "it can't be made": Unloadable,
    "it can't be imported": "no.such.module.Handler",
    "there is none": None,
}
DEFERS = {"REP_DEFER_TIMEOUT": 0.5, "REP_RETRY_DELAY": 0.1}


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "Scrapy's"])
@pytest.mark.parametrize("why", WITHOUT_HANDLER)
async def test_nobody_waits_for_a_handler_that_will_never_be_there(web, store, why, queue):
    site = web.site(ALL_FORBIDDEN)
    settings = {"REP_STORE": store, "DOWNLOAD_HANDLERS": {"http": WITHOUT_HANDLER[why]}}
    urls = [site.url(f"/{n}") for n in range(3)]
    result = await crawl(*urls, settings={**settings, **DEFERS, **queue})
    assert result.dropped == dict.fromkeys(urls, "unreachable")
    assert "robotstxt/deferred" not in result.stats
    assert result.stats["robotstxt/request_count"] == 1
    told = result.failures[0].request.meta["robotstxt"]
    assert told["next_try"] is None
    assert told["cause"].startswith("no download handler took it (NotSupported: ")
    assert ("a library is missing" in told["cause"]) == (WITHOUT_HANDLER[why] is Unloadable)
    json.dumps(told, allow_nan=False)
    assert not [text for text in result.messages() if "next try" in text]
    # It is of this process alone.
    assert (await crawl(urls[0], settings={"REP_STORE": store})).dropped == {urls[0]: "rule"}


async def test_a_machine_that_may_open_no_more_files_says_nothing_of_the_site(web):
    resource = pytest.importorskip("resource")  # not on Windows
    site = web.site(robots(""))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def opened(crawler):
        with socket.socket() as free:
            resource.setrlimit(resource.RLIMIT_NOFILE, (free.fileno(), before[1]))

    try:
        result = await crawl(site.url("/1"), opened=opened)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert list(result.dropped.values()) == ["unreachable"]
    (warning,) = result.messages(30)
    assert "this machine could not connect" in warning
    assert "This is not an error of the site" in warning
    assert result.stats["robotstxt/not_of_origin_count"] == 1


@pytest.mark.parametrize(
    ("answers", "dropped"), [(ALL_FORBIDDEN, "rule"), (answer(404), None), (answer(410), None)]
)
@pytest.mark.parametrize("way", ["proxy", "API"])
async def test_what_comes_of_the_site_through_them_is_the_sites(web, store, way, answers, dropped):
    other = web.site(paths={"/robots.txt": [answers], "/": [answers]})
    url = "http://site.example/page"
    meta = {"proxy": other.url("")} if way == "proxy" else {}
    settings = {} if way == "proxy" else through_api(other)
    result = await crawl(Request(url, meta=meta), settings={"REP_STORE": store, **settings})
    assert list(result.dropped.values()) == ([dropped] if dropped else [])
    assert rows(store, "records WHERE origin = 'http://site.example'") == 1
    assert "robotstxt/not_of_origin_count" not in result.stats


async def test_one_warning_for_each_cause_whatever_the_proxy(web):
    sites = [web.site(ALL_FORBIDDEN) for _ in range(3)]
    proxies = [web.site(paths=refusal(407)) for _ in range(2)]
    used = zip(sites, [*proxies, proxies[0]], strict=True)
    pages = [Request(site.url("/"), meta={"proxy": proxy.url("")}) for site, proxy in used]
    result = await crawl(*pages)
    assert set(result.dropped.values()) == {"unreachable"}
    assert result.stats["robotstxt/not_of_origin_count"] == 3
    told = [line for line in result.messages() if "was not fetched" in line]
    warned = [line for line in result.messages(logging.WARNING) if "robots.txt of" in line]
    assert (len(told), len(warned)) == (3, 1)


@pytest.mark.parametrize("mode", MODES[1:])
def test_the_same_in_the_other_modes(web, store, mode, certificate):
    site, proxy = web.site(ALL_FORBIDDEN), web.site(paths=refusal(407))
    tls = web.site(ALL_FORBIDDEN, certificate=certificate)
    down = f"http://127.0.0.1:{refusing_port()}"
    urls = [
        [site.url("/a"), {"proxy": proxy.url("")}],
        [tls.url("/a"), {"proxy": proxy.url("")}],
        [f"http://127.0.0.1:{refusing_port()}/a", {"proxy": down}],
    ]
    result = CrawlProcess(mode, urls, REP_STORE=store).result()
    assert set(result["dropped"].values()) == {"unreachable"}
    assert result["stats"]["robotstxt/not_of_origin_count"] == 3
    assert rows(store, "records") == 0


def answered(body=b"", status=200, url=URL, route=None, **headers):
    """An answer that came through a proxy, or by another ``route``."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    response = Response(url, status=status, headers=headers, body=body)
    route = route or {"proxy": "http://me:word@p:1"}
    transfer = Transfer(same_origin=True, **{"sent": True, **route})
    return Answer(response, transfer, body, truncated=False)


proxied = partial(answered, b"")
RULES = b"User-agent: *\nDisallow: /\n"
of_service = partial(answered, url=API, route={"rewritten": API})
of_middleware = partial(answered, route={"sent": False})
HTML = b"<html>no</html>"
THE_ORIGINS = [
    proxied(404, Via="1.1 p"),
    proxied(410),
    proxied(200, Via="1.1 p"),
    answered(RULES),
    # Of a CDN, on the other side of the tunnel.
    proxied(403, TUNNELLED, Via="1.1 cdn"),
    proxied(502, TUNNELLED, Proxy_Status="cdn; error=x"),
    proxied(403, TUNNELLED, X_Squid_Error="ERR 0"),
    answered(HTML, url=TUNNELLED),
    of_service(RULES),
    of_service(b"<html><body><pre>" + RULES + b"</pre></body></html>"),
    of_service(status=404),
    of_middleware(RULES),
    answered(status=403, route={"proxy": None}),
    answered(HTML, route={"proxy": None}),
]
NOT_KNOWN = [
    *map(proxied, (301, 400, 401, 402, 403, 405, 407, 408, 429, 451, 500, 502, 504)),
    proxied(407, TUNNELLED),
    proxied(200, Zyte_Error="x"),
    proxied(404, TUNNELLED, X_Brd_Error="x"),
    answered(HTML),
    of_service(b'{"error": "out of credits"}', Content_Type="application/json"),
    of_service(b"out of credits"),
    of_service(HTML),
    *(of_service(status=status) for status in (301, 401, 403, 500)),
    of_service(status=404, Zyte_Error="x"),
    answered(HTML, route={"proxy": None, "after_service": True}),
    of_middleware(status=404),
    of_middleware(b""),
    of_middleware(HTML),
]


def test_whose_an_answer_is():
    assert [said for said in THE_ORIGINS if route_failure_in_answer(said) is not None] == []
    assert [said for said in NOT_KNOWN if route_failure_in_answer(said) is None] == []
    failure = route_failure_in_answer(proxied(503, TUNNELLED, Zyte_Error="x" * 999))
    assert failure.what == "a proxy may have answered, not the site"
    assert failure.detail == f"p:1, status 503, Zyte-Error: {'x' * 100}"


SEEN = FetchError
"""What there is an answer of."""
OF_NETWORK = [
    OSError(), ConnectionResetError(), TimeoutError(), asyncio.TimeoutError(), socket.gaierror(),
    internet.ConnectError(), internet.ConnectionLost(), internet.DNSLookupError(), internet.SSLError(),
    internet.TimeoutError(), internet.CertificateError(), ResponseFailed([]), ResponseNeverReceived([]),
    PotentialDataLoss(), CommandFailed(), DecodingError(), FetchError(),
    *(
        getattr(exceptions, name)()
        for name in ("CannotResolveHostError", "DownloadFailedError", "ResponseDataLossError")
        if hasattr(exceptions, name)
    ),
]  # fmt: skip


@pytest.mark.parametrize("error", OF_NETWORK, ids=lambda error: type(error).__name__)
def test_an_error_of_the_network_is_the_origins_unless_it_is_a_proxys(error):
    transfer = Transfer(same_origin=True, url=URL)
    assert route_failure_in_error(error, "it", None) is None
    assert (route_failure_in_error(error, "it", transfer) is None) == isinstance(error, SEEN)
    transfer.mark_as_sent(Request(URL))
    assert route_failure_in_error(error, "it", transfer) is None
    transfer.mark_as_sent(Request(URL, meta={"proxy": "http://me:word@p:1/?key=k"}))
    through = route_failure_in_error(error, "it", transfer)
    if isinstance(error, SEEN):
        assert through is None
        return
    assert str(through) == "a proxy gave no answer (p:1: it)"
    transfer.mark_as_sent(Request("http://api/?url=a&key=k"))
    assert str(route_failure_in_error(error, "it", transfer)) == (
        "a service that was asked in the site's place gave no answer (api: it)"
    )


@pytest.mark.parametrize(
    "error", [NotSupported(), ValueError(), RequestError(), InterferenceError(), RuntimeError()]
)
def test_any_other_error_is_not_the_origins(error):
    for sent in (False, True):
        transfer = Transfer(same_origin=True, sent=sent)
        assert route_failure_in_error(error, "it", transfer) is not None


# What was found by who tried to get around it.


async def test_a_relative_redirect_that_an_api_passes_on_is_followed_on_the_site(web, store):
    site = web.site(ALL_FORBIDDEN)
    api = web.site(paths={"/": [redirect("/rules/robots.txt"), ALL_FORBIDDEN]})
    result = await crawl(site.url("/private"), settings={**through_api(api), "REP_STORE": store})
    assert result.dropped == {site.url("/private"): "rule"}
    assert [entry["target"].partition("?")[0] for entry in api.journal] == ["/", "/"]


@pytest.mark.parametrize("way", ["a refusal", "to the same host", "to another host", "for ever"])
async def test_an_answer_of_an_api_itself_is_not_the_sites(web, store, way):
    site, api = web.site(ALL_FORBIDDEN), web.site()
    answers = {
        "a refusal": answer(403, "<html>no</html>"),
        "to the same host": redirect(f"http://127.0.0.1:{api.port}/v2"),
        "to another host": redirect(
            f"http://localhost:{api.port}/v2?url={site.url('/robots.txt')}"
        ),
        "for ever": redirect("/login", 302),
    }
    api.change(paths={"*": [answers[way]]})
    line = await crawled_through_and_then_directly(site, store, settings=through_api(api))
    assert "place may have answered, not the site (" in line


@pytest.mark.parametrize("proxy", ["http://me:S3C@{}", "me:S3C@{}", "http://{}/?key=S3C"])
async def test_no_password_of_a_proxy_is_shown(web, tmp_path, proxy):
    class Late:
        def process_request(self, request):
            request.meta["proxy"] = proxy.format(f"127.0.0.1:{refusing_port()}")

    report = tmp_path / "report.json"
    result = await crawl(
        web.site(robots("")).url("/a"),
        settings={"DOWNLOADER_MIDDLEWARES": {Late: 800}, "REP_REPORT": str(report)},
    )
    assert set(result.dropped.values()) == {"unreachable"}
    assert not [line for line in result.messages() if "S3C" in line]
    assert "S3C" not in report.read_text()


async def test_the_address_of_a_service_is_not_the_sites():
    chain = Chain(origin_of("http://site.example"), deadline=1.0)
    said = of_service()
    said.response.ip_address = ip_address("127.0.0.1")
    chain.check_address(said)
    with pytest.raises(FetchError, match="private"):
        await chain.check_redirect("http://169.254.169.254/latest", indirect=said.is_indirect)


def test_what_is_tried_again_in_this_process():
    transfer = Transfer(same_origin=True, url=URL)

    def is_permanent(error):
        return route_failure_in_error(error, "it", transfer).permanent

    assert not is_permanent(NotSupported())  # of a middleware
    transfer.sent = True
    assert is_permanent(NotSupported())
    if hasattr(exceptions, "UnsupportedURLSchemeError"):
        assert not is_permanent(exceptions.UnsupportedURLSchemeError())  # of the URL of a proxy
    transfer.proxy = "socks5://a"
    assert not is_permanent(NotSupported())
