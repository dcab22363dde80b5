"""A server in a process of its own, which answers each line that it gets with a line of JSON."""

import json
import subprocess
import sys

from tests.waiting import PATIENCE


class Server:
    """Runs a Python file with these arguments, which are strings or become JSON."""

    def __init__(self, path, *arguments):
        texts = (each if isinstance(each, str) else json.dumps(each) for each in arguments)
        self.process = subprocess.Popen(
            [sys.executable, str(path), *texts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line):
        self.process.stdin.write(line + "\n")
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


class ServerProcess(Server):
    """One that first prints its port, and then its journal for each line."""

    def __init__(self, path, *arguments):
        super().__init__(path, *arguments)
        self.port = int(self.process.stdout.readline())

    def journal(self):
        return self.ask("")
