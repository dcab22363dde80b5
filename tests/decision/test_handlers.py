"""What download handlers make of URLs: no disallowed page is had by it."""

import asyncio

import pytest
from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_rep.decision.spellings import other_spellings
from scrapy_rep.protocol.origin import target_of
from tests.crawling.crawl import crawl
from tests.crawling.web import robots
from tests.decision.wire import Http2

SHIPPED = "scrapy.core.downloader.handlers."


def shipped(name):
    """A handler class, in the versions of Scrapy that have it."""
    module, _, name = name.rpartition(".")
    module = pytest.importorskip(SHIPPED + module, exc_type=ImportError)
    if getattr(module, "httpx", True) is None:
        pytest.skip("no httpx")
    return getattr(module, name)


def spellings(url):
    return other_spellings(url, target_of(url))


@pytest.mark.parametrize(
    ("url", "some"),
    [
        ("http://a/b;?c", {"/b?c"}),
        ("http://a/b;c?d", {"/b?d"}),
        ("http://a/b;c/d?", {"/b/d", "/b/d?", "/b;c/d"}),
        ("http://a/b%2F%3Dc//d", {"/b/=c/d", "/b/=c//d", "/b%2F=c//d"}),
        ("http://a/b%5Cc", {"/b/c"}),
        ("http://a/b/%2E./c", {"/c"}),
        ("http://a/b/.", {"/b/", "/b"}),
        ("ftp://a/b%2Fc;d?e", {"/b/c", "/b/c?e", "/b/c;d?e"}),
        # As curl_cffi sends it.
        ("http://a/a%2F%zz", {"/a%252F%25zz"}),
        ("http://a/?a=%2F%zz", {"/?a=%252F%25zz"}),
    ],
)
def test_spellings_in_which_a_url_may_be_sent(url, some):
    assert spellings(url) >= some


def test_a_url_without_other_spellings():
    assert spellings("http://a/b/c=d?e=f%20") == set()
    assert "/a%252F" not in spellings("http://a.example/a%2F")


def test_a_host_name_that_is_another_one_in_another_version_of_idna():
    with pytest.raises(ValueError, match="IDNA"):
        spellings("http://straße.example/")
    assert spellings("http://a.example/straße?ß") == set()


# In crawls.

FOR_HTTP11 = """\
User-agent: *
Disallow: /private$
Disallow: /search?
Disallow: /$
Disallow: ////a
Disallow: //a
"""


def overridden(folder, rules):
    path = folder / "rules.txt"
    path.write_text(rules)
    return [{"host": "127.0.0.1", "policy": "file", "path": str(path), "reason": "a test"}]


@pytest.mark.parametrize("by", ["site", "file"])
async def test_http11(web, tmp_path, by):
    site = web.site(robots(FOR_HTTP11 if by == "site" else ""))
    settings = {"REP_OVERRIDES": overridden(tmp_path, FOR_HTTP11)} if by == "file" else {}
    paths = ["/private;", "/search;?q=2", "/x/..;", "//a", "/privately;a"]
    await crawl(*map(site.url, paths), settings=settings)
    assert site.targets == ["/privately;a"]


@pytest.mark.parametrize("rules", ["Disallow: //a", "Disallow: ////a"])
async def test_two_slashes(web, rules):
    """Python 3.13 has four of them sent."""
    site = web.site(robots(f"User-agent: *\n{rules}\n"))
    await crawl(site.url("//a"))
    assert rules.removeprefix("Disallow: ") not in site.targets


async def test_http2(tmp_path, certificate):
    pytest.importorskip("h2")
    pytest.importorskip("scrapy.core._http2", reason="its requests may wait for ever")
    wire = Http2()
    rules = "User-agent: *\nDisallow: /p/secret?\n"

    await Deferred.fromFuture(asyncio.ensure_future(wire.open(certificate)))
    paths = ["/p/secret;jsessionid=1?q=1", "/p/open;jsessionid=1?q=1"]
    requests = [
        Request(f"https://127.0.0.1:{wire.port}{path}", headers={"X-Number": str(number)})
        for number, path in enumerate(paths)
    ]
    handlers = {"https": f"{SHIPPED}http2.H2DownloadHandler"}
    settings = {"DOWNLOAD_HANDLERS": handlers, "REP_OVERRIDES": overridden(tmp_path, rules)}
    await crawl(*requests, settings=settings)
    wire.close()
    assert wire.targets == {1: b"/p/open?q=1"}


async def test_aiohttp_by_another_name_and_for_https_alone(web, certificate):
    handler = type("Handler", (shipped("_aiohttp.AiohttpDownloadHandler"),), {})
    site = web.site(robots("User-agent: *\nDisallow: /a=b\n"), certificate=certificate)
    await crawl(
        site.url("/a%3Db"), site.url("/c%3Db"), settings={"DOWNLOAD_HANDLERS": {"https": handler}}
    )
    assert site.targets == ["/c=b"]


HTTP11, AIOHTTP = "http11.HTTP11DownloadHandler", "_aiohttp.AiohttpDownloadHandler"
VERBATIM = {"verbatim_url": True}
CUT_AT_BLANKS = (
    ["/private$", "/find?q=a$"],
    ["/private x", "/find?q=a b", "/open x", "/private%20x"],
)


@pytest.mark.rfc9112("3")
@pytest.mark.parametrize(
    ("handler", "rules", "paths", "sent", "meta"),
    [
        ("_httpx.HttpxDownloadHandler", ["/a$"], ["/a/.", "/b/."], ["/b"], {}),
        (HTTP11, ["/a$"], ["/a?", "/b?"], ["/b"], VERBATIM),
        (AIOHTTP, ["/a$"], ["/a?", "/b?"], ["/b"], VERBATIM),
        (HTTP11, *CUT_AT_BLANKS, ["/private%20x"], VERBATIM),  # sends no blank
        (AIOHTTP, *CUT_AT_BLANKS, ["/open", "/private%20x"], VERBATIM),
    ],
)
async def test_what_is_disallowed_as_it_is_sent(web, handler, rules, paths, sent, meta):
    handlers = {"DOWNLOAD_HANDLERS": {"http": shipped(handler)}, "CONCURRENT_REQUESTS": 1}
    site = web.site(robots("\n".join(["User-agent: *", *map("Disallow: {}".format, rules)])))
    await crawl(*(Request(site.url(path), meta=meta) for path in paths), settings=handlers)
    assert sorted(site.targets) == sent


@pytest.mark.rfc9112("3")
@pytest.mark.parametrize("blank", [" ", "\t", "\v", "\f", "\r", "\n", "  "])
def test_a_server_may_end_the_target_at_a_blank(blank):
    assert "/a" in spellings(f"http://a.example/a{blank}b")
    assert "/a" not in spellings("http://a.example/a%20b")
