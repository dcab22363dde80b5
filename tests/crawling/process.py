"""The tests' side of mode_crawl.py: starts a crawl, talks with it, gets its result."""

import json
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import scrapy

from tests import forking
from tests.waiting import PATIENCE

MODES = ["asyncio", "select"] + ["none"] * (scrapy.version_info >= (2, 15))
"""Of the Scrapy that is installed: before 2.15 it needs a reactor."""
MODE_CRAWL = Path(__file__).with_name("mode_crawl.py")


class CrawlProcess:
    """A crawl in a process of its own, which outlives neither its test nor ``patience``."""

    started: ClassVar = []

    def __init__(
        self,
        mode,
        urls,
        *,
        cancels=(),
        script=(),
        spider="tests.crawling.crawl.ListSpider",
        arguments=None,
        later=0,
        at_most=None,
        patience=PATIENCE,
        cwd=None,
        **settings,
    ):
        order = {"mode": mode, "settings": settings, "urls": urls, "spider": spider}
        order |= {"cancels": cancels, "script": script, "later": later}
        order |= {"arguments": arguments or {}, "at_most": at_most}
        # A file, as nobody reads a pipe while the crawl is being talked with.
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self.process = forking.start(
            str(MODE_CRAWL), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, cwd=cwd
        )
        self.started.append(self)
        self.alarm = threading.Timer(patience, self.process.kill)
        self.alarm.daemon = True
        self.alarm.start()
        self.tell(json.dumps(order))

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self, word):
        line = self.process.stdout.readline()
        assert line == word + "\n", line + self._end()

    def result(self):
        output = self.process.stdout.read()
        log = self._end()
        assert self.process.returncode == 0, log
        return {**json.loads(output.splitlines()[-1]), "log": log}

    @property
    def has_ended(self):
        return self.process.poll() is not None

    def kill(self):
        if not self.log.closed:
            self.process.kill()
            self._end()

    def _end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)
        self.alarm.cancel()
        self.log.seek(0)
        with self.log:
            return self.log.read()
