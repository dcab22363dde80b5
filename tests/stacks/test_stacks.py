"""Crawls with packages that people use with Scrapy: a row each, and those that take more than a row."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass

import pytest
from twisted.internet.threads import deferToThread

from tests.crawling.web import redirect
from tests.stacks.endpoints import Endpoint, Proxy, UrlAPI, ZyteAPI
from tests.stacks.h2_web import H2Web
from tests.stacks.sites import SPECIAL
from tests.stacks.stack import EVERY

HANDLERS = "scrapy.core.downloader.handlers"
BIG = (*EVERY, "big")
MOVED = ("moved/private/moved",)
"""What a browser or an API fetches in place of a page: the redirect is followed inside."""
MOVED_IS_DROPPED = {"known": MOVED, "dropped": ["moved/moved"]}
OUT_OF_BROWSERS = ("plain", "none", "down", "agents", "big")
SUBRESOURCES = [f"rich/private/{name}" for name in ("pixel.png", "api", "s.js", "left")]


@dataclass
class Case:
    package: str
    case: str
    settings: dict
    """With ``{endpoint}`` and the names of some fixtures, such as ``{redis}``, for their values."""
    _: KW_ONLY
    needs: tuple[str, ...] = ()
    """The packages, by the names of their modules."""
    sites: tuple[str, ...] = EVERY
    meta: dict | None = None
    spider: str = "StackSpider"
    crawls: int = 1
    endpoint: type[Endpoint] | None = None
    """What stands between crawl and sites."""
    fetched: list[str] = ()
    """What came to the callback, among others."""
    dropped: list[str] = ()
    """What was dropped, as rules disallow what it led to."""
    known: tuple[str, ...] = ()
    missing: list[str] | bool = ()
    """What does not arrive though it is allowed; True: all."""


def by_handler(path, package="", case="", needs=(), **more):
    settings = {"DOWNLOAD_HANDLERS": {"http": path, "https": path}, **more.pop("settings", {})}
    return Case(package, case, settings, needs=needs, **more)


def on_all(meta, **middlewares):
    """Return settings with a middleware that puts ``meta`` on all requests."""
    middlewares["tests.stacks.parts.MetaOnAll"] = 543
    return {"DOWNLOADER_MIDDLEWARES": middlewares, "META_ON_ALL": meta}


def of_scrapy():
    # _httpx takes no transfer coding but chunked.
    for package, module, name, missing in (
        ("httpx2", "_httpx", "HttpxDownloadHandler", ["packed/page"]),
        ("aiohttp", "_aiohttp", "AiohttpDownloadHandler", []),
    ):
        for reactor in (True, False):
            yield by_handler(
                f"{HANDLERS}.{module}.{name}",
                package,
                f"its handler, {'with' if reactor else 'without'} a reactor",
                # Scrapy 2.14 has none of these.
                (package, f"{HANDLERS}.{module}"),
                settings={"TWISTED_REACTOR_ENABLED": reactor},
                sites=(*BIG, "packed"),
                missing=missing,
            )


def libcurl():
    """Pages by libcurl, with the fingerprint of a browser."""
    chrome = {"impersonate": "chrome"}
    for name, handler, meta in (
        ("impersonate", "ImpersonateDownloadHandler", chrome),
        ("curl_cffi", "handlers.CurlCffiDownloadHandler", {"curl_cffi_options": chrome}),
    ):
        for case, more in (
            ("meta of each page; a robots.txt of 40 MB", {"meta": meta}),
            ("meta on all", {"settings": on_all(meta)}),
        ):
            module, package = f"scrapy_{name}", f"scrapy-{name.replace('_', '-')}"
            yield by_handler(f"{module}.{handler}", package, case, (module,), sites=BIG, **more)


def playwright():
    """Pages by a real Chromium; robots.txt by Scrapy's own handler."""
    options = "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    arguments = [f"--{each}" for each in f"{options} disable-component-update disable-sync".split()]
    launch = {
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": "{browser}", "args": arguments},
    }
    meta = {"playwright": True}
    hook = {"PLAYWRIGHT_ABORT_REQUEST": "scrapy_rep.abort_disallowed"}

    def row(case, sites, meta=meta, settings=None, **came):
        return by_handler(
            "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
            "scrapy-playwright",
            case,
            ("scrapy_playwright",),
            sites=sites,
            meta=meta,
            settings={**launch, **(settings or {})},
            **came,
        )

    return [
        row("meta of each page", OUT_OF_BROWSERS),
        row("meta on all by a middleware", OUT_OF_BROWSERS, None, on_all(meta)),
        row("a redirect inside the browser", ("moved",), **MOVED_IS_DROPPED),
        row("what pages fetch, without the hook", ("rich",), known=SUBRESOURCES, fetched=["rich/rich"], dropped=["rich/leaves"]),
        row("what pages fetch, with the hook", ("rich",), settings=hook, fetched=["rich/rich"]),
    ]  # fmt: skip


