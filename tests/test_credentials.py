"""Passwords in URLs stand in no line of the log, no report, no evidence and no exception."""

import json
import logging

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

from scrapy_rep import abort_disallowed
from scrapy_rep.settings import INTERACTIVE
from scrapy_rep.utils.text import without_credentials
from tests.crawling.crawl import ListSpider, closing_when, crawl, stat
from tests.crawling.web import HANGS, RULES, page, redirect, robots
from tests.extensions.evidence import lines as lines_of
from tests.extensions.test_playwright import BrowserRequest
from tests.spidermiddlewares.items import Declared, Frozen
from tests.test_spiders import SitemapSpider

PASSWORD = "hush-hush"
LICENSE = f'<https://me:{PASSWORD}@a.example/l>; rel="license"; type="application/rsl+xml"'


PAGES = {
    "/noindex": page("<meta name=robots content=noindex>"),
    "/nofollow": page("<meta name=robots content=nofollow><a href=/nofollow/next>"),
    "/noai": page("<meta name=robots content=noai>", Link=LICENSE),
    "/many": page("<meta name=robots content=all>" * 3_000),
    "/unreadable": page(
        r"<meta name=robots content=all>\ud800", Content_Type="text/html; charset=unicode_escape"
    ),
    "/leads": [redirect("/private/led")],
}


class TakesUserinfo(HTTP11DownloadHandler):
    """Takes userinfo for what it is, and follows redirects by itself, as browsers do."""

    async def download_request(self, request):
        url, response = request.url, None
        while response is None or ("Location" in response.headers and "robots.txt" not in url):
            if response is not None:
                url = response.urljoin(response.headers["Location"].decode())
            sent = Request(without_credentials(url), headers=request.headers, meta=request.meta)
            response = (await super().download_request(sent)).replace(url=url)
        return response


class NoAnswer:
    """Can't be asked whether it is true."""

    def __bool__(self):
        raise RuntimeError("nobody knows")


class ItemSpider(ListSpider):
    def parse(self, response):
        yield Declared()
        yield Frozen()
        yield Request(f"{response.url}/next", callback=self.parse_next)

    def parse_next(self, response):
        pass


class Stored(ListSpider):
    name = "stored"


class Renamed(Stored):
    """Has a callback that Stored has not."""

    def prepare(self, request):
        return Request(request, callback=self.gone)

    def gone(self, response):
        pass


def with_password(site, path="/"):
    return site.url(path).replace("//", f"//me:{PASSWORD}@")


def told(result):
    """Return all that a crawl says by ``scrapy_rep``, its tracebacks and exceptions too."""
    formatter = logging.Formatter()
    texts = [formatter.format(r) for r in result.records if r.name.startswith("scrapy_rep")]
    texts += [f"{failure.value} {failure.value!r}" for failure in result.failures]
    return [*texts, *map(str, result.stats)]


def assert_silent(texts):
    assert [text for text in texts if PASSWORD in text] == []


