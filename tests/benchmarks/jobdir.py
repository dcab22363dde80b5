"""A JOBDIR with requests to many hosts, left by a crawl that was killed.

    python -m tests.benchmarks.jobdir [--requests 1000000] [--folder FOLDER]

A process fills it, one request to each host, and kills itself. Another one opens it, and takes
requests: all of those are sent at once, and end at once. Printed are the time of a push, the time
to open, memory above that of an empty queue, and the time of a pop.
"""

import argparse
import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from scrapy import Request, squeues

from scrapy_rep import RobotsAwarePriorityQueue
from tests.scheduler.queues import FakeCrawler

POPS = 20_000


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def queue_in(folder):
    return RobotsAwarePriorityQueue(FakeCrawler(), squeues.PickleFifoDiskQueue, folder)


def fill(folder, requests):
    queue = queue_in(folder)
    before, start = resident(), time.perf_counter()
    for number in range(requests):
        queue.push(Request(f"http://{number * 7919 % requests}.example/"))
    each = 1e6 * (time.perf_counter() - start) / requests
    memory = (resident() - before) / requests
    print(f"{requests:,} pushes: {each:.0f} us, {memory:.0f} bytes of memory each", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def take(folder, requests):
    before, start = resident(), time.perf_counter()
    queue = queue_in(folder)
    opened, memory = time.perf_counter() - start, (resident() - before) / requests
    print(f"opened in {opened:.2f} s, {len(queue):,} requests, {memory:.0f} bytes of memory each")
    times = []
    for _ in range(POPS):
        start = time.perf_counter()
        if queue.pop() is None:
            raise LookupError("nothing leaves")
        times.append(1e6 * (time.perf_counter() - start))
    mean, median, most = statistics.mean(times), statistics.median(times), max(times)
    print(f"{POPS:,} pops: mean {mean:.0f} us, median {median:.0f}, longest {most:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for step in (fill, take):
            process = multiprocessing.get_context("spawn").Process(
                target=step, args=[folder, options.requests]
            )
            process.start()
            process.join()


if __name__ == "__main__":
    main()