def poet():
    """Page objects as arguments of callbacks."""
    for spider, case, missing in (
        ("PoetSpider", "page objects", ()),
        # Nothing is downloaded for a callback that needs no response.
        ("PoetDummySpider", "callbacks without a response", True),
    ):
        settings = {"ADDONS": {"scrapy_poet.Addon": 300, "scrapy_rep.Addon": 500}}
        more = {"needs": ("scrapy_poet",), "spider": spider, "missing": missing}
        yield Case("scrapy-poet", case, settings, **more)


def redis():
    """Its scheduler, and the store in the same Redis."""
    settings = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": "{redis}",
        "REP_STORE": "{redis}",
    }
    deferring = {**settings, "REP_DEFER_TIMEOUT": 300}
    needs = {"needs": ("scrapy_redis",)}
    case = "unreachable deferred (not with this queue)"
    yield Case("scrapy-redis", "two crawls, one after the other", settings, crawls=2, **needs)
    yield Case("scrapy-redis", case, deferring, **needs)


ROTATING = {
    "DOWNLOADER_MIDDLEWARES": {
        "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
        "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
    },
    "ROTATING_PROXY_LIST": ["{endpoint}"],
    "ROTATING_PROXY_PAGE_RETRY_TIMES": 5,
}
ZYTE = {
    "ADDONS": {"scrapy_zyte_api.Addon": 400, "scrapy_rep.Addon": 500},
    "ZYTE_API_KEY": "key",
    "ZYTE_API_URL": "{endpoint}/v1/",
}


def apis():
    """Services that fetch pages, such as one that is given their URLs in one of its own."""
    settings = {
        "DOWNLOADER_MIDDLEWARES": {"tests.stacks.parts.ThroughAPI": 560},
        "API_URL": "{endpoint}",
    }
    ignore = {"host": "localhost", "policy": "ignore", "reason": "the API that we pay for"}
    own = {"endpoint": UrlAPI}
    ignoring = {**settings, "REP_OVERRIDES": [ignore]}
    yield Case("an API by its URL", "with an override for it", ignoring, known=MOVED, **own)
    # What its own robots.txt disallows is all of it.
    yield Case("an API by its URL", "without an override", settings, missing=True, **own)
    own = {"needs": ("rotating_proxies",), "endpoint": Proxy}
    yield Case("scrapy-rotating-proxies", "a proxy that relays", ROTATING, **own)
    html = {"browserHtml": True}
    for case, more, came in (
        (
            "transparent mode, followRedirect off",
            {"ZYTE_API_AUTOMAP_PARAMS": {"followRedirect": False}},
            {},
        ),
        ("transparent mode", {}, MOVED_IS_DROPPED),
        ("automap, browserHtml for all", {"ZYTE_API_AUTOMAP_PARAMS": html}, MOVED_IS_DROPPED),
        (
            "meta of each page, browserHtml",
            {"ZYTE_API_TRANSPARENT_MODE": False},
            {**MOVED_IS_DROPPED, "meta": {"zyte_api_automap": html}},
        ),
    ):
        own = {"needs": ("scrapy_zyte_api",), "endpoint": ZyteAPI}
        yield Case("scrapy-zyte-api", case, {**ZYTE, **more}, **own, **came)


