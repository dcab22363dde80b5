"""Broad crawls beside a crawl without robots.txt and beside Scrapy's built-in middleware.

    python -m tests.benchmarks.broad shares [--rounds N] [--shares 0 1 5 10 20] [--mode asyncio] [--json FILE]
    python -m tests.benchmarks.broad pop [--slots 100 1000 10000] [--json FILE]

Crawls of ``shares`` run one after the other, each alone with a web of its own, in turns: off, ours,
ours, off. A ratio is the median of the ratios of such neighbours, of pages a second and of pages a
second of processor time; the latter suffers less from what else the machine does. The built-in's
crawls end after ``--at-most`` seconds, with what they have then. ``pop`` is the queue alone.
"""

import argparse
import gc
import statistics
import time

from scrapy import Request

from tests.benchmarks import results
from tests.benchmarks.broad_crawl import CRAWLS, crawl, host, urls_of, web_of
from tests.scheduler.queues import Doors, FakeCrawler, ours, scrapys


def shares(options):
    print(
        f"{options.origins} origins x {options.pages} pages, 10 ms a page, CONCURRENT_REQUESTS 16,"
        f" mode {options.mode}: healthy pages a second, and the ratio to ROBOTSTXT_OBEY=False"
        " on the healthy origins alone; the last ratio is of pages a second of processor time"
    )
    print(
        f"{'hanging':>8} {'off':>8} {'built-in':>9} {'ours':>8} {'built-in/off':>13} {'ours/off':>9}"
        f" {'(processor)':>12}"
    )
    rows = []
    for share in options.shares:
        every = round(100 / share) if share else 0
        stories = [
            "hang" if every and n % every == every // 2 else "rules" for n in range(options.origins)
        ]

        def run(name, stories=stories):
            return _rates(name, stories, options)

        rates, per_cpu = results.in_turns(["off", "ours"], options.rounds, run)
        builtin, _ = results.in_turns(["built-in"], options.builtin_rounds, run)
        median = {
            name: statistics.median(values) if values else float("nan")
            for name, values in {**rates, **builtin}.items()
        }
        ratio, of_cpu = (results.median_ratio(each, "ours", "off") for each in (rates, per_cpu))
        print(
            f"{share:>6} % {median['off']:8.0f} {median['built-in']:9.1f} {median['ours']:8.0f}"
            f" {median['built-in'] / median['off']:13.3f} {ratio:9.3f} {of_cpu:12.3f}",
            flush=True,
        )
        medians = {name: median[name] for name in CRAWLS}
        row = {"hanging": share, **medians, "ours/off": ratio, "ours/off (processor)": of_cpu}
        rows.append(row)
    return rows


def _rates(name, stories, options):
    """Return the healthy pages of a second, and of a second of the processor."""
    healthy = [n for n, story in enumerate(stories) if story == "rules"]
    with web_of(stories) as web:
        origins = healthy if name == "off" else range(len(stories))
        result = crawl(
            urls_of(web, origins, [f"/p/{page}" for page in range(options.pages)]),
            CRAWLS[name],
            mode=options.mode,
            stop_after=len(healthy) * options.pages,
            at_most=options.at_most,
        )
    pages = result["results"].get("page", 0)
    # Those that didn't come in time count with all of it.
    whole = pages == len(healthy) * options.pages
    return pages / (result["seconds"] if whole else options.at_most), pages / result["cpu"]


def pop(options):
    print("microseconds for a pop() and for a push() after it; 16 slots are busy")
    print(
        f"{'slots':>7} {'waiting':>8} {'Scrapy pop':>11} {'ours pop':>9} {'ratio':>7}"
        f" {'Scrapy push':>12} {'ours push':>10}"
    )
    rows = []
    for slots in options.slots:
        for waiting in (0, 90):
            requests = [
                Request(f"http://{host(n)}/{path}")
                for path in range(max(2, 40 // slots))  # more than are taken out at a time
                for n in range(slots)
            ]
            times = {}
            for name, make in (("scrapy", scrapys), ("ours", ours)):
                doors = Doors()
                crawler = FakeCrawler(doors)
                queue = make(crawler)
                for request in requests:
                    queue.push(request)
                if waiting and name == "ours":
                    doors.open = {f"http://{host(n)}" for n in range(0, slots, 10)}
                taken = []
                first = time.perf_counter()
                queue.push(queue.pop())  # looks at all that is new, once
                first = time.perf_counter() - first
                if waiting and name == "ours":
                    for _ in range(slots // 10):  # looks at each that waits, once
                        queue.push(queue.pop())
                pops, pushes = [], []
                gc.collect()
                for _ in range(max(30, min(2000, 400_000 // slots)) if name == "scrapy" else 2000):
                    began = time.perf_counter()
                    request = queue.pop()
                    pops.append(time.perf_counter() - began)
                    crawler.downloader.begin(request)
                    taken.append(request)
                    if len(taken) > 16:
                        done = taken.pop(0)
                        crawler.downloader.end(done)
                        began = time.perf_counter()
                        queue.push(done)
                        pushes.append(time.perf_counter() - began)
                times[name] = [1e6 * statistics.median(values) for values in (pops, pushes)]
                times[name].append(1e3 * first)
            theirs, our = times["scrapy"], times["ours"]
            print(
                f"{slots:7} {waiting:6} % {theirs[0]:11.1f} {our[0]:9.1f} {our[0] / theirs[0]:7.4f}"
                f" {theirs[1]:12.1f} {our[1]:10.1f}   (first pop: {theirs[2]:.1f} and {our[2]:.1f} ms)",
                flush=True,
            )
            rows.append({"slots": slots, "waiting": waiting, "Scrapy": theirs[0], "ours": our[0]})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = {f.__name__: f for f in (shares, pop)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--mode", choices=["asyncio", "select", "none"], default="asyncio")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--builtin-rounds", type=int, default=1)
    parser.add_argument("--shares", type=int, nargs="+", default=[0, 1, 5, 10, 20])
    parser.add_argument("--at-most", type=float, default=60, help="seconds of a crawl")
    parser.add_argument("--origins", type=int, default=200)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--slots", type=int, nargs="+", default=[100, 1000, 10_000])
    results.add_option(parser)
    options = parser.parse_args()
    rows = commands[options.command](options)
    results.write(options.json, __spec__.name, rows)


if __name__ == "__main__":
    main()
