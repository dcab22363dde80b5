"""Limits of concurrency hold on the wire, whatever has waited before: as the sites have seen it."""

import asyncio
from functools import partial

import pytest
from scrapy import Request

from tests.crawling.crawl import SCRAPYS_QUEUE, Downloads, crawl, releasing_when
from tests.crawling.web import answer, held, redirect, robots
from tests.waiting import a_while, until

MOST = 3
PAGES = 12
SLOWLY = [["wait", 0.2], *robots("")]
HELD = {"*": [held(answer())]}
NOT_ALL = {"handle_httpstatus_all": False}


class Rewrites:
    """A middleware behind ours, which sends a request elsewhere: its query has the URL."""

    def process_request(self, request):
        _, _, url = request.url.partition("?to=")
        if url:
            request._set_url(url)


def new_sites(web, number=PAGES):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(number)]
    return sites, pages_of(sites), {}


def pages_of(sites):
    return [sites[n % len(sites)].url(f"/{n}") for n in range(PAGES)]


def rewritten(web):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(PAGES)]
    front = web.site(robots(""))
    urls = [f"{front.url('/')}?to={site.url('/')}" for site in sites]
    return sites, urls, {"settings": {"DOWNLOADER_MIDDLEWARES": {Rewrites: 900}}}


def redirected(web):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(PAGES)]
    front = web.site(
        robots(""), paths={f"/{n}": [redirect(site.url("/"))] for n, site in enumerate(sites)}
    )
    return sites, [Request(front.url(f"/{n}"), meta=NOT_ALL) for n in range(PAGES)], {}


def retried(web):
    sites = [web.site(SLOWLY, paths={"*": [answer(500), held(answer())]}) for _ in range(PAGES)]
    urls = [Request(site.url("/"), meta=NOT_ALL) for site in sites]
    return sites, urls, {"settings": {"REP_CACHE_TTL": 0, "REP_CACHE_TTL_MIN": 0}}


def unreachable_before(web, number=PAGES):
    sites = [web.site(answer(503), robots(""), paths=HELD) for _ in range(number)]
    settings = {"REP_DEFER_TIMEOUT": 300, "REP_RETRY_DELAY": 1, "REP_RETRY_DELAY_MAX": 1}
    return sites, pages_of(sites), {"settings": settings}


def direct(web, number=PAGES):
    sites, urls, _ = new_sites(web, number)
    return sites, [web.site(robots("")).url("/")], {"spidercls": Downloads, "media": urls}


def another_queue(web):
    sites, urls, _ = new_sites(web)
    return sites, urls, {"settings": SCRAPYS_QUEUE}


ALL = {"CONCURRENT_REQUESTS": MOST}
OF_A_SITE = {"CONCURRENT_REQUESTS": PAGES, "CONCURRENT_REQUESTS_PER_DOMAIN": MOST}
KINDS = (new_sites, rewritten, redirected, retried, unreachable_before, direct, another_queue)
FLOODS = [
    *((ALL, flood) for flood in KINDS),
    *((OF_A_SITE, partial(flood, number=1)) for flood in (new_sites, unreachable_before, direct)),
]


@pytest.mark.parametrize(("limit", "flood"), FLOODS)
async def test_no_more_pages_are_on_the_wire_than_the_settings_allow(web, limit, flood):
    sites, urls, more = flood(web)
    known = 2 if flood is retried else 1
    counts = []

    def pages():
        return sum(len(site.targets[known - 1 :]) for site in sites)

    async def meanwhile(crawler):
        await until(lambda: pages() >= MOST)
        for _ in range(3):
            await a_while()
        counts.append(pages())
        for site in sites:
            site.release()

    settings = {**limit, **more.pop("settings", {})}
    result = await crawl(*urls, settings=settings, meanwhile=meanwhile, **more)
    assert counts == [MOST]
    assert sum(len(site.targets) for site in sites) == known * PAGES
    assert result.crawler.engine.downloader.total_concurrency == limit["CONCURRENT_REQUESTS"]


class Turns:
    """Counts the pages that leave in one turn of the event loop."""

    counts = ()

    def process_request(self, request):
        if request.url.endswith("/robots.txt"):
            return
        if not self.counts or self.counts[-1] == 0:
            Turns.counts = [*self.counts, 0]
            asyncio.get_running_loop().call_soon(lambda: self.counts.append(0))
        self.counts[-1] += 1


async def test_no_more_pages_leave_in_a_turn_than_may(web):
    sites = [web.site(held(robots(""))) for _ in range(5 * MOST)]
    at_last = releasing_when(lambda _: all(site.robots_requests for site in sites), *sites)
    settings = {**ALL, "REP_CONCURRENT_FETCHES": 100, "DOWNLOADER_MIDDLEWARES": {Turns: 50}}
    await crawl(*(site.url("/") for site in sites), settings=settings, meanwhile=at_last)
    assert sum(Turns.counts) == len(sites)
    assert max(Turns.counts) <= MOST