PLAYWRIGHT = playwright()
CASES = [
    pytest.param(case, id=f"{case.package}: {case.case}", marks=pytest.mark.needs(*case.needs))
    for cases in (of_scrapy(), libcurl(), PLAYWRIGHT, poet(), redis(), apis())
    for case in cases
]


@pytest.fixture
def filled(request, endpoint):
    """A function that returns settings with what stands between filled in, and that."""

    def fill(settings, kind=None, refusal=None):
        text = json.dumps(settings)
        own = kind and endpoint(kind, refusal)
        values = {"endpoint": own.url} if own else {}
        for name in ("browser", "redis"):
            if f"{{{name}}}" in text:
                values[name] = request.getfixturevalue(name)
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return json.loads(text), own

    return fill


@pytest.mark.parametrize("case", CASES)
def test_a_crawl_with_a_package(case, stack, filled):
    sites = stack.sites(*case.sites)
    settings, _ = filled(case.settings, case.endpoint)
    for _ in range(case.crawls):
        told = stack.crawl(sites, settings=settings, meta=case.meta, spider=case.spider)
    missing = sites.reach() if case.missing is True else case.missing
    stack.check(sites, known=case.known, missing=missing)
    assert [each for each in case.fetched if told["fetched"].count(sites.url_of(each)) != 1] == []
    assert [each for each in case.dropped if told["dropped"][sites.url_of(each)] != "rule"] == []
    private = {url for url in told["fetched"] if "/private" in url}
    assert private <= {sites.url_of(each) for each in sites.reach()}
    # The 404 and the 503 are the sites' answers; that of the page at the 404 is its policy's.
    assert told["stats"].get("bans/status/503") is None


@pytest.mark.parametrize(
    ("kind", "settings", "refusal"),
    [
        pytest.param(kind, settings, refusal, marks=pytest.mark.needs(module))
        for module, kind, settings, refusals in (
            ("rotating_proxies", Proxy, ROTATING, (403, 407, 502)),
            ("scrapy_zyte_api", ZyteAPI, ZYTE, (401,)),
        )
        for refusal in refusals
    ],
)
def test_what_a_proxy_or_an_api_refuses_says_nothing_of_the_sites(
    stack, filled, kind, settings, refusal
):
    sites = stack.sites("plain", "none")
    store = {"REP_STORE": f"sqlite:///{(stack.folder / 'robots.sqlite').as_posix()}"}
    settings, endpoint = filled({**settings, **store}, kind, refusal)
    stack.crawl(sites, settings=settings)
    assert sites.journal() == []
    # Of each site, once.
    assert len(endpoint.robots_requests()) <= 2
    stack.crawl(sites, settings=store)
    stack.check(sites)


@pytest.mark.needs("scrapy_playwright")
def test_chromium_waits_for_the_robots_txt_that_it_is_led_to(stack, filled):
    sites = stack.sites("plain", "moved")
    sites.open["moved"].change(paths={"/moved": [redirect(sites.url("plain"), 302)]})
    case = PLAYWRIGHT[-1]
    settings, _ = filled(case.settings)
    moved = [sites.url("moved", "/moved")]
    told = stack.crawl(sites, settings=settings, meta=case.meta, urls=moved)
    stack.check(sites)
    assert told["fetched"] == [sites.url("plain")]
    assert sites.robots_requests() == {"plain": 1, "moved": 1}


@pytest.mark.needs("h2", "priority")
@pytest.mark.filterwarnings("ignore:Passing pyOpenSSL")  # as Twisted does
async def test_http2(stack, certificate):
    stack.web = H2Web(certificate)
    sites = stack.sites(*BIG)
    handler = {"https": f"{HANDLERS}.http2.H2DownloadHandler"}
    await deferToThread(stack.crawl, sites, settings={"DOWNLOAD_HANDLERS": handler})
    assert {headers["protocol"] for _, _, headers in sites.journal()} == {"HTTP/2"}
    stack.check(sites)
    await stack.web.close()


