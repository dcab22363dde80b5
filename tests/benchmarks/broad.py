"""Broad crawls beside a crawl without robots.txt and beside Scrapy's built-in middleware.

    python -m tests.benchmarks.broad shares [--rounds N] [--shares 0 1 5 10 20] [--json FILE]
    python -m tests.benchmarks.broad pop [--slots 100 1000 10000] [--json FILE]

``shares`` has healthy pages a second, by the percentage of origins that hang; without robots.txt,
the healthy origins alone are crawled. Crawls run one after the other, each alone with a web of its
own, in turns: off, ours, ours, off. A ratio is the median of the ratios of such neighbours, of
pages a second and of pages a second of processor time; the latter suffers less from what else the
machine does. The built-in's crawls end after ``--at-most`` seconds, with what they have then.
``pop`` is the queue alone: microseconds to take a request from it, and to push one after that,
while 16 slots are busy.
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
        medians = {
            name: statistics.median(found) for name, found in {**rates, **builtin}.items() if found
        }
        ratio, of_cpu = (results.median_ratio(each, "ours", "off") for each in (rates, per_cpu))
        row = {"hanging": share, **medians, "ours/off": ratio, "ours/off (processor)": of_cpu}
        rows.append(results.show(row))
    return rows


def _rates(name, stories, options):
    """Return the healthy pages of a second, and of a second of the processor."""
    healthy = [n for n, story in enumerate(stories) if story == "rules"]
    with web_of(stories) as web:
        origins = healthy if name == "off" else range(len(stories))
        result = crawl(
            urls_of(web, origins, [f"/p/{page}" for page in range(options.pages)]),
            CRAWLS[name],
            stop_after=len(healthy) * options.pages,
            at_most=options.at_most,
        )
    pages = result["results"].get("page", 0)
    # Those that didn't come in time count with all of it.
    whole = pages == len(healthy) * options.pages
    return pages / (result["seconds"] if whole else options.at_most), pages / result["cpu"]


def pop(options):
    rows = []
    for slots in options.slots:
        for waiting in (0, 90):
            requests = [
                Request(f"http://{host(n)}/{path}")
                for path in range(max(2, 40 // slots))  # more than are taken out at a time
                for n in range(slots)
            ]
            times = {}
            for name, make in (("Scrapy", scrapys), ("ours", ours)):
                doors = Doors()
                crawler = FakeCrawler(doors)
                queue = make(crawler)
                for request in requests:
                    queue.push(request)
                if waiting and name == "ours":
                    doors.open = {f"http://{host(n)}" for n in range(0, slots, 10)}
                taken = []
                queue.push(queue.pop())  # looks at all that is new, once
                if waiting and name == "ours":
                    for _ in range(slots // 10):  # looks at each that waits, once
                        queue.push(queue.pop())
                pops, pushes = [], []
                gc.collect()
                for _ in range(max(30, min(2000, 400_000 // slots)) if name == "Scrapy" else 2000):
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
                times[name] = 1e6 * statistics.median(pops)
                times[f"{name} push"] = 1e6 * statistics.median(pushes)
            rows.append(results.show({"slots": slots, "waiting": waiting, **times}))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = {f.__name__: f for f in (shares, pop)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--builtin-rounds", type=int, default=1)
    parser.add_argument("--shares", type=int, nargs="+", default=[0, 1, 5, 10, 20])
    parser.add_argument("--at-most", type=float, default=60, help="seconds of a crawl")
    parser.add_argument("--origins", type=int, default=200)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--slots", type=int, nargs="+", default=[100, 1000, 10_000])
    results.add_option(parser)
    options = parser.parse_args()
    results.write(options.json, __spec__.name, commands[options.command](options))


if __name__ == "__main__":
    main()
