"""The hosts, the store and the crawls of a cell, each in a process of its own."""

import json
import subprocess
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import forking
from tests.redis_server import RedisServer
from tests.server_process import ServerProcess

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
