"""Runs a cell of the table: hosts, store and crawls, each in a process of its own."""

import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tests.crawling.process import CrawlProcess
from tests.redis_server import RedisServer
from tests.server_process import ServerProcess
from tests.waiting import wait_until
from tests.wire import figures
from tests.wire.cells import ADDRESSES

SETTINGS = {"RETRY_TIMES": 5, "LOG_LEVEL": "WARNING"}
HERE = Path(__file__).parent
LATE = 25.0
"""Seconds after which a crawl that should have ended is killed."""


@contextmanager
def around(stories, store):
    """Start hosts with these stories, by address, and a store of that kind.

    Yields the folder of the crawls, the URI of the store, and the hosts.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        uri = {"memory": "memory://"}.get(store, f"sqlite:///{folder}/robots.sqlite")
        if store == "redis":
            redis = RedisServer(folder)
            stack.callback(redis.stop)
            uri = redis.uri
        yield folder, uri, stack.enter_context(ServerProcess(HERE / "server.py", stories))


def told_by(process):
    """Wait for the end of a crawl, and return what it told: nothing if it had to be killed."""
    try:
        return process.result()
    except AssertionError as error:
        return {"ends": {}, "refusal_read": None, "stats": {}, "log": str(error)}


@contextmanager
def busy(processes):
    spinning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def run(cell):
    """Crawl a cell; return its figures, and what reached the hosts that have a role, as lines."""
    found, journal = crawl(cell)
    if cell.without:
        alone, other = crawl(without(cell))
        hosts = cell.workers[0].awaits
        found["rate"] = figures.rate(journal, hosts) / figures.rate(other, hosts)
        found["ended"] = min(found["ended"], alone["ended"])
    return found, list(lines(journal))


def without(cell):
    """Return the cell without the requests for the hosts that it is compared without."""
    (worker,) = cell.workers
    left = [each for each in worker.requests if each["host"] not in cell.without]
    return replace(cell, workers=(replace(worker, requests=left),))


def crawl(cell):
    """Crawl a cell once; return its figures and the journal."""
    stories = {ADDRESSES.get(role, role): story for role, story in cell.stories.items()}
    with around(stories, cell.store) as (folder, uri, web), busy(cell.busy):
        settings = {**SETTINGS, **cell.settings, "REP_STORE": uri}
        if cell.jobdir:
            settings["JOBDIR"] = "job"
        running, results, yielded = [], [], []
        for number, worker in enumerate(cell.workers):
            if worker.begins == "refused":
                wait_until(lambda: has_refused(web.journal()))
            elif worker.begins == "ended":
                results += map(told_by, running)
                running = []
            order, wanted = order_of(worker, number, web.port)
            yielded += wanted
            running.append(
                CrawlProcess(
                    "asyncio",
                    [],
                    spider="tests.wire.spider.WireSpider",
                    arguments={"order": order},
                    at_most=cell.at_most,
                    patience=cell.at_most + LATE,
                    cwd=folder,
                    **settings,
                )
            )
        results += map(told_by, running)
        journal = web.journal()
    found = figures.of_cell(cell, journal, results, yielded)
    found["told"] = [each["log"] for each in results if each["log"]]
    return found, journal


def order_of(worker, number, port):
    """Return the order of a worker, and the numbers of the requests that are to end."""

    def url(host, each):
        return f"http://{ADDRESSES.get(host, host)}:{port}/{number}/{each}"

    given, wanted, awaited = [], [], []
    for each, request in enumerate(worker.requests, 1000 * number):
        asked = {**request, "number": each, "url": url(request["host"], each)}
        if after := request.get("after"):
            asked = {**asked, "number": None, "url": url(after, each), "then": asked}
        given.append(asked)
        if not worker.awaits or request["host"] in worker.awaits:
            wanted.append(each)
        if request["host"] in worker.awaits:
            awaited.append(each)
    closes = worker.closes_after_refusal
    return {"requests": given, "awaited": awaited, "closes_after_refusal": closes}, wanted


def has_refused(journal):
    return any(entry["retry_after"] for entries in journal.values() for entry in entries)


def lines(journal):
    came = sorted(
        (
            (entry["at"], figures.NAMES[host], entry)
            for host, entries in journal.items()
            if host in figures.NAMES
            for entry in entries
        ),
        key=lambda each: each[:2],
    )
    for at, role, entry in came:
        more = f" for {entry['retry_after']} s" if entry["retry_after"] else ""
        yield f"{at - came[0][0]:7.3f} {role:12} {entry['path']:12} {entry['status']}{more}"
