"""One crawl, in a process of its own: an order as JSON in, a journal in a file.

``{"settings" (with ``WIRE_PARTS``, see `Part`), "requests": [see `WireSpider`], "journal": path,
"at_most": seconds, "awaited": [numbers of requests; the spider closes when they have ended],
"closes_after_refusal": whether the spider closes then}``
"""

import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.asyncio import call_later

from tests.crawling.crawl import SETTINGS, patient
from tests.wire.parts import Part
from tests.wire.spider import WireSpider


def main():
    order = json.loads(sys.stdin.readline())
    random.seed(41)
    WireSpider.order = order
    settings = {**SETTINGS, **order["settings"]}
    settings["REP_STORE"] = patient(settings["REP_STORE"])
    # Scrapy tells classes apart by their names.
    settings["DOWNLOADER_MIDDLEWARES"] = {
        type(f"Part{number}", (Part,), {"told": told}): told["order"]
        for number, told in enumerate(settings.pop("WIRE_PARTS", ()))
    }
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(WireSpider)

    def tell(what):
        stats = crawler.stats.get_stats()
        errors = stats.get("log_count/ERROR", 0) + stats.get("log_count/CRITICAL", 0)
        crawler.spider.journal.write(what, errors=errors)

    def give_up():
        """End without waiting for what hangs."""
        tell("gave up")
        os._exit(1)

    def opened():
        call_later(order["at_most"], give_up)

    def closed():
        tell("closed")

    crawler.signals.connect(opened, signals.spider_opened)
    crawler.signals.connect(closed, signals.spider_closed)
    process.crawl(crawler)
    process.start()


if __name__ == "__main__":
    main()
