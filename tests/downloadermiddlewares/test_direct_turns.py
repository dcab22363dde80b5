"""Downloads of components (``download_async``) that wait in the middleware for the delay of a site."""

from __future__ import annotations

import asyncio

import pytest
import pytest_twisted
from scrapy import Request

from tests.crawling.crawl import ListSpider, close, crawl
from tests.crawling.web import robots
from tests.waiting import until

DELAY = "User-agent: *\nCrawl-delay: 0.2\n"
SHORT = {"REP_CACHE_TTL": 0.5, "REP_CACHE_TTL_MIN": 0}


class Media(ListSpider):
    """Its first page asks for the URLs in ``media`` all at once."""

    async def parse(self, response):
        self.crawl.responses.append(response)
        if response.url == self.first:
            self.asked.set()
            tasks = (self.crawler.engine.download_async(Request(url)) for url in self.media)
            self.ends.extend(await asyncio.gather(*tasks, return_exceptions=True))
        return
        yield


@pytest.mark.parametrize("allowed", [True, False])
@pytest_twisted.ensureDeferred
async def test_a_robots_txt_that_changes_while_they_wait_is_obeyed(web, allowed):
    site = web.site(robots(DELAY))
    ends = []

    async def change(crawler):
        await until(lambda: site.targets)
        site.change(robots(DELAY if allowed else f"{DELAY}Disallow: /media\n"))

    await crawl(
        site.url("/"),
        settings=SHORT,
        spidercls=Media,
        meanwhile=change,
        first=site.url("/"),
        media=[site.url(f"/media/{n}") for n in range(8)],
        asked=asyncio.Event(),
        ends=ends,
    )
    assert len(ends) == 8
    # Until the one that was fetched first has expired, they may be sent.
    dropped = [end for end in ends if hasattr(end, "verdict")]
    assert len(site.targets) == 1 + 8 - len(dropped)
    assert (len(dropped) >= 4) is not allowed
    assert len(site.robots_requests) > 1


class MediaFirst(Media):
    """Its pages follow when it waits for the media of its first page."""

    async def start(self):
        yield self.prepare(self.first)
        await self.asked.wait()
        for url in self.pages:
            yield self.prepare(url)


@pytest_twisted.ensureDeferred
async def test_they_take_no_places_of_the_pages_of_other_sites(web):
    slow, quick = web.site(robots("User-agent: *\nCrawl-delay: 300\n")), web.site(robots(""))
    pages = [quick.url(f"/{n}") for n in range(20)]

    async def close_then(crawler):
        await until(lambda: len(quick.targets) == len(pages))
        close(crawler)

    await crawl(
        settings={"CONCURRENT_REQUESTS": 4},
        spidercls=MediaFirst,
        meanwhile=close_then,
        first=slow.url("/"),
        media=[slow.url(f"/media/{n}") for n in range(6)],
        pages=pages,
        asked=asyncio.Event(),
        ends=[],
    )
    assert slow.targets == ["/"]
