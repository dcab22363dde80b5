"""One crawl of ``broad_web``, in a process of its own: an order as JSON in, what came of it out.

``{"port", "scheme" ("http"), "mode", "settings", "origins": [numbers], "paths": [...], "stop_after": responses or null,
"at_most": seconds, "accounts": file or null, "chain": [number, pages] or null, "closes_by":
"signal" or null}``
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later, create_looping_call
from scrapy.utils.defer import deferred_from_coro

from tests.benchmarks.broad_web import host
from tests.crawling.mode_crawl import MODES

SETTINGS = {
    "LOG_LEVEL": "ERROR",
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


def rss_mib():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 2**20, 1)


def open_for_adding(path):
    return Path(path).open("a", buffering=1)


class Broad(scrapy.Spider):
    name = "broad"
    order = None

    def request(self, number, path, **kwargs):
        url = f"{self.order.get('scheme', 'http')}://{host(number)}:{self.order['port']}{path}"
        return scrapy.Request(url, callback=self.parse, errback=self.failed, **kwargs)

    async def start(self):
        self.began = self.last = time.monotonic()
        self.cpu_before = self.cpu = time.process_time()
        self.results = Counter()
        self.memory = []
        self.chain_seconds = None
        path = self.order.get("accounts")
        self.accounts = open_for_adding(path) if path else None
        self.sampling = create_looping_call(self.sample)
        self.sampling.start(0.5)
        if self.order.get("at_most"):
            call_later(self.order["at_most"], self.give_up)
        for path in self.order["paths"]:
            for number in self.order["origins"]:
                yield self.request(number, path)
        if self.order.get("chain"):
            yield self.request(self.order["chain"][0], "/chain/1")

    def sample(self):
        self.memory.append((sum(self.results.values()), rss_mib()))

    def close_now(self):
        if self.crawler.engine._slot is not None and self.crawler.engine._slot.closing is None:
            self.closing = deferred_from_coro(
                self.crawler.engine.close_spider_async(reason="enough")
            )

    def give_up(self):
        """End without waiting for what hangs."""
        report(self.crawler)
        sys.stdout.flush()
        os._exit(0)

    def account(self, request, what):
        self.last = time.monotonic()
        self.cpu = time.process_time()
        self.results[what] += 1
        if self.accounts:
            self.accounts.write(f"{request.url}\t{what}\n")
        if self.order.get("stop_after") and self.results["page"] >= self.order["stop_after"]:
            self.close_now()

    def parse(self, response):
        self.account(response.request, "page")
        if "/chain/" in response.url:
            step = int(response.url.rpartition("/")[2])
            if step == self.order["chain"][1]:
                self.chain_seconds = time.monotonic() - self.began
                self.close_now()
            else:
                yield self.request(self.order["chain"][0], f"/chain/{step + 1}")

    def failed(self, failure):
        error = failure.value
        if hasattr(error, "verdict"):
            what = f"dropped: {error.verdict.reason.value}"
        elif isinstance(error, IgnoreRequest):
            what = "dropped"
        else:
            what = repr(error)
        self.account(failure.request, what)


def report(crawler):
    spider = crawler.spider
    print(
        json.dumps(
            {
                "seconds": spider.last - spider.began,
                "cpu": spider.cpu - spider.cpu_before,
                "results": dict(spider.results),
                "memory": [*spider.memory, (sum(spider.results.values()), rss_mib())],
                "chain": spider.chain_seconds,
                "stats": {
                    key: value
                    for key, value in crawler.stats.get_stats().items()
                    if isinstance(value, int | float | str)
                },
            }
        )
    )


def main():
    order = json.load(sys.stdin)
    process_class, mode = MODES[order.get("mode") or "asyncio"]
    Broad.order = order
    process = process_class({**SETTINGS, **order["settings"], **mode})
    crawler = process.create_crawler(Broad)
    process.crawl(crawler)
    process.start()
    report(crawler)


if __name__ == "__main__":
    main()
