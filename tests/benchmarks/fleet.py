"""A fleet on sites that ask for a delay, seen from the wire: ``python -m tests.benchmarks.fleet``.

Several processes share a store. Every other origin asks for two seconds between two requests; the
others ask for nothing, and their pages take a while, so that the workers' places decide how many
come in a second, not the machine. The same again without the origins that ask, in turns.

With many origins the delay is to be longer, or the machine decides: a thousand that ask for two
seconds are five hundred pages a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from statistics import median
from time import monotonic

PAGE_SECONDS = 0.4
PLACES = 64
"""Of the whole fleet."""


def host_of(number):
    return f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"


# The web: one port on every address of loopback.


async def serve(seconds):
    seen = defaultdict(list)

    async def answer(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            now = monotonic()
            target = head.split(b" ", 2)[1].decode()
            host = head.lower().partition(b"\r\nhost: ")[2].partition(b":")[0].decode()
            asks = target.startswith("/asks/") or target == "/robots.txt"
            seen[host].append((now, target))
            text = "User-agent: *\nDisallow: /private\n"
            if target == "/robots.txt" and int(host.rpartition(".")[2]) % 2 == 0:
                text += f"Crawl-delay: {seconds:g}\n"
            await asyncio.sleep(0.05 if asks else PAGE_SECONDS)
            # Thousands of origins, each with connections of sixteen workers, are not kept open.
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.readline()
    print(json.dumps(seen), flush=True)
    os._exit(0)


# A worker.


def work(order):
    import scrapy
    from scrapy.crawler import AsyncCrawlerProcess

    class Spider(scrapy.Spider):
        name = "worker"

        async def start(self):
            for url in order["urls"]:
                yield scrapy.Request(url)

        def parse(self, response):
            pass

        def closed(self, reason):
            stats = self.crawler.stats.get_stats()
            print(json.dumps({k: v for k, v in stats.items() if isinstance(v, int)}), flush=True)

    process = AsyncCrawlerProcess(order["settings"])
    process.crawl(Spider)
    sys.stdin.readline()
    process.start()


def python(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.fleet", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def crawl(uri, options, *, asks, settings=None):
    """Crawl with all workers; return what the web has seen, and the workers' stats."""
    web = python("web", str(options.seconds))
    port = int(web.stdout.readline())
    workers = []
    for worker in range(options.workers):
        urls = []
        for number in range(options.origins):
            is_asking = (1 + number % 250) % 2 == 0
            if is_asking and not asks:
                continue
            kind, pages = ("asks", options.asks_pages) if is_asking else ("plain", options.pages)
            # The pages of an origin are shared out.
            mine = range(worker, pages, options.workers)
            urls += [f"http://{host_of(number)}:{port}/{kind}/{page}" for page in mine]
        order = {
            "urls": urls,
            "settings": {
                "ADDONS": {"scrapy_rep.Addon": 500},
                "REP_STORE": uri,
                "USER_AGENT": "bot",
                "LOG_LEVEL": "WARNING",
                "TELNETCONSOLE_ENABLED": False,
                "RETRY_ENABLED": False,
                "CONCURRENT_REQUESTS": PLACES // options.workers,
                **(settings or {}),
            },
        }
        process = python("work")
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        workers.append(process)
    for process in workers:
        process.stdin.write("\n")
        process.stdin.flush()
    reports = [json.loads(process.stdout.readline()) for process in workers]
    for process in workers:
        process.wait()
    web.stdin.write("\n")
    web.stdin.flush()
    return json.loads(web.stdout.readline()), reports


def show(name, seconds, seen, reports):
    """Print what was seen; return how many pages of origins that ask for nothing came a second."""
    robots = [sum(target == "/robots.txt" for _, target in each) for each in seen.values()]
    gaps, plain, asked = [], [], 0
    for each in seen.values():
        times = sorted(at for at, target in each if target.startswith("/asks/"))
        asked += len(times)
        gaps += [later - sooner for sooner, later in pairwise(times)]
        plain += [at for at, target in each if target.startswith("/plain/")]
    plain.sort()
    # Without the first tenth, in which robots.txt is fetched, and the last, in which workers end.
    tenth = len(plain) // 10
    rate = 0.8 * len(plain) / (plain[-1 - tenth] - plain[tenth]) if tenth else 0.0
    total = {
        key: sum(report.get(key, 0) for report in reports)
        for key in ("robotstxt/turns", "log_count/ERROR")
    }
    print(
        f"{name}: robots.txt per origin {min(robots)} to {max(robots)}; {asked} pages of origins that"
        f" ask, smallest gap {f'{min(gaps):.3f} s' if gaps else '-'}, below"
        f" {0.95 * seconds:g} s {sum(gap < 0.95 * seconds for gap in gaps)}, median"
        f" {f'{median(gaps):.3f} s' if gaps else '-'}; {len(plain)} other pages,"
        f" {rate:.1f} a second; turns {total['robotstxt/turns']},"
        f" errors {total['log_count/ERROR']}",
        flush=True,
    )
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=["redis", "sqlite", "memory"], default="sqlite")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--origins", type=int, default=100)
    parser.add_argument("--pages", type=int, default=80, help="of an origin that asks for nothing")
    parser.add_argument("--asks-pages", type=int, default=16, help="of one that asks for a delay")
    parser.add_argument("--seconds", type=float, default=2, help="that these ask for")
    parser.add_argument(
        "--rounds", type=int, default=1, help="each with those that ask, and without"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rates = defaultdict(list)
        for run in range(2 * options.rounds):
            asks = run % 2 == 0
            server = None
            uri = f"sqlite:///{directory}/{run}.sqlite"
            if options.store == "memory":
                uri = "memory://"
            elif options.store == "redis":
                from tests.redis_server import RedisServer

                server = RedisServer(directory)
                uri = server.uri
            kind = "with delays" if asks else "without"
            name = f"{options.store}, {options.workers} workers, {options.origins} origins, {kind}"
            seen, reports = crawl(uri, options, asks=asks)
            rates[asks].append(show(name, options.seconds, seen, reports))
            if server is not None:
                server.stop()
    ratio = median(rates[True]) / median(rates[False]) if all(rates[False]) else 0.0
    print(f"other pages a second with delays / without, medians: {ratio:.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["web"]:
        asyncio.run(serve(float(sys.argv[2])))
    elif sys.argv[1:] == ["work"]:
        work(json.loads(sys.stdin.readline()))
    else:
        main()
