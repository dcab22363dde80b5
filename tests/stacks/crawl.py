"""A crawl with a stack, in a process of its own: ``python crawl.py ORDER RESULT``, both JSON files."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from pathlib import Path
from types import ModuleType

# Packages put a ``tests`` of their own beside themselves, which would be found in place of this one.
sys.modules["tests"] = tests = ModuleType("tests")
tests.__path__ = [str(Path(__file__).parents[1])]

import scrapy  # noqa: E402 - below the place to find them in
from scrapy.crawler import AsyncCrawlerProcess  # noqa: E402
from scrapy.utils.misc import load_object  # noqa: E402

from tests.crawling.crawl import SETTINGS, Crawl  # noqa: E402
from tests.crawling.mode_crawl import peak_kib  # noqa: E402
from tests.waiting import Clock  # noqa: E402


def main():
    order_path, result_path = sys.argv[1:]
    order = json.loads(Path(order_path).read_text(encoding="utf-8"))
    # One try of each origin, however long the crawl takes.
    settings = {**SETTINGS, "REP_RETRY_DELAY": 3600, "REP_RETRY_DELAY_MAX": 3600}
    clock = Clock()
    clock.advance(order["later"])
    process = AsyncCrawlerProcess({**settings, "LOG_LEVEL": "INFO", **order["settings"]})
    result = Crawl()
    crawler = process.create_crawler(load_object(order["spider"]))
    requests = [scrapy.Request(url, meta=deepcopy(order["meta"])) for url in order["urls"]]
    process.crawl(crawler, requests=requests, crawl=result)
    process.start()
    stats = crawler.stats.get_stats()
    told = {
        "fetched": result.fetched,
        "dropped": result.dropped,
        "failures": [f"{f.request.url}: {f.value!r}" for f in result.failures],
        "stats": stats,
        "peak_kib": peak_kib(),
    }
    Path(result_path).write_text(json.dumps(told, default=str), encoding="utf-8")


if __name__ == "__main__":
    main()
