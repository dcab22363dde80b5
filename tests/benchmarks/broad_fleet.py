"""A fleet on a broad web whose workers are killed: ``python -m tests.benchmarks.broad_fleet [--kills 6]``.

Each worker has its own pages of every origin, its own JOBDIR, and robots.txt in a Redis or a file
that all share. One that is killed is started again with its JOBDIR. Every URL is to be accounted for,
no disallowed page to be asked for, and each robots.txt to be asked for once, and once more at most for
each fetch that a kill ended. The same is crawled by one worker first, of as many origins for each.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.broad_crawl import OURS
from tests.benchmarks.broad_processes import finish, start, web_of
from tests.redis_server import RedisServer

STORIES = [*["rules"] * 6, *["missing"] * 3, "redirect"]
PAGE_SECONDS = 0.05


class Worker:
    """The pages of one worker, however often its process is started."""

    def __init__(self, web, uri, number, options, origins):
        folder = options.folder
        self.web = web
        self.accounts = Path(folder, f"accounts-{number}")
        self.accounts.touch()
        self.settings = {
            **OURS,
            "REP_STORE": uri,
            "JOBDIR": str(Path(folder, f"job-{number}")),
            "CONCURRENT_REQUESTS": options.concurrency,
        }
        pages = [f"/p/{number}/{page}" for page in range(options.pages)]
        self.order = {
            "origins": list(range(origins)),
            "paths": [*pages, f"/private/{number}"],
            "accounts": str(self.accounts),
        }
        self.urls = origins * len(self.order["paths"])
        self.start()

    def start(self):
        self.process = start(self.web, self.settings, **self.order)

    def kill(self):
        self.process.kill()
        self.process.communicate()
        self.start()

    def accounted(self):
        return [line.split("\t") for line in self.accounts.read_text().splitlines()]


def crawl(options, count, origins, kills):
    """Crawl with some workers; return the pages of a second."""
    with ExitStack() as stack:
        options.folder = folder = stack.enter_context(tempfile.TemporaryDirectory())
        uri = f"sqlite:///{folder}/robots.sqlite"
        if options.store == "redis":
            redis = RedisServer(folder)
            stack.callback(redis.stop)
            uri = redis.uri
        web = stack.enter_context(web_of(STORIES, PAGE_SECONDS))
        began, killed = time.monotonic(), 0
        workers = [Worker(web, uri, n, options, origins) for n in range(count)]
        for _ in range(kills):
            time.sleep(options.every)
            running = [worker for worker in workers if worker.process.poll() is None]
            if not running:
                break
            random.choice(running).kill()
            killed += 1
        ends = [finish(worker.process) for worker in workers]
        seconds = time.monotonic() - began
        journal = web.journal()
        accounts = [line for worker in workers for line in worker.accounted()]
    urls = sum(worker.urls for worker in workers)
    known = {url for url, *_ in accounts}
    outcomes = sorted({what for _, what in accounts})
    errors = sum(end["stats"].get("log_count/ERROR", 0) for end in ends)
    print(
        f"{count} workers, {origins} origins, robots.txt in {options.store}, killed {killed}"
        f" times, {seconds:.0f} s\n"
        f"  URLs {urls}, accounted for {len(known)}, lost {urls - len(known)},"
        f" twice {len(accounts) - len(known)}; {', '.join(outcomes)}; errors {errors}\n"
        f"  robots.txt asked for {journal['robots']} times, of {journal['asked']} origins,"
        f" of {journal['asked twice']} more than once; disallowed pages on the wire"
        f" {journal['wrong']}\n"
        f"  pages on the wire {journal['pages']}, {journal['pages'] / seconds:.0f} a second;"
        f" memory of a worker at its end"
        f" {', '.join(str(round(end['memory'][-1][1])) for end in ends)} MiB",
        flush=True,
    )
    return journal["pages"] / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=["redis", "sqlite"], default="redis")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--origins", type=int, default=20_000)
    parser.add_argument("--pages", type=int, default=2, help="of each origin, for each worker")
    parser.add_argument("--concurrency", type=int, default=64, help="requests of a worker")
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--every", type=float, default=15, help="seconds between two kills")
    options = parser.parse_args()
    alone = crawl(options, 1, options.origins // options.workers, 0)
    together = crawl(options, options.workers, options.origins // options.workers, 0)
    print(f"pages a second, {options.workers} workers / one: {together / alone:.2f}")
    crawl(options, options.workers, options.origins, options.kills)


if __name__ == "__main__":
    main()
