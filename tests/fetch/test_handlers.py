"""Handlers that stop a transfer when told to, and those that take it to its end."""

import logging

import pytest
import scrapy
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_rep.settings import MAX_TRANSFER, can_be_stopped
from tests.crawling.crawl import OfCrawler, crawl
from tests.crawling.web import answer, robots

HANDLERS = "scrapy.core.downloader.handlers."
RULES = b"User-agent: *\nDisallow: /private\n"


class Derived(HTTP11DownloadHandler):
    pass


class Whole(OfCrawler):
    """Takes a body to its end before anybody sees it."""

    lazy = True
    asked: dict

    async def download_request(self, request):
        self.asked[request.url] = request.meta.get("download_maxsize")
        body = RULES + b"Disallow: /x\n" * 100_000
        return Response(request.url, body=body if request.url.endswith("robots.txt") else b"a page")

    async def close(self):
        pass


def stoppable(handler):
    return can_be_stopped(Settings({"DOWNLOAD_HANDLERS": {"http": handler}}), "http")


def test_scrapys_own_handlers_can_be_stopped_and_others_are_not_known_to():
    for scheme in ("http", "https"):
        assert can_be_stopped(Settings(), scheme)
    assert stoppable(Derived)
    assert not can_be_stopped(Settings(), "ftp")
    assert not can_be_stopped(Settings(), "gopher")
    for other in (None, "nowhere.Handler", 5, Whole, lambda crawler: None):
        assert not stoppable(other)


@pytest.mark.parametrize(
    ("module", "name", "since"),
    [
        ("http2", "H2DownloadHandler", (2, 18)),
        ("_httpx", "HttpxDownloadHandler", (2, 15)),
        ("_aiohttp", "AiohttpDownloadHandler", (2, 19)),
    ],
)
def test_scrapys_other_handlers_can_be_since_a_version(module, name, since):
    pytest.importorskip(HANDLERS + module)
    assert stoppable(f"{HANDLERS}{module}.{name}") == (scrapy.version_info >= since)


class Other(Whole):
    async def download_request(self, request):
        return Response(request.url, body=b"a page")


async def test_another_scheme_is_told_of_once(web):
    handlers = {"gemini": Other, "s3": Other}
    urls = ["gemini://a.example/1", "GEMINI://b.example/2", "s3://bucket/1"]
    unchecked = ["data:text/plain,hello", "file:///etc/hostname", web.site(robots("")).url("/")]
    result = await crawl(*urls, *unchecked, settings={"DOWNLOAD_HANDLERS": handlers})
    assert len(result.responses) == 6
    assert sorted(result.messages(logging.WARNING)) == [
        f"No robots.txt is obeyed for {scheme} URLs, only for http, https and ftp: <GET {url}> is "
        "sent, and all others of this scheme"
        for scheme, url in (("gemini", urls[0]), ("s3", urls[2]))
    ]


@pytest.mark.spec("F-13")
async def test_a_handler_that_cannot_be_stopped_is_given_a_bound(web):
    Whole.asked = {}
    urls = ["http://site.example/private", "http://site.example/public"]
    result = await crawl(*urls, settings={"DOWNLOAD_HANDLERS": {"http": Whole}})
    assert result.dropped == {urls[0]: "rule"}
    assert result.fetched == [urls[1]]
    assert Whole.asked["http://site.example/robots.txt"] == MAX_TRANSFER
    assert result.stats["robotstxt/response_bytes"] <= 512_000


@pytest.mark.spec("F-13")
async def test_a_larger_file_than_the_bound_is_cut_where_it_can_be(web):
    size = 2 * MAX_TRANSFER
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{RULES.decode()}"
    site = web.site([["send", head], ["repeat", "Disallow: /y\n" * 10_000, 5, 0], ["hold"]])
    result = await crawl(site.url("/private"), site.url("/public"))
    assert result.dropped == {site.url("/private"): "rule"}
    assert site.targets == ["/public"]


async def test_one_that_is_refused_for_its_size_is_the_sites(web, monkeypatch):
    monkeypatch.setattr("scrapy_rep.fetch.fetcher.can_be_stopped", lambda *_: False)
    site = web.site(robots("#\n" * MAX_TRANSFER), answer(200))
    result = await crawl(site.url("/page"))
    assert result.dropped == {site.url("/page"): "unreachable"}
    assert "robotstxt/not_of_origin_count" not in result.stats
