"""A crawl of more sites than this machine may have open files."""

import asyncio
import socket

import pytest
import scrapy

from tests.crawling.crawl import ListSpider, crawl
from tests.crawling.process import MODES, CrawlProcess
from tests.crawling.web import robots

resource = pytest.importorskip("resource")  # not on Windows

HOSTS, PAGES, SPARE = 40, 4, 50
HANDLERS = "scrapy.core.downloader.handlers."
AIOHTTP = {"DOWNLOAD_HANDLERS": {"http": f"{HANDLERS}_aiohttp.AiohttpDownloadHandler"}}
HOW = [(mode, {}) for mode in MODES]
if scrapy.version_info >= (2, 19):
    HOW.append(("asyncio", AIOHTTP))


class FewFiles(ListSpider):
    """May open SPARE files more than are open when it begins."""

    async def start(self):
        with socket.socket() as free:
            limit = free.fileno() + SPARE
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        async for request in super().start():
            yield request


@pytest.mark.parametrize(("mode", "settings"), HOW, ids=str)
def test_idle_connections_give_way_to_new_ones(web, tmp_path, mode, settings):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"), host="0.0.0.0")
    hosts = [*(f"127.0.1.{n}" for n in range(1, HOSTS)), "localhost"]
    urls = [f"http://{host}:{site.port}/{page}" for host in hosts for page in range(PAGES)]
    stored = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite", "JOBDIR": str(tmp_path / "job")}
    spider = f"{__name__}.FewFiles"
    settings = {**settings, **stored, "REP_DEFER_TIMEOUT": 30}
    result = CrawlProcess(mode, urls, spider=spider, **settings).result()
    assert sorted(result["fetched"]) == sorted(urls)
    assert "retry/count" not in result["stats"]


async def test_a_request_that_was_sent_is_not_sent_again_for_want_of_files(web):
    site = web.site(robots(""), paths={"/form": [[["reset"]]]})
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    restored = resource.RLIMIT_NOFILE, before

    def then(response):
        # The connection of the page is used again, and no other can be opened.
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        asyncio.get_running_loop().call_later(0.3, resource.setrlimit, *restored)
        return [scrapy.Request(site.url("/form"), method="POST", meta={"dont_retry": True})]

    try:
        result = await crawl(site.url("/page"), then=then)
    finally:
        resource.setrlimit(*restored)
    assert [failure.request.url for failure in result.failures] == [site.url("/form")]
    assert site.targets == ["/page", "/form"]