@pytest.mark.parametrize(
    ("kind", "pipeline"),
    [
        ("files", "FilesPipeline"),
        pytest.param("images", "ImagesPipeline", marks=pytest.mark.needs("PIL")),
    ],
)
def test_media_pipelines_which_download_past_the_scheduler(stack, kind, pipeline):
    sites = stack.sites("plain", "moved", "none", "down")
    settings = {
        "ITEM_PIPELINES": {f"scrapy.pipelines.{kind}.{pipeline}": 1},
        f"{kind.upper()}_STORE": str(stack.folder / "media"),
        "MEDIA_ALLOW_REDIRECTS": True,
        "ITEM": {f"{kind[:-1]}_urls": sites.urls, kind: []},
    }
    stack.crawl(sites, settings=settings, urls=[sites.url("plain")], spider="MediaSpider")
    stack.check(sites)


@pytest.mark.parametrize("order", [50, 400, 560, 700])
def test_a_user_agent_put_on_at(stack, order):
    sites = stack.sites("agents", "plain", "moved")
    urls = [*sites.urls, *(sites.url("agents", path) for path in ("/special/a", "/private/a"))]
    middlewares = {"tests.stacks.parts.AgentOnAll": order}
    settings = {"DOWNLOADER_MIDDLEWARES": middlewares, "AGENT_ON_ALL": SPECIAL}
    told = stack.crawl(sites, settings=settings, urls=urls)
    stack.check(sites)
    # The middleware, at 100, sees what was put on before it; the last one asks about what was put on after.
    assert (sites.url("agents", "/private/a") in told["fetched"]) == (order < 100)


@pytest.mark.needs("scrapy_user_agents", "scrapy_fake_useragent")
@pytest.mark.parametrize(
    "module", ["scrapy_user_agents.middlewares", "scrapy_fake_useragent.middleware"]
)
def test_random_user_agents(stack, module):
    sites = stack.sites()
    builtin = "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware"
    settings = {
        "DOWNLOADER_MIDDLEWARES": {builtin: None, f"{module}.RandomUserAgentMiddleware": 400},
        # Without it scrapy-fake-useragent 1.4.4 finds no agents with the newest fake-useragent.
        "FAKEUSERAGENT_FALLBACK": "Mozilla/5.0",
    }
    stack.crawl(sites, settings=settings)
    sent = {headers["user-agent"] for _, _, headers in sites.journal()}
    assert "mozilla" in "".join(sent)
    stack.check(sites)


MONITORS = {
    "SPIDERMON_ENABLED": True,
    "EXTENSIONS": {"spidermon.contrib.scrapy.extensions.Spidermon": 500},
    "SPIDERMON_SPIDER_CLOSE_MONITORS": ["tests.stacks.parts.Monitors"],
    # Each disallowed request is an exception of the downloader, as with the built-in.
    "SPIDERMON_MAX_DOWNLOADER_EXCEPTIONS": 4,
    "SPIDERMON_MAX_ERRORS": 0,
    # One tells of the site that is down.
    "SPIDERMON_MAX_WARNINGS": 1,
    "SPIDERMON_MAX_RETRIES": 0,
    "SPIDERMON_UNWANTED_HTTP_CODES": {"500": 0, "502": 0, "503": 1, "504": 0},
}


@pytest.mark.needs("spidermon")
def test_monitors_of_spidermon(stack):
    sites = stack.sites()
    told = stack.crawl(sites, settings=MONITORS)
    lines = [line for line in told["log"].splitlines() if "[Spidermon]" in line]
    assert [line for line in lines if line.endswith("OK")] != []
    stack.check(sites)
    assert [line for line in lines if line.endswith("... FAIL")] == [], told["log"]
