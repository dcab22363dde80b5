"""The servers and crawls of the table, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests import forking
from tests.server_process import ServerProcess
from tests.waiting import PATIENCE

HERE = Path(__file__).parent


def web_of(stories):
    """Start the hosts."""
    return ServerProcess(HERE / "server.py", stories)


class Crawl:
    """A crawl with an order: see crawl.py."""

    def __init__(self, order, folder):
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self.process = forking.start(
            str(HERE / "crawl.py"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=folder,
        )
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.close()

    def result(self):
        """Wait for its end, and return what came of it, with its log."""
        output = self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(PATIENCE)
        self.log.seek(0)
        with self.log:
            log = self.log.read()
        if not output:
            raise RuntimeError(f"a crawl ended with {self.process.returncode}: {log[-3000:]}")
        return {**json.loads(output), "log": log}


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
