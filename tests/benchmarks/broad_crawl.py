"""Crawls of many sites, whose stories have these names, each in a process of its own."""

import time
from collections import Counter
from pathlib import Path

import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro

from tests.crawling.process import CrawlProcess
from tests.server_process import ServerProcess

SETTINGS = {
    "TELNETCONSOLE_ENABLED": False,
    "RETRY_ENABLED": False,
    "CONCURRENT_REQUESTS": 16,
    "DOWNLOAD_TIMEOUT": 180,
    "USER_AGENT": "testbot/1.0",
    "MEMUSAGE_ENABLED": False,
    # Scrapy makes as many tasks for each response, which here has no items at all.
    "CONCURRENT_ITEMS": 1,
}
OURS = {"ADDONS": {"scrapy_rep.Addon": 500}}
OFF = {"ROBOTSTXT_OBEY": False}
BUILTIN = {"ROBOTSTXT_OBEY": True}
CRAWLS = {"off": OFF, "built-in": BUILTIN, "ours": OURS}
RULES = {"robots": "User-agent: *\nDisallow: /private\n"}
STORIES = {
    "rules": RULES,
    "missing": {},
    "slow": {**RULES, "robots_seconds": 0.3},
    "hang": {**RULES, "robots_seconds": 1e6},
    "recovers": {**RULES, "robots_failures": 1},
    "failing": {**RULES, "robots_failures": 1_000_000},
}


def host(number):
    return f"127.1.{number // 250}.{1 + number % 250}"


def web_of(stories, seconds=0.01, **more):
    """Open sites with these stories, or names of them; pages take some seconds, ``more`` all have."""
    found = {
        host(number): {"seconds": seconds, **STORIES[story], **more}
        for number, story in enumerate(stories)
    }
    return ServerProcess(Path(__file__).parents[1] / "wire" / "server.py", found)


def urls_of(web, origins, paths):
    return [f"http://{host(number)}:{web.port}{path}" for path in paths for number in origins]


def start(urls, settings, *, at_most=None, **arguments):
    own = {"spider": f"{__name__}.Broad", "arguments": arguments, "at_most": at_most}
    return CrawlProcess("asyncio", urls, patience=3600, **own, **settings)


def crawl(urls, settings, **order):
    return start(urls, settings, **order).result()


class Broad(scrapy.Spider):
    """Counts what comes; ends after so many pages, and writes down each end, if it is told."""

    name = "broad"
    settings_before = SETTINGS
    stop_after = None
    accounts = None

    async def start(self):
        self.began = time.monotonic()
        self.cpu_before = time.process_time()
        self.crawl.told = {"seconds": 0.0, "cpu": 0.0, "results": Counter()}
        if self.accounts:
            self.accounts = Path(self.accounts).open("a", buffering=1)  # noqa: SIM115 - open until the end
        for url in self.requests:
            yield scrapy.Request(url, callback=self.parse, errback=self.failed)

    def account(self, request, what):
        told = self.crawl.told
        told["seconds"] = time.monotonic() - self.began
        told["cpu"] = time.process_time() - self.cpu_before
        told["results"][what] += 1
        if self.accounts:
            self.accounts.write(f"{request.url}\t{what}\n")
        if self.stop_after and what == "page" and told["results"]["page"] == self.stop_after:
            engine = self.crawler.engine
            self.closing = deferred_from_coro(engine.close_spider_async(reason="enough"))

    def parse(self, response):
        self.account(response.request, "page")

    def failed(self, failure):
        error = failure.value
        if hasattr(error, "verdict"):
            what = f"dropped: {error.verdict.reason.value}"
        else:
            what = "dropped" if isinstance(error, IgnoreRequest) else repr(error)
        self.account(failure.request, what)
