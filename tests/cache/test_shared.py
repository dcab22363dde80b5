"""Crawls of one process share a store and the entries in memory."""

from pathlib import Path

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import ensureDeferred

from tests.crawling.crawl import ListSpider, crawl
from tests.crawling.web import robots

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
