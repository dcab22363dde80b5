"""What one more origin costs: crawls of many hosts, one page each, without a network.

    python -m tests.benchmarks.origins [--origins 20000 ...] [--rounds 3] [--mode asyncio] [--json FILE]

A download handler in the process answers for every host after some 50 ms: robots.txt files of the
corpus (see CONTRIBUTING.md), 30 % are 404. Each crawl runs in a process of its own: off, built-in,
ours, ours again with the store that it has left, and ours with a store in memory, in turns. ``floor``
is one more plain request a host, without any of these. All requests are start requests of one
moment. Printed are the processor time of an origin above that of a crawl without robots.txt and its
ratio to the built-in's; peak memory above the start; the most lookups under way at a time; the most
tasks of asyncio alive at a time, and the full collections of the garbage collector, which both grow
if pages are let go in bunches; and the size of the store.
"""

import argparse
import asyncio
import gc
import json
import math
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import scrapy
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep import RobotsTxtMiddleware
from scrapy_rep.utils.concurrency import sleep
from tests.benchmarks import results
from tests.benchmarks.broad_crawl import BUILTIN, OFF, OURS, SETTINGS
from tests.crawling.mode_crawl import MODES
from tests.protocol import corpus

LATENCY = 0.05
MISSING = 0.3
BODIES = 2_000
PAGE = b"<html><body>page</body></html>"
# Of Scrapy's queues the one that does not look at all hosts for each request.
SCRAPYS = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
CRAWLS = {
    "off": {**OFF, **SCRAPYS},
    "built-in": {**BUILTIN, **SCRAPYS},
    "ours": OURS,
    "again": OURS,
    "memory": {**OURS, "REP_STORE": "memory://"},
}
CRAWLS["floor"] = {**OFF, **SCRAPYS, "DOWNLOADER_MIDDLEWARES": {f"{__name__}.OneMore": 100}}
SEED = 9309


class Handler:
    """Answers for every host, and knows how many robots.txt requests there were at a time."""

    lazy = False
    bodies = ()

    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

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


class OneMore:
    """Sends one more request to each host, as any plugin for robots.txt must."""

    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_request(self, request):
        if not request.url.endswith("/robots.txt"):
            await self.crawler.engine.download_async(scrapy.Request(f"{request.url}robots.txt"))


class Many(scrapy.Spider):
    name = "many"
    origins = 0

    async def start(self):
        for number in range(self.origins):
            yield scrapy.Request(f"http://{number}.example/", callback=self.parse)

    def parse(self, response):
        pass


def peak_mib():
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Watch:
    """Looks how many lookups are under way, and how many tasks are alive."""

    def __init__(self, crawler):
        self.crawler = crawler
        self.most = self.tasks = 0
        self.started = 0.0
        crawler.signals.connect(self.opened, scrapy.signals.spider_opened)
        crawler.signals.connect(self.closed, scrapy.signals.spider_closed)

    def opened(self):
        self.loop = create_looping_call(self.look)
        self.loop.start(0.02, now=False)

    def closed(self):
        self.loop.stop()

    def look(self):
        with suppress(RuntimeError):  # in another mode no loop of asyncio runs
            self.tasks = max(self.tasks, len(asyncio.all_tasks()))
        ours = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if ours is not None:
            self.most = max(self.most, len(ours._parts.cache.lookups))


def run(order):
    """Crawl, in a process of its own; print what came of it."""
    chosen = random.Random(SEED)
    bodies = [body for _, body, _ in corpus.read("files")]
    Handler.bodies = chosen.sample(bodies, min(BODIES, len(bodies)))
    del bodies
    process_class, more = MODES[order["mode"]]
    settings = {
        **SETTINGS,
        "CONCURRENT_REQUESTS": 100,
        "DOWNLOAD_HANDLERS": {"http": Handler},
        "DOWNLOAD_HANDLERS_BASE": {},
        "DNSCACHE_ENABLED": False,
        **order["settings"],
        **more,
    }
    process = process_class(settings)
    crawler = process.create_crawler(Many)
    watch = Watch(crawler)
    memory, start = peak_mib(), processor()
    collections = gc.get_stats()[2]["collections"]
    process.crawl(crawler, origins=order["origins"])
    process.start()
    stats = crawler.stats.get_stats()
    print(
        json.dumps(
            {
                "seconds": processor() - start,
                "memory": peak_mib() - memory,
                "most": watch.most,
                "tasks": watch.tasks,
                "full": gc.get_stats()[2]["collections"] - collections,
                "pages": stats.get("response_received_count", 0),
            }
        )
    )


def crawl(order):
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.origins", "--order", json.dumps(order)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or done.stderr.strip():
        print(done.stderr[-2000:], file=sys.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(options, origins):
    """Return what an origin costs by crawl, and how much memory each takes."""
    rows = {name: [] for name in options.crawls}
    stores = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "robots.sqlite")
            for name in options.crawls:
                settings = {"REP_STORE": f"sqlite:///{path}", **CRAWLS[name]}
                order = {"mode": options.mode, "origins": origins, "settings": settings}
                rows[name].append(crawl(order))
            stores.append(path.stat().st_size / origins if path.exists() else 0)
    print(f"{origins:,} origins, mode {options.mode}, median of {options.rounds}")
    print(
        f"{'':>10} {'us an origin':>13} {'ratio':>6} {'MiB':>7} {'lookups':>9} {'tasks':>8} {'full gc':>8} {'pages':>8}"
    )
    base = [row["seconds"] for row in rows["off"]]
    costs = {
        name: statistics.median(
            1e6 * (row["seconds"] - off) / origins for row, off in zip(found, base, strict=True)
        )
        for name, found in rows.items()
    }
    memory = {name: statistics.median(row["memory"] for row in rows[name]) for name in rows}
    for name, found in rows.items():
        counts = (max(row[key] for row in found) for key in ("most", "tasks", "full", "pages"))
        ratio = costs[name] / costs.get("built-in", math.nan)
        print(
            f"{name:>10} {costs[name]:13.0f} {ratio:6.2f} {memory[name]:7.0f} {next(counts):9}"
            f" {' '.join(f'{count:8}' for count in counts)}"
        )
    print(f"the store: {statistics.median(stores):.0f} bytes an origin", flush=True)
    return costs, memory


def _ratios(row, *names):
    pairs = (name.split("/") for name in names)
    return {f"{one}/{other}": float(row[one] / row[other]) for one, other in pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--origins", type=int, nargs="+", default=[20_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", choices=MODES, default="asyncio")
    parser.add_argument("--crawls", nargs="+", choices=CRAWLS, default=list(CRAWLS))
    results.add_option(parser)
    parser.add_argument("--memory-json", type=Path, metavar="FILE", help="and the memory there")
    parser.add_argument("--order", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.order:
        run(json.loads(options.order))
    else:
        found = {origins: measure(options, origins) for origins in options.origins}
        rows = [
            {
                "origins": origins,
                **costs,
                **_ratios(
                    costs,
                    *(f"{name}/built-in" for name in costs if name not in ("off", "built-in")),
                ),
            }
            for origins, (costs, _) in found.items()
        ]
        memory = [
            {"origins": origins, **each, **_ratios(each, "ours/off", "built-in/ours")}
            for origins, (_, each) in found.items()
        ]
        for path, each in ((options.json, rows), (options.memory_json, memory)):
            if path:
                results.write(path, "tests.benchmarks.origins", each)


if __name__ == "__main__":
    main()
