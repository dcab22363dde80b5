"""Runs a cell of the table: hosts, store and crawls, each in a process of its own."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests import forking
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
        web = stack.enter_context(ServerProcess(HERE / "server.py", stories))
        yield folder, uri, web


@dataclass
class Process:
    """A process of a worker that has ended."""

    journal: list
    log: str

    def of(self, what):
        """Return the entries of a kind."""
        return [each for each in self.journal if each["what"] == what]

    @property
    def errors(self):
        return sum(each["errors"] for each in self.of("closed") + self.of("gave up"))

    @property
    def ends(self):
        """How often each request has ended, by its number."""
        return Counter(each["number"] for each in self.of("end"))

    @property
    def refusal_read(self):
        """When it had the headers of the first refusal."""
        return next((each["t"] for each in self.of("read") if each["refused"]), None)


class Running:
    """A process that crawls."""

    def __init__(self, order, folder, worker):
        self.at_most = order["at_most"] + LATE
        self.journal = folder / f"journal-{worker}.jsonl"
        self.log = (folder / f"log-{worker}").open("w+")
        self.process = forking.start(
            str(HERE / "crawl.py"),
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            cwd=folder,
        )
        self.process.stdin.write(json.dumps({**order, "journal": str(self.journal)}) + "\n")
        self.process.stdin.close()

    def wait(self):
        """Wait for the end, and return what came of it."""
        try:
            self.process.wait(self.at_most)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.seek(0)
        with self.log:
            log = self.log.read()
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        journal = [json.loads(line) for line in lines if line.endswith("}")]
        return Process(journal, log)


@contextmanager
def busy(processes):
    """Keep the machine busy with processes that spin."""
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
        running, results, yielded = [], [], []
        for number, worker in enumerate(cell.workers):
            if worker.begins == "refused":
                wait_until(lambda: has_refused(web.journal()))
            elif worker.begins == "ended":
                results += [each.wait() for each in running]
                running = []
            order, wanted = order_of(cell, worker, number, web.port)
            order["settings"]["REP_STORE"] = uri
            yielded += wanted
            running.append(Running(order, folder, number))
        results += [each.wait() for each in running]
        journal = web.journal()
    found = figures.of_cell(cell, journal, results, yielded)
    found["told"] = [each.log for each in results if each.log]
    return found, journal


def order_of(cell, worker, number, port):
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
    settings = {**SETTINGS, **cell.settings}
    if cell.jobdir:
        settings["JOBDIR"] = "job"
    order = {"settings": settings, "requests": given, "at_most": cell.at_most, "awaited": awaited}
    return {**order, "closes_after_refusal": worker.closes_after_refusal}, wanted


def has_refused(journal):
    return any(entry["retry_after"] for entries in journal.values() for entry in entries)


def lines(journal):
    """Yield what reached the hosts that have a role, in its order."""
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
