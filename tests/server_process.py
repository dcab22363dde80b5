"""A server in a process of its own. It prints its port, and its journal for each line that it gets."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.waiting import PATIENCE


class ServerProcess:
    """Runs a Python file with these arguments, which are strings or become JSON."""

    def __init__(self, path, *arguments):
        texts = (each if isinstance(each, str) else json.dumps(each) for each in arguments)
        self.process = subprocess.Popen(
            [sys.executable, str(path), *texts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.process.stdout.readline())

    def journal(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)
