"""A web of sites, and crawls of it, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


class Web:
    def __init__(self, stories, seconds):
        order = json.dumps({"stories": stories, "seconds": seconds})
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "broad_web.py"), order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.process.stdout.readline())

    def journal(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


@contextmanager
def web_of(stories, seconds=0.01):
    web = Web(stories, seconds)
    try:
        yield web
    finally:
        web.close()


def start(web, settings, **order):
    process = subprocess.Popen(
        [sys.executable, str(HERE / "broad_crawl.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps({"port": web.port, "settings": settings, **order}))
    process.stdin.close()
    process.stdin = None
    return process


def crawl(web, settings, **order):
    return finish(start(web, settings, **order))


def finish(process):
    output, errors = process.communicate()
    if process.returncode or errors.strip():
        print(errors[-2000:], file=sys.stderr)
    return json.loads(output)
