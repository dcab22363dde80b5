"""Runs a plan."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path

from tests import forking
from tests.redis_server import RedisServer
from tests.wire.chaos.judge import Process
from tests.wire.processes import web_of

HERE = Path(__file__).parent
AT_MOST = 75.0
"""Seconds after which a crawl hangs."""
LATE = 25.0
"""Seconds after that until its process is killed."""


class Running:
    """A process that crawls."""

    def __init__(self, plan, worker, folder, port, uri, signal_after=None, *, resumes=False):
        self.worker = worker
        self.stop = signal_after
        self.journal = folder / f"journal-{worker}-{resumes}.jsonl"
        self.log = (folder / f"log-{worker}-{resumes}").open("w+")
        settings = {**plan.settings, "REP_STORE": uri}
        if "JOBDIR" in settings:
            settings["JOBDIR"] = f"job-{worker}"
        if "HTTPCACHE_DIR" in settings:
            settings["HTTPCACHE_DIR"] = str(folder / f"cache-{worker}")
        order = {
            "mode": plan.mode,
            "settings": settings,
            "requests": [] if resumes else plan.requests[worker],
            "port": port,
            "journal": str(self.journal),
            "at_most": AT_MOST,
        }
        self.began = time.monotonic()
        self.process = forking.start(
            str(HERE / "crawl.py"),
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            cwd=folder,
        )
        self.process.stdin.write(json.dumps(order) + "\n")
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
            self.process.wait(AT_MOST + LATE)
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


@contextmanager
def sqlite_locked(folder):
    """Lock the file of the store."""
    with closing(sqlite3.connect(folder / "robots.sqlite", timeout=30)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.rollback()


@contextmanager
def redis_paused(redis):
    """Let Redis answer nothing."""
    redis.pause()
    yield
    redis.resume()


def stop_store(outage, stopped):
    """Stop the store for the time of the outage."""
    after, seconds = outage
    time.sleep(after)
    with stopped:
        time.sleep(seconds)


def run(plan):
    """Crawl; return the hosts' journal and the processes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "files").mkdir()  # FilesPipeline fails if two workers make it at once
        uri = {"memory": "memory://", "sqlite": f"sqlite:///{folder}/robots.sqlite"}.get(plan.store)
        if plan.store == "redis":
            redis = RedisServer(folder)
            stack.callback(redis.stop)
            uri = redis.uri
        web = web_of({host.address: asdict(host)["story"] for host in plan.hosts.values()})
        stack.callback(web.close)
        running = [
            Running(plan, worker, folder, web.port, uri, None if worker else plan.stop)
            for worker in range(len(plan.requests))
        ]
        if plan.outage is not None:
            stopped = sqlite_locked(folder) if plan.store == "sqlite" else redis_paused(redis)
            outage = threading.Thread(target=stop_store, args=(plan.outage, stopped))
            outage.start()
            stack.callback(outage.join)
        processes = [running[0].wait()]
        if processes[0].signal is not None:
            processes.append(Running(plan, 0, folder, web.port, uri, resumes=True).wait())
        processes += [each.wait() for each in running[1:]]
        return web.journal(), processes
