"""Crawls of ``broad_web``, each in a process of its own: an order as JSON in, what came of it out.

``{"port", "scheme" ("http"), "mode", "settings", "origins": [numbers], "paths": [...], "stop_after": responses or null,
"at_most": seconds, "accounts": file or null}``
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from tests.benchmarks.broad_web import host
from tests.crawling.mode_crawl import MODES
from tests.server_process import ServerProcess

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
CRAWLS = {"off": OFF, "built-in": BUILTIN, "ours": OURS}


def web_of(stories, seconds=0.01, certificate=None):
    order = {"stories": stories, "seconds": seconds, "certificate": certificate}
    return ServerProcess(Path(__file__).with_name("broad_web.py"), order)


def start(web, settings, **order):
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps({"port": web.port, "settings": settings, **order}))
    process.stdin.close()
    process.stdin = None
    return process


def crawl(web, settings, **order):
    process = start(web, settings, **order)
    output, errors = process.communicate()
    if process.returncode or errors.strip():
        print(errors[-2000:], file=sys.stderr)
    return json.loads(output)


class Broad(scrapy.Spider):
    name = "broad"
    order = None

    async def start(self):
        self.began = self.last = time.monotonic()
        self.cpu_before = self.cpu = time.process_time()
        self.results = Counter()
        accounts = self.order.get("accounts")
        self.accounts = Path(accounts).open("a", buffering=1) if accounts else None  # noqa: SIM115
        if self.order.get("at_most"):
            call_later(self.order["at_most"], self.give_up)
        before = f"{self.order.get('scheme', 'http')}://"
        for path in self.order["paths"]:
            for number in self.order["origins"]:
                url = f"{before}{host(number)}:{self.order['port']}{path}"
                yield scrapy.Request(url, callback=self.parse, errback=self.failed)

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
        engine = self.crawler.engine
        enough = self.order.get("stop_after") and self.results["page"] >= self.order["stop_after"]
        if enough and engine._slot is not None and engine._slot.closing is None:
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


def report(crawler):
    spider, stats = crawler.spider, crawler.stats.get_stats()
    told = {
        "seconds": spider.last - spider.began,
        "cpu": spider.cpu - spider.cpu_before,
        "results": dict(spider.results),
        "stats": {k: v for k, v in stats.items() if isinstance(v, int | float | str)},
    }
    print(json.dumps(told))


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
