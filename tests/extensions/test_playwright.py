"""What a browser may fetch for a page: the hook of scrapy-playwright, asked by a small browser."""

import re
from dataclasses import dataclass

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

from scrapy_rep import abort_disallowed
from tests.crawling.crawl import crawl, stat
from tests.crawling.web import RULES, answer, held, robots
from tests.waiting import until

LINK = re.compile(r'src="([^"]+)"')


@dataclass
class Frame:
    url: str = "about:blank"
    parent_frame: object = None


@dataclass
class BrowserRequest:
    url: str
    navigates: bool = False
    shown_in: Frame | None = None

    def is_navigation_request(self):
        return self.navigates

    @property
    def frame(self):
        if self.shown_in is None:
            raise RuntimeError("no frame yet")
        return self.shown_in


class Browser(HTTP11DownloadHandler):
    """Fetches with a page all that it names, as a browser does."""

    async def download_request(self, request):
        if request.url.endswith("/robots.txt"):
            return await super().download_request(request)
        frame = Frame()
        if abort_disallowed(BrowserRequest(request.url, True, frame)):
            raise RuntimeError("the page was aborted")
        response = await super().download_request(request)
        frame.url = request.url
        for src in LINK.findall(response.text):
            url = response.urljoin(src)
            if not abort_disallowed(BrowserRequest(url)):
                await super().download_request(Request(url, headers=request.headers))
        return response


def page(*sources):
    links = "".join(f'<img src="{source}">' for source in sources)
    return [answer(200, f"<html>{links}</html>", headers={"Content-Type": "text/html"})]


BROWSER = {"DOWNLOAD_HANDLERS": {"http": Browser}, "USER_AGENT": "testbot/1.0"}


@pytest.mark.parametrize("dry_run", [False, True])
async def test_what_is_disallowed_is_told_and_only_fetched_for_a_page_in_a_dry_run(web, dry_run):
    site = web.site(
        robots(RULES), paths={"/page": page("/a.png", "/private/b.png", "data:image/png;base64,AA")}
    )
    result = await crawl(site.url("/page"), settings={**BROWSER, "REP_DRY_RUN": dry_run})
    assert site.targets == ["/page", "/a.png", *["/private/b.png"] * dry_run]
    assert len(site.robots_requests) == 1
    assert result.stats["robotstxt/subresource/forbidden"] == 1
    assert dry_run or any(
        line.startswith(f"Not fetched by a browser: <GET {site.url('/private/b.png')}>: Disallow: ")
        for line in result.messages()
    )


async def test_a_host_in_a_pause_is_asked_for_no_images(web):
    refusal = answer(429, headers={"Retry-After": "200"})
    other = web.site(robots(RULES), paths={"/1": [refusal]}, host="127.0.0.2")
    site = web.site(robots(RULES), paths={"/page": page(other.url("/a.png"))})
    settings = {**BROWSER, "RETRY_ENABLED": False}
    result = await crawl(other.url("/1"), settings=settings, phases=[[site.url("/page")]])
    assert other.targets == ["/1"]
    assert result.stats["robotstxt/subresource/forbidden"] == 1


class FailsAtItsStart:
    def __init__(self):
        raise ZeroDivisionError


async def test_a_crawl_of_the_process_that_failed_at_its_start_decides_nothing(web):
    site = web.site(robots(RULES), paths={"/page": page("/a.png", "/private/b.png")})
    with pytest.raises(ZeroDivisionError) as error:
        await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {FailsAtItsStart: 500}})
    await crawl(site.url("/page"), settings=BROWSER)
    assert error.tb  # it refers to the crawler that failed
    assert site.targets == ["/page", "/a.png"]


async def test_an_origin_that_is_not_known_is_looked_up_for_the_next_page(web):
    other = web.site(held(robots(RULES)))
    sources = page(other.url("/a.png"), other.url("/private/b"))
    site = web.site(robots(RULES), paths={"/1": sources, "/2": [held(sources[0])]})

    async def when_known(crawler):
        await until(lambda: stat(crawler, "robotstxt/subresource/unknown") == 2)
        other.release()
        await until(lambda: stat(crawler, "robotstxt/outcome_count/available") == 2)
        site.release()

    result = await crawl(site.url("/1"), site.url("/2"), settings=BROWSER, meanwhile=when_known)
    assert other.targets == ["/a.png"]
    assert len(other.robots_requests) == 1
    assert result.stats["robotstxt/subresource/unknown"] == 2


async def test_a_page_that_is_exempt_is_not_aborted(web):
    site = web.site(robots(RULES), paths={"/private/1": page("/private/2")})
    request = Request(site.url("/private/1"), meta={"dont_obey_robotstxt": True})
    result = await crawl(site.url("/a"), request, settings={**BROWSER, "CONCURRENT_REQUESTS": 1})
    assert "/private/1" in site.targets
    assert "/private/2" not in site.targets
    assert len(result.responses) == 2


async def test_pages_that_go_elsewhere_by_a_script_are_asked_about(web):
    site = web.site(robots(RULES))
    asked = {}

    def ask(response):
        elsewhere = Frame(response.url)
        for name, path, frame in (
            ("a page that a script opens", "/private", elsewhere),
            ("a frame in the page", "/private", Frame(parent_frame=elsewhere)),
            ("a window that opens", "/private", None),
            ("what is allowed", "/public", elsewhere),
        ):
            asked[name] = abort_disallowed(BrowserRequest(site.url(path), True, frame))

    await crawl(site.url("/a"), then=ask)
    assert asked == {
        "a page that a script opens": True,
        "a frame in the page": True,
        "a window that opens": True,
        "what is allowed": False,
    }


async def test_expired_rules_decide_on_one_image(web):
    site, other = web.site(held(answer())), web.site(robots(RULES))
    image, asked = BrowserRequest(other.url("/a.png")), []

    async def ask(_):
        await until(lambda: site.robots_requests and not abort_disallowed(image))
        asked.append(abort_disallowed(image))
        site.release()

    settings = {"REP_CACHE_TTL": 0, "REP_CACHE_TTL_MIN": 0}
    await crawl(site.url("/a"), meanwhile=ask, settings=settings)
    assert asked == [True]


async def test_without_a_crawl_that_obeys_nothing_is_aborted(web):
    site = web.site(robots("User-agent: *\nDisallow: /"), paths={"/page": page("/a.png")})
    await crawl(site.url("/page"), settings={**BROWSER, "ROBOTSTXT_OBEY": False})
    assert site.targets == ["/page", "/a.png"]
    assert not abort_disallowed(BrowserRequest(site.url("/private")))
