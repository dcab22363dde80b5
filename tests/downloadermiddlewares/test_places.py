"""CONCURRENT_REQUESTS holds on the wire, whatever has waited before: as the sites have seen it."""

import pytest
from scrapy import Request

from tests.crawling.crawl import SCRAPYS_QUEUE, Downloads, ListSpider, crawl
from tests.crawling.web import answer, held, redirect, robots
from tests.waiting import a_while, until

MOST = 3
SLOWLY = [["wait", 0.2], *robots("")]
HELD = {"*": [held(answer())]}


class Rewrites:
    """A middleware behind ours, which sends a request elsewhere: its query has the URL."""

    def process_request(self, request):
        _, _, url = request.url.partition("?to=")
        if url:
            request._set_url(url)


def new_sites(web):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(12)]
    return sites, [site.url("/") for site in sites], {}


def rewritten(web):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(12)]
    front = web.site(robots(""))
    urls = [f"{front.url('/')}?to={site.url('/')}" for site in sites]
    return sites, urls, {"settings": {"DOWNLOADER_MIDDLEWARES": {Rewrites: 900}}}


def redirected(web):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(12)]
    front = web.site(
        robots(""), paths={f"/{n}": [redirect(site.url("/"))] for n, site in enumerate(sites)}
    )
    meta = {"handle_httpstatus_all": False}
    urls = [Request(front.url(f"/{n}"), meta=meta) for n in range(12)]
    return sites, urls, {"spidercls": Following}


def retried(web):
    sites = [web.site(SLOWLY, paths={"*": [answer(500), held(answer())]}) for _ in range(12)]
    meta = {"handle_httpstatus_all": False}
    urls = [Request(site.url("/"), meta=meta) for site in sites]
    settings = {"REP_CACHE_TTL": 0, "REP_CACHE_TTL_MIN": 0}
    return sites, urls, {"spidercls": Following, "settings": settings}


def unreachable_before(web):
    sites = [web.site(answer(503), robots(""), paths=HELD) for _ in range(12)]
    settings = {"REP_DEFER_TIMEOUT": 300, "REP_RETRY_DELAY": 1, "REP_RETRY_DELAY_MAX": 1}
    return sites, [site.url("/") for site in sites], {"settings": settings}


def direct(web):
    sites = [web.site(SLOWLY, paths=HELD) for _ in range(12)]
    more = {"spidercls": Downloads, "media": [site.url("/") for site in sites]}
    return sites, [web.site(robots("")).url("/")], more


def another_queue(web):
    sites, urls, _ = new_sites(web)
    return sites, urls, {"settings": SCRAPYS_QUEUE}


class Following(ListSpider):
    """Leaves redirects and retries to Scrapy."""

    handle_httpstatus_all = False


FLOODS = [new_sites, rewritten, redirected, retried, unreachable_before, direct, another_queue]


@pytest.mark.parametrize("flood", FLOODS)
async def test_no_more_pages_are_on_the_wire_than_concurrent_requests(web, flood):
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

    settings = {"CONCURRENT_REQUESTS": MOST, **more.pop("settings", {})}
    result = await crawl(*urls, settings=settings, meanwhile=meanwhile, **more)
    assert counts == [MOST]
    assert all(len(site.targets) == known for site in sites)
    assert result.crawler.engine.downloader.total_concurrency == MOST
