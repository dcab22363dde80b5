"""The hosts, the store and the crawls of a cell or of chaos, each in a process of its own."""

import json
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests import forking
from tests.redis_server import RedisServer
from tests.server_process import ServerProcess

HERE = Path(__file__).parent
LATE = 25.0
"""Seconds after which a crawl that should have ended is killed."""


class Around(NamedTuple):
    """What crawls have around them."""

    folder: Path
    uri: str
    """Of the store."""
    web: ServerProcess
    redis: RedisServer | None


@contextmanager
def around(stories, store):
    """Start hosts with these stories, by address, and a store of the kind ``memory``, ``sqlite`` or ``redis``."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        uri = {"memory": "memory://"}.get(store, f"sqlite:///{folder}/robots.sqlite")
        redis = None
        if store == "redis":
            redis = RedisServer(folder)
            stack.callback(redis.stop)
            uri = redis.uri
        web = stack.enter_context(ServerProcess(HERE / "server.py", stories))
        yield Around(folder, uri, web, redis)


@dataclass
class Process:
    """A process of a worker that has ended."""

    worker: int
    began: float
    ended: float
    journal: list
    signal: int | None
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

    def __init__(self, order, folder, worker, stop=None, *, resumes=False):
        self.worker = worker
        self.stop = stop
        """A signal that it gets, and after how many seconds."""
        self.at_most = order["at_most"] + LATE
        self.journal = folder / f"journal-{worker}-{resumes}.jsonl"
        self.log = (folder / f"log-{worker}-{resumes}").open("w+")
        self.began = time.monotonic()
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
        """Send the signal, if there is one, and wait for the end."""
        sent = None
        if self.stop is not None:
            number, seconds = self.stop
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.Signals(number))
                sent = number
        try:
            self.process.wait(self.at_most)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        ended = time.monotonic()
        self.log.seek(0)
        with self.log:
            log = self.log.read()
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        journal = [json.loads(line) for line in lines if line.endswith("}")]
        return Process(self.worker, self.began, ended, journal, sent, log)
