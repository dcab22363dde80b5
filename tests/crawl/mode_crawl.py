"""A crawl in a process of its own, in one of Scrapy's three modes.

Reads ``{"mode": ..., "settings": ..., "urls": [...], "close_after": seconds or null}`` as JSON from
its standard input and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from tests.crawl.crawling import SETTINGS, Crawl, ListSpider

MODES = {
    "asyncio": (AsyncCrawlerProcess, {}),
    "select": (
        CrawlerProcess,
        {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    ),
    "none": (AsyncCrawlerProcess, {"TWISTED_REACTOR_ENABLED": False}),
}


def peak_kib():
    """Peak of resident memory; getrusage would count what the parent process had, too."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def main():
    order = json.load(sys.stdin)
    process_class, mode = MODES[order["mode"]]
    settings = {**SETTINGS, "LOG_LEVEL": "ERROR", **order["settings"], **mode}
    process = process_class(settings)
    result = Crawl()
    seconds = order.get("close_after")

    class Spider(ListSpider):
        async def start(self):
            if seconds:
                call_later(seconds, self.close_now)
            async for request in super().start():
                yield request

        def close_now(self):
            self.closing = deferred_from_coro(
                self.crawler.engine.close_spider_async(reason="enough")
            )

    crawler = process.create_crawler(Spider)
    process.crawl(crawler, requests=order["urls"], crawl=result)
    process.start()
    stats = crawler.stats.get_stats()
    for name in ("start_time", "finish_time"):
        stats.pop(name, None)
    print(
        json.dumps(
            {
                "fetched": result.fetched,
                "dropped": result.dropped,
                "failures": [repr(failure.value) for failure in result.failures],
                "stats": stats,
                "peak_kib": peak_kib(),
            }
        )
    )


if __name__ == "__main__":
    main()
