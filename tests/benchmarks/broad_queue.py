"""The queue alone, beside Scrapy's: its time, in memory and on disk, and its memory."""

from __future__ import annotations

import gc
import shutil
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from scrapy import Request

from scrapy_rep.protocol.origin import origin_of
from tests.benchmarks.broad_web import host
from tests.scheduler.queues import Doors, FakeCrawler, ours, scrapys


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
                Request(f"http://{host(n)}/{path}") for path in range(2) for n in range(slots)
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


def disk(options):
    print(
        "with JOBDIR, two requests a slot: microseconds for a push() and a pop(); seconds to open"
    )
    print("what a kill left; open files")
    for slots in options.slots:
        for name, make in (("Scrapy's", scrapys), ("ours", ours)):
            if name != "ours" and slots > options.at_most_slots:
                continue
            with tempfile.TemporaryDirectory() as folder:
                files = len([*Path("/proc/self/fd").iterdir()])
                crawler = FakeCrawler(Doors())
                Path(folder, "queue").mkdir()
                queue = make(crawler, key=f"{folder}/queue")
                began = time.perf_counter()
                for n in range(2 * slots):
                    queue.push(Request(f"http://{host(n % slots)}/{n}"))
                push = (time.perf_counter() - began) / (2 * slots)
                files = len([*Path("/proc/self/fd").iterdir()]) - files
                queue.push(queue.pop())
                pops = []
                for _ in range(min(1000, slots)):
                    began = time.perf_counter()
                    request = queue.pop()
                    pops.append(time.perf_counter() - began)
                    crawler.downloader.begin(request)
                    crawler.downloader.end(request)
                opening = float("nan")
                if name == "ours":
                    shutil.copytree(f"{folder}/queue", f"{folder}/killed")
                    began = time.perf_counter()
                    make(FakeCrawler(Doors()), key=f"{folder}/killed").close()
                    opening = time.perf_counter() - began
                queue.close()
            print(
                f"{slots:7} {name:>9} {1e6 * push:9.1f} {1e6 * statistics.median(pops):9.1f}"
                f" {opening:9.2f} {files:7}",
                flush=True,
            )


def memory(options):
    print("bytes a waiting request takes, one request a slot, the request itself not counted")
    for slots in options.slots:
        taken = {}
        for name, make in (("scrapy", scrapys), ("ours", ours)):
            requests = [Request(f"http://{host(n)}/") for n in range(slots)]
            queue = make(FakeCrawler(Doors()))
            for request in requests:
                origin_of(request.url)
            gc.collect()
            tracemalloc.start()
            for request in requests:
                queue.push(request)
            taken[name] = tracemalloc.get_traced_memory()[0] / slots
            tracemalloc.stop()
            queue.close()
        ratio = taken["ours"] / taken["scrapy"]
        print(f"{slots:7} {taken['scrapy']:9.0f} {taken['ours']:9.0f} {ratio:7.2f}", flush=True)
