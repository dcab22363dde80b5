"""What one more origin costs: crawls of many hosts, one page each, without a network.

    python -m tests.benchmarks.origins [--origins 20000 ...] [--rounds 3] [--json FILE]

A download handler in the process answers for every host after some 50 ms: robots.txt files of the
corpus (see CONTRIBUTING.md), 30 % are 404. Each crawl runs in a process of its own: off, built-in,
ours, ours again with the store that it has left, and ours with a store in memory, in turns. All
requests are start requests of one moment. Printed are microseconds of the processor for an origin,
above those of a crawl without robots.txt, with the ratios to the built-in's; and the peak of
memory, in MiB above the start.
"""

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import scrapy
from scrapy.http import Response

from scrapy_rep.utils.concurrency import sleep
from tests.benchmarks import results
from tests.benchmarks.broad_crawl import BUILTIN, OFF, OURS, SETTINGS
from tests.crawling.crawl import OfCrawler
from tests.crawling.mode_crawl import peak_kib
from tests.crawling.process import CrawlProcess
from tests.protocol import corpus

LATENCY = 0.05
MISSING = 0.3
BODIES = 2_000
PAGE = b"<html><body>page</body></html>"
SEED = 9309
HERE = "tests.benchmarks.origins"
# Of Scrapy's queues the one that does not look at all hosts for each request.
SCRAPYS = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
# The second crawl with a store waits for the turns that the first one has taken.
WAITS_SHORT = {**OURS, "REP_CRAWL_DELAY_MAX": 1}
CRAWLS = {
    "off": {**OFF, **SCRAPYS},
    "built-in": {**BUILTIN, **SCRAPYS},
    "ours": WAITS_SHORT,
    "again": WAITS_SHORT,
    "memory": {**WAITS_SHORT, "REP_STORE": "memory://"},
}
WITHOUT_NETWORK = {
    **SETTINGS,
    "CONCURRENT_REQUESTS": 100,
    "DOWNLOAD_HANDLERS": {"http": f"{HERE}.Handler"},
    "DOWNLOAD_HANDLERS_BASE": {},
    "DNSCACHE_ENABLED": False,
}


class Handler(OfCrawler):
    lazy = False
    bodies = ()

    async def download_request(self, request):
        await sleep(LATENCY)
        if not request.url.endswith("/robots.txt"):
            return Response(request.url, body=PAGE)
        chance = random.Random(request.url)
        if chance.random() < MISSING:
            return Response(request.url, status=404)
        return Response(request.url, body=chance.choice(self.bodies))

    async def close(self):
        pass


class Many(scrapy.Spider):
    """Asks each host for a page, and tells what that has cost."""

    name = "many"
    settings_before = WITHOUT_NETWORK
    origins = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        bodies = [body for _, body, _ in corpus.read("files")]
        Handler.bodies = random.Random(SEED).sample(bodies, min(BODIES, len(bodies)))
        spider.before = peak_kib(), time.process_time()
        return spider

    async def start(self):
        for number in range(self.origins):
            yield scrapy.Request(f"http://{number}.example/", callback=self.parse)

    def parse(self, response):
        pass

    def closed(self, reason):
        memory, seconds = self.before
        self.crawl.told = {
            "seconds": time.process_time() - seconds,
            "memory": (peak_kib() - memory) / 1024,
        }


def crawl(origins, settings):
    own = {"spider": f"{HERE}.Many", "arguments": {"origins": origins}, "patience": 3600}
    return CrawlProcess("asyncio", [], **own, **settings).result()


def measure(options, origins):
    """Return what an origin costs by crawl, and how much memory each takes."""
    rows = {name: [] for name in options.crawls}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in options.crawls:
                settings = {"REP_STORE": f"sqlite:///{folder}/robots.sqlite", **CRAWLS[name]}
                rows[name].append(crawl(origins, settings))
    costs = {
        name: statistics.median(
            1e6 * (row["seconds"] - off["seconds"]) / origins
            for row, off in zip(found, rows["off"], strict=True)
        )
        for name, found in rows.items()
    }
    memory = {name: statistics.median(row["memory"] for row in rows[name]) for name in rows}
    return costs, memory


def _ratios(row, *names):
    pairs = (name.split("/") for name in names)
    return {f"{a}/{b}": float(row[a] / row[b]) for a, b in pairs if a in row and b in row}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--origins", type=int, nargs="+", default=[20_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--crawls", nargs="+", choices=CRAWLS, default=list(CRAWLS))
    results.add_option(parser)
    parser.add_argument("--memory-json", type=Path, metavar="FILE", help="and the memory there")
    options = parser.parse_args()
    costs, memory = [], []
    others = [f"{name}/built-in" for name in options.crawls if name not in ("off", "built-in")]
    for origins in options.origins:
        cost, peak = measure(options, origins)
        costs.append(results.show({"origins": origins, **cost, **_ratios(cost, *others)}))
        ratios = _ratios(peak, "ours/off", "built-in/ours")
        memory.append(results.show({"origins": origins, **peak, **ratios}))
    for path, rows in ((options.json, costs), (options.memory_json, memory)):
        results.write(path, HERE, rows)


if __name__ == "__main__":
    main()
