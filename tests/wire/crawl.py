"""One crawl of the table, in a process of its own: an order as JSON in, what came of it out.

``{"settings", "requests": [see `WireSpider`], "at_most": seconds, "awaited": [numbers of requests; the
spider closes when they have ended], "closes_after_refusal": whether the spider closes then}``
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.asyncio import call_later

from tests.crawling.crawl import SETTINGS
from tests.wire.parts import WireSpider


def report(crawler, *, gave_up=False):
    spider = crawler.spider
    stats = crawler.stats.get_stats()
    told = {
        "ends": dict(spider.ends),
        "outcomes": dict(spider.outcomes),
        "gave_up": gave_up,
        "refusal_read": spider.refusal_read,
        "errors": stats.get("log_count/ERROR", 0),
        "stats": {key: value for key, value in stats.items() if key.startswith("robotstxt/")},
    }
    print(json.dumps(told), flush=True)


def main():
    order = json.loads(sys.stdin.readline())
    random.seed(41)
    WireSpider.order = order
    process = AsyncCrawlerProcess({**SETTINGS, "LOG_LEVEL": "WARNING", **order["settings"]})
    crawler = process.create_crawler(WireSpider)

    def give_up():
        """End without waiting for what hangs."""
        report(crawler, gave_up=True)
        os._exit(0)

    def opened():
        call_later(order["at_most"], give_up)

    crawler.signals.connect(opened, signals.spider_opened)
    process.crawl(crawler)
    process.start()
    report(crawler)


if __name__ == "__main__":
    main()
