"""A web of sites, and crawls of it, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.server_process import ServerProcess

HERE = Path(__file__).parent


def web_of(stories, seconds=0.01, certificate=None):
    order = {"stories": stories, "seconds": seconds, "certificate": certificate}
    return ServerProcess(HERE / "broad_web.py", order)


def start(web, settings, **order):
    process = subprocess.Popen(
        [sys.executable, str(HERE / "broad_crawl.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    order = {"port": web.port, "settings": settings, **order}
    process.stdin.write(json.dumps(order))
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
