"""A JOBDIR with requests to many hosts, left by a crawl that was killed.

    python -m tests.benchmarks.jobdir [--requests 1000000]

A process fills it, one request to each host, and kills itself. Then it is opened. Printed are the
time of a push, the time to open, and memory above that of an empty queue.
"""

import argparse
import multiprocessing
import os
import signal
import tempfile
import time
from pathlib import Path

from scrapy import Request, squeues

from scrapy_rep import RobotsAwarePriorityQueue
from tests.scheduler.queues import FakeCrawler


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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
    opened, each = time.perf_counter() - start, (resident() - before) / requests
    print(f"opened in {opened:.2f} s, {len(queue):,} requests, {each:.0f} bytes of memory each")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        filling = multiprocessing.get_context("spawn").Process(target=fill, args=[folder, requests])
        filling.start()
        filling.join()
        take(folder, requests)


if __name__ == "__main__":
    main()
