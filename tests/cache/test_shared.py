"""Crawls of one process share a store and the entries in memory."""

import sqlite3
from contextlib import closing
from pathlib import Path

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import ensureDeferred

from tests.crawling.crawl import ListSpider, closing_when, crawl
from tests.crawling.web import held, robots

RULES = "User-agent: *\nDisallow: /private\n"


async def test_a_crawl_goes_on_with_what_it_shares_when_another_one_ends(web):
    site = web.site(robots(RULES))
    settings = {"REP_STORE": "memory://"}

    class OuterSpider(ListSpider):
        async def parse(self, response):
            if response.url.endswith("/a"):
                inner = ensureDeferred(crawl(site.url("/b"), settings=settings))
                await maybe_deferred_to_future(inner)
                yield self.prepare(site.url("/c"))

    await crawl(site.url("/a"), settings=settings, spidercls=OuterSpider)
    assert [page["target"] for page in site.journal] == ["/robots.txt", "/a", "/b", "/c"]


async def test_a_crawl_without_delays_leaves_them_to_another_one(web):
    site = web.site(robots(f"{RULES}Crawl-delay: 0.2\n"))
    settings = {"REP_STORE": "memory://"}
    inner = []

    class OuterSpider(ListSpider):
        async def parse(self, response):
            begun = ensureDeferred(crawl(site.url("/b"), site.url("/c"), settings=settings))
            inner.append(await maybe_deferred_to_future(begun))

    await crawl(
        site.url("/a"), settings={**settings, "REP_CRAWL_DELAY_MAX": 0}, spidercls=OuterSpider
    )
    assert len(site.robots_requests) == 1
    assert inner[0].stats["robotstxt/turns"] == 2


async def test_the_last_crawl_to_end_closes_the_store(web, tmp_path):
    site = web.site(robots(RULES))
    path = tmp_path / "robots.sqlite"
    write_ahead_log = Path(f"{path}-wal")
    was_open = []
    await crawl(
        site.url("/a"),
        settings={"REP_STORE": f"sqlite:///{path}"},
        then=lambda _: was_open.append(write_ahead_log.exists()),
    )
    assert path.exists()
    assert was_open == [True]
    assert not write_ahead_log.exists()


async def test_a_crawl_that_is_closed_releases_its_lease_before_the_store_is_closed(web, tmp_path):
    site = web.site(held(robots(RULES)))
    path = tmp_path / "robots.sqlite"
    during_the_lookup = closing_when(lambda _: site.robots_requests)
    settings = {"REP_STORE": f"sqlite:///{path}"}
    await crawl(site.url("/a"), settings=settings, meanwhile=during_the_lookup)
    assert not Path(f"{path}-wal").exists()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM leases").fetchone() == (0,)