SETTINGS = {
    "DOWNLOAD_HANDLERS": {"http": TakesUserinfo},
    "REP_PURPOSES": ["ai-training"],
    "ROBOTSTXT_USER_AGENT": "testbot",
}
ITEMS = ("noindex", "usage preferences, ai-training: disallow")
FIELDS = ("robots_noindex", "robots_usage")
DISALLOWED = "Forbidden by robots.txt: <GET {}/private>: "


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        (
            {},
            [
                DISALLOWED,
                *(f"Error while setting {name} of an item of '{{}}/no" for name in FIELDS),
                "Ignoring link (nofollow in robots meta tag or X-Robots-Tag of {}/nofollow): <GET {}/",
                "Too many robots tags, the page is treated as none: '{}/many'",
                "The meta elements of '{}/unreadable' can't be read",
                "Dropped the response to <GET {}/leads>: its download handler followed a redirect",
                "Error while obeying robots.txt, the request is dropped: <GET {}/purposes>",
                "Error while asking what governs <GET {}/odd>",
            ],
        ),
        (
            {"REP_META_TAGS": "drop", "REP_USAGE_ACTION": "drop-items"},
            [f"Dropped item ({why}): '{{}}/no" for why in ITEMS],
        ),
        (
            {"REP_META_TAGS": "drop", "REP_USAGE_ACTION": "drop-items", "REP_DRY_RUN": True},
            [
                "Dry run, would drop <GET {}/private>: ",
                *(f"Dry run, would drop item ({why}): '{{}}/no" for why in ITEMS),
                "Error while obeying robots.txt, the request is sent, as this is a dry run: <GET {}",
            ],
        ),
    ],
    ids=["mark", "drop", "dry run"],
)
async def test_no_line_of_a_crawl_has_a_password(web, tmp_path, settings, lines):
    site = web.site(robots(RULES), paths=PAGES)
    report, evidence = tmp_path / "report.json", tmp_path / "evidence.jsonl"
    result = await crawl(
        *(with_password(site, path) for path in (*PAGES, "/private")),
        Request(with_password(site, "/purposes"), meta={"robotstxt_purposes": ["no such"]}),
        Request(with_password(site, "/odd"), meta={"dont_obey_robotstxt": NoAnswer()}),
        settings={**SETTINGS, "REP_REPORT": report, "REP_EVIDENCE": evidence, **settings},
        spidercls=ItemSpider,
    )
    assert_silent([*told(result), report.read_text(), *map(json.dumps, lines_of(evidence))])
    messages = result.messages()
    url = site.url("")
    begins = [line.replace("{}", url) for line in lines]
    assert [b for b in begins if not any(m.startswith(b) for m in messages)] == []


async def test_no_line_about_a_request_on_disk_has_a_password(web, tmp_path):
    site = web.site(HANGS, robots(RULES))
    settings = {**SETTINGS, "JOBDIR": str(tmp_path)}
    stored = closing_when(lambda crawler: stat(crawler, "scheduler/enqueued/disk"))
    await crawl(with_password(site), settings=settings, meanwhile=stored, spidercls=Renamed)
    result = await crawl(settings=settings, spidercls=Stored)
    assert_silent(told(result))
    (line,) = result.messages(logging.ERROR)
    assert line.startswith(f"Unable to read request: <GET {site.url('/')}> - reason: ")


async def test_nothing_that_is_told_to_people_has_a_password(web, capsys):
    site = web.site(robots(RULES))
    await crawl(with_password(site, "/private"), settings={**SETTINGS, INTERACTIVE: True})
    told = capsys.readouterr().err
    assert f"Forbidden by robots.txt: <GET {site.url('/private')}>: " in told
    assert PASSWORD not in told


async def test_no_line_about_a_browser_has_a_password(web):
    site = web.site(robots(RULES))

    def then(response):
        assert abort_disallowed(BrowserRequest(with_password(site, "/private")))
        assert abort_disallowed(BrowserRequest(f"http://me:{PASSWORD}@[::1/"))

    result = await crawl(site.url("/"), settings=SETTINGS, then=then)
    assert_silent(told(result))
    assert any(site.url("/private") in line for line in result.messages())
    line = "Error while obeying robots.txt, the browser is not to fetch 'http://[::1/'"
    assert line in result.messages()


async def test_no_line_about_sitemaps_has_a_password(web):
    site = web.site(robots(f"Sitemap: ftp://me:{PASSWORD}@a.example/map.xml"))
    urls = [
        with_password(site, "/robots.txt"),
        f"http://me:{PASSWORD}@a.example:99999/robots.txt",
    ]
    result = await crawl(*urls, spidercls=SitemapSpider)
    assert_silent(told(result))
    error = "Error while looking for the sitemaps of 'http://a.example:99999/robots.txt'"
    assert error in result.messages()
