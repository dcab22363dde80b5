"""A crawl in a process of its own, in one of Scrapy's three modes.

Reads ``{"mode": ..., "settings": ..., "urls": [URL or [URL, meta], ...], "cancels": [urls], "script":
[steps], "spider": path, "arguments": of the spider, "later": seconds, "at_most": seconds or null}`` as a
line of JSON from its standard input, and prints what came of it as the last line of its output, at the
end or after so long. The clocks of scrapy_rep are ``later`` ahead. The script is played beside the crawl; its steps are

- ``["stats", {name: number}]``: waits until the stats have come so far,
- ``["hear", word]``: waits for that word, a line of standard input,
- ``["say", word]``: prints it as a line,
- ``["no flights"]``: waits until no robots.txt is being looked up,
- ``["deferred", number]``: waits until the requests of so many origins are deferred,
- ``["advance", seconds]``: moves the clocks of scrapy_rep,
- ``["asked"]``: waits until ``cancels`` have been asked for,
- ``["pause"]``, ``["unpause"]``, ``["close"]``, and ``["cancel"]`` for the first of ``cancels``,
- ``["stay"]``: keeps the spider open while it is idle, until the word "enough" is heard,
- ``["interrupt"]``: does what Ctrl-C does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import load_object

from scrapy_rep import RobotsTxtMiddleware
from scrapy_rep.utils.concurrency import sleep
from tests.crawling.crawl import Crawl, ListSpider, patient
from tests.waiting import Clock

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
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


class Player:
    def __init__(self, crawler, script):
        self.crawler = crawler
        self.script = script
        # Before the parts of the crawl take their clocks.
        self.clock = Clock() if ["advance"] in [step[:1] for step in script] else None
        self.heard = set()
        self.tasks = []
        """Of ``cancels``."""
        threading.Thread(target=self.listen, daemon=True).start()
        crawler.signals.connect(self.start, signals.spider_opened)

    def listen(self):
        for line in sys.stdin:
            self.heard.add(line.strip())

    def start(self):
        self.playing = deferred_from_coro(self.play())

    async def play(self):
        for step, *arguments in self.script:
            await getattr(self, step.replace(" ", "_"))(*arguments)

    async def until(self, condition):
        while not condition():
            await sleep(0.01)

    async def stats(self, wanted):
        value = self.crawler.stats.get_value
        await self.until(lambda: all(value(name, 0) >= n for name, n in wanted.items()))

    async def hear(self, word):
        await self.until(lambda: word in self.heard)

    async def say(self, word):
        print(word, flush=True)

    async def no_flights(self):
        parts = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)._parts
        await self.until(lambda: not parts.lookups._all)

    async def deferred(self, lanes):
        admission = self.crawler.get_downloader_middleware(RobotsTxtMiddleware).admission
        await self.until(lambda: admission.deferral.count_deferred() >= lanes)

    async def advance(self, seconds):
        self.clock.advance(seconds)

    async def pause(self):
        self.crawler.engine.pause()

    async def unpause(self):
        self.crawler.engine.unpause()

    async def close(self):
        self.closing = deferred_from_coro(self.crawler.engine.close_spider_async(reason="enough"))

    async def stay(self):
        self.crawler.signals.connect(self.idle, signals.spider_idle)

    def idle(self):
        if "enough" not in self.heard:
            raise DontCloseSpider

    async def interrupt(self):
        signal.raise_signal(signal.SIGINT)

    async def asked(self):
        await self.until(lambda: self.tasks)

    async def cancel(self):
        await self.asked()
        self.tasks[0].cancel()


def main():
    order = json.loads(sys.stdin.readline())
    if order["later"]:
        Clock().advance(order["later"])
    process_class, mode = MODES[order["mode"]]
    cancels = order["cancels"]
    spider = load_object(order["spider"])
    settings = {**spider.settings_before, "LOG_LEVEL": "ERROR", **order["settings"], **mode}
    if "REP_STORE" in spider.settings_before:
        settings["REP_STORE"] = patient(settings["REP_STORE"])
    process = process_class(settings)
    result = Crawl()
    ends = []

    class Cancelling(ListSpider):
        async def parse(self, response):
            """Ask for some pages besides; the first is cancelled while it waits."""
            self.crawl.responses.append(response)
            download = self.crawler.engine.download_async
            tasks = [deferred_from_coro(download(scrapy.Request(url))) for url in cancels]
            player.tasks = tasks
            for task in tasks:
                try:
                    ends.append(str((await maybe_deferred_to_future(task)).status))
                except BaseException as error:  # noqa: BLE001, PERF203 - either one's CancelledError
                    ends.append(type(error).__name__)
            return
            yield

    crawler = process.create_crawler(Cancelling if cancels else spider)
    player = Player(crawler, order["script"])
    requests = [
        scrapy.Request(url[0], meta=url[1]) if isinstance(url, list) else url
        for url in order["urls"]
    ]

    def tell():
        told = {
            "fetched": result.fetched,
            "dropped": result.dropped,
            "failures": [repr(failure.value) for failure in result.failures],
            "stats": crawler.stats.get_stats(),
            "ends": ends,
            "peak_kib": peak_kib(),
            **result.told,
        }
        print(json.dumps(told, default=str), flush=True)

    def give_up():
        """End without waiting for what hangs."""
        tell()
        os._exit(0)

    def opened():
        call_later(order["at_most"], give_up)

    if order["at_most"]:
        crawler.signals.connect(opened, signals.spider_opened)
    process.crawl(crawler, requests=requests, crawl=result, **order["arguments"])
    process.start()
    tell()


if __name__ == "__main__":
    main()
