"""A JOBDIR with requests to many hosts, left by a crawl that was killed.

    python -m tests.benchmarks.jobdir [--requests 1000000] [--folder FOLDER]

A process fills it, one request to each host, and kills itself. Another one opens it, and takes
requests: all of those are sent at once, and end at once. Printed are the time of a push, the time
to open, memory above that of an empty queue, and the times of the first 400 pops and of all others.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scrapy import Request, squeues

from scrapy_rep import RobotsAwarePriorityQueue
from tests.scheduler.queues import FakeCrawler

FIRST = 400
POPS = 20_000


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def queue_in(folder):
    crawler = FakeCrawler()
    queue = RobotsAwarePriorityQueue(crawler, squeues.PickleFifoDiskQueue, folder)
    return queue, crawler


def fill(folder, requests):
    queue, _ = queue_in(folder)
    before, start = resident(), time.perf_counter()
    for number in range(requests):
        queue.push(Request(f"http://{number * 7919 % requests}.example/"))
    seconds = time.perf_counter() - start
    print(json.dumps({"us": 1e6 * seconds / requests, "bytes": resident() - before}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def take(folder):
    before, start = resident(), time.perf_counter()
    queue, _ = queue_in(folder)
    opened, there = time.perf_counter() - start, len(queue)
    memory = resident() - before
    times = []
    for _ in range(FIRST + POPS):
        start = time.perf_counter()
        request = queue.pop()
        times.append(1e6 * (time.perf_counter() - start))
        if request is None:
            raise LookupError("nothing leaves")
    told = {"opened": opened, "requests": there, "bytes": memory}
    told["bytes later"] = resident() - before
    for name, some in (("first", times[:FIRST]), ("others", times[FIRST:])):
        told[name] = [statistics.mean(some), statistics.median(some), max(some)]
    print(json.dumps(told))


def run(what, folder, requests):
    command = [sys.executable, "-m", "tests.benchmarks.jobdir", "--do", what]
    command += ["--folder", folder, "--requests", str(requests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--do", choices=["fill", "take"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do == "fill":
        fill(options.folder, options.requests)
    if options.do == "take":
        take(options.folder)
    if options.do:
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        filled = run("fill", folder, options.requests)
        each = filled["bytes"] / options.requests
        print(
            f"{options.requests:,} pushes: {filled['us']:.0f} us, {each:.0f} bytes of memory each"
        )
        for _ in range(2):
            taken = run("take", folder, options.requests)
            each, later = (taken[key] / options.requests for key in ("bytes", "bytes later"))
            print(
                f"opened in {taken['opened']:.2f} s, {taken['requests']:,} requests; "
                f"{each:.0f} bytes of memory each, {later:.0f} after {FIRST + POPS:,} pops"
            )
            for what, key in ((f"first {FIRST}", "first"), (f"next {POPS:,}", "others")):
                mean, median, most = taken[key]
                print(f"  {what} pops: mean {mean:.0f} us, median {median:.0f}, longest {most:.0f}")


if __name__ == "__main__":
    main()
