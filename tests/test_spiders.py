"""Sitemaps by way of robots.txt; and the line in the log that says where the crawl stands."""

import logging

import pytest

from scrapy_rep import RobotsSitemapSpider
from tests.crawling.crawl import SETTINGS, closing_when, crawl, releasing_when
from tests.crawling.process import CrawlProcess
from tests.crawling.web import answer, held, redirect, robots
from tests.waiting import PATIENCE


class SitemapSpider(RobotsSitemapSpider):
    name = "sitemaps"
    settings_before = SETTINGS

    def __init__(self, requests=(), crawl=None, then=None, **kwargs):
        super().__init__(**kwargs)
        self.sitemap_urls = requests
        self.crawl = crawl

    def parse(self, response):
        self.crawl.responses.append(response)


def sitemap(*urls):
    locations = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    xmlns = "http://www.sitemaps.org/schemas/sitemap/0.9"
    body = f'<?xml version="1.0"?><urlset xmlns="{xmlns}">{locations}</urlset>'
    return [answer(200, body, headers={"Content-Type": "application/xml"})]


@pytest.mark.spec("L-6")
async def test_a_crawl_begins_with_the_sitemaps_of_robots_txt(web):
    other = web.site(answer(404))
    other_map = sitemap(other.url("/2"))
    pages = web.site(answer(404), paths={"/one.xml": other_map, "/direct.xml": sitemap()})
    body = (
        f"Sitemap: {pages.url('/one.xml')}\nSitemap: {pages.url('/one.xml')}\n"
        "Sitemap: /two.xml\nSitemap: ftp://a.example/x.xml\nUser-agent: *\nDisallow: /private\n"
    )
    site = web.site(redirect("/r"), paths={"/r": [robots(body)]})
    # A sitemap that a site names by a path alone is taken for one of its own, as Scrapy does.
    urls = [site.url("/robots.txt"), pages.url("/direct.xml")]
    assert (await crawl(*urls, spidercls=SitemapSpider)).fetched == [other.url("/2")]
    assert sorted(pages.targets) == ["/direct.xml", "/one.xml"]
    assert site.targets == ["/r", "/two.xml"]
    # Once for the sitemaps and for the pages.
    assert len(site.robots_requests) == 1


@pytest.mark.parametrize(
    ("answered", "settings", "requests", "says"),
    [
        (answer(404), {}, 1, "names none"),
        # It is not tried for longer than pages are deferred.
        (answer(503), {"REP_DEFER_TIMEOUT": 0}, 1, "is unreachable"),
        # Nobody waits for a try that will not come.
        (
            robots("Sitemap: /one.xml"),
            {"REP_DEFER_TIMEOUT": 10 * PATIENCE, "DOWNLOAD_HANDLERS": {"http": None}},
            0,
            "is unreachable",
        ),
    ],
)
async def test_a_warning_where_there_are_no_sitemaps(web, answered, settings, requests, says):
    site = web.site(answered)
    result = await crawl(site.url("/robots.txt"), spidercls=SitemapSpider, settings=settings)
    assert f"No sitemaps: {site.url('/robots.txt')} {says}" in result.messages(logging.WARNING)
    assert len(site.robots_requests) == requests


async def test_a_robots_txt_that_is_unreachable_is_tried_again(web):
    pages = web.site(answer(404))
    site = web.site(
        answer(503), robots("Sitemap: /one.xml"), paths={"/one.xml": sitemap(pages.url())}
    )
    settings = {"REP_DEFER_TIMEOUT": 300, "REP_RETRY_DELAY": 0.4}
    result = await crawl(site.url("/robots.txt"), spidercls=SitemapSpider, settings=settings)
    assert result.fetched == [pages.url()]
    assert len(site.robots_requests) == 2


async def test_sites_that_hang_hold_up_the_sitemaps_of_no_other(web):
    hanging = [web.site(held(robots(""))) for _ in range(4)]
    site = web.site(robots("Sitemap: /one.xml"), paths={"/one.xml": sitemap()})
    at_last = releasing_when(lambda _: site.targets == ["/one.xml"], *hanging)
    urls = [each.url("/robots.txt") for each in (*hanging, site)]
    await crawl(*urls, spidercls=SitemapSpider, meanwhile=at_last)
    assert [len(each.robots_requests) for each in hanging] == [1] * 4


async def test_a_crawl_may_close_while_a_robots_txt_is_waited_for(web):
    hanging, failing = web.site(held(robots(""))), web.site(answer(503))

    both_asked = closing_when(lambda _: hanging.robots_requests and failing.robots_requests)
    urls = [hanging.url("/robots.txt"), failing.url("/robots.txt")]
    long = {"REP_RETRY_DELAY": PATIENCE, "REP_RETRY_DELAY_MAX": PATIENCE}
    settings = {"REP_DEFER_TIMEOUT": PATIENCE, **long}
    result = await crawl(*urls, spidercls=SitemapSpider, settings=settings, meanwhile=both_asked)
    assert result.stats["finish_reason"] == "enough"
    assert result.messages(logging.ERROR, "") == []


def test_a_crawl_without_asyncio_may_close_while_a_robots_txt_is_waited_for(web):
    site = web.site(answer(503))
    script = [["stats", {"robotstxt/outcome_count/unreachable": 1}], ["close"]]
    own = {"spider": f"{__name__}.SitemapSpider", "script": script}
    settings = {"REP_DEFER_TIMEOUT": PATIENCE, "REP_RETRY_DELAY": PATIENCE}
    result = CrawlProcess("select", [site.url("/robots.txt")], **own, **settings).result()
    assert result["stats"]["finish_reason"] == "enough"
    # Scrapy itself logs an error about its start requests.
    assert "ERROR: Error while looking for the sitemaps" not in result["log"]


async def test_what_is_no_url_is_left_out(web):
    site = web.site(
        robots("Sitemap: http://[bad\nSitemap: http://a:b/\nSitemap: /one.xml\n"),
        paths={"/one.xml": sitemap()},
    )
    urls = ["http://[bad/robots.txt", "words/robots.txt", site.url("/robots.txt")]
    result = await crawl(*urls, spidercls=SitemapSpider)
    assert site.targets == ["/one.xml"]
    errors = result.messages(logging.ERROR)
    assert [text.rpartition(" ")[2] for text in errors] == [ascii(url) for url in urls[:2]]
