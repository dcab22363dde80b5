"""A crawl in a process of its own, in one of Scrapy's three modes.

Reads ``{"mode": ..., "settings": ..., "urls": [...], "close_after": seconds or null, "cancels":
[urls], "pause": seconds or null}`` as JSON from its standard input, and prints what came of it as JSON.
The pause begins when all requests have been in the queue for a moment.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from tests.crawling.crawl import SETTINGS, Crawl, ListSpider

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


class Pause:
    """Pauses the engine once."""

    def __init__(self, crawler, order):
        self.crawler = crawler
        self.seconds = order.get("pause")
        self.left = len(order["urls"])
        self.ended = None
        crawler.signals.connect(self.scheduled, signals.request_scheduled)

    def scheduled(self):
        self.left -= 1
        if self.seconds and not self.left:
            call_later(0.2, self.begin)

    def begin(self):
        self.crawler.engine.pause()
        call_later(self.seconds, self.end)

    def end(self):
        self.ended = time.time()
        self.crawler.engine.unpause()


def main():
    order = json.load(sys.stdin)
    process_class, mode = MODES[order["mode"]]
    settings = {**SETTINGS, "LOG_LEVEL": "ERROR", **order["settings"], **mode}
    process = process_class(settings)
    result = Crawl()
    seconds = order["close_after"]
    cancels = order["cancels"]
    ends = []

    class Spider(ListSpider):
        async def start(self):
            if seconds:
                call_later(seconds, self.close_now)
            async for request in super().start():
                yield request

        async def parse(self, response):
            """Ask for some pages besides; the first is cancelled while it waits."""
            self.crawl.responses.append(response)
            download = self.crawler.engine.download_async
            tasks = [deferred_from_coro(download(scrapy.Request(url))) for url in cancels]
            if tasks:
                call_later(0.2, tasks[0].cancel)
            for task in tasks:
                try:
                    ends.append(str((await maybe_deferred_to_future(task)).status))
                except BaseException as error:  # noqa: BLE001, PERF203 - either one's CancelledError
                    ends.append(type(error).__name__)
            return
            yield

        def close_now(self):
            self.closing = deferred_from_coro(
                self.crawler.engine.close_spider_async(reason="enough")
            )

    crawler = process.create_crawler(Spider)
    pause = Pause(crawler, order)
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
                "ends": ends,
                "unpaused": pause.ended,
                "peak_kib": peak_kib(),
            }
        )
    )


if __name__ == "__main__":
    main()
