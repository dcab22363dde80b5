"""scrapyd: two jobs at a time, each a process, that share one store."""

from __future__ import annotations

import json
import subprocess
import sys
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.running import free_port
from tests.stacks.stack import EVERY
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.needs("scrapyd")

_PORTS = 20
_SPIDER = """
import scrapy

class JobSpider(scrapy.Spider):
    name = "job"

    async def start(self):
        for url in self.urls.split():
            yield scrapy.Request(url)

    def parse(self, response):
        yield {"url": response.url}
"""


class Scrapyd:
    """A scrapyd with one project, on a port that was free."""

    def __init__(self, folder, settings):
        self.folder = folder
        (folder / "jobs_project").mkdir()
        (folder / "jobs_project" / "__init__.py").touch()
        (folder / "jobs_project" / "spiders.py").write_text(_SPIDER)
        lines = [f"{name} = {value!r}" for name, value in settings.items()]
        lines += ['SPIDER_MODULES = ["jobs_project.spiders"]']
        (folder / "jobs_project" / "settings.py").write_text("\n".join(lines))
        self.log = folder / "scrapyd.log"
        # Another program may take a free port before scrapyd does.
        for _ in range(_PORTS):
            self.port = free_port()
            if self._begin():
                return
        raise RuntimeError(self.log.read_text())

    def _begin(self):
        (self.folder / "scrapy.cfg").write_text(
            "[settings]\njobs_project = jobs_project.settings\n"
            f"[scrapyd]\nhttp_port = {self.port}\nmax_proc = 2\npoll_interval = 0.2\n"
        )
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scrapyd"], cwd=self.folder, stdout=log, stderr=log
            )
        began = f"Site starting on {self.port}"
        wait_until(lambda: self.process.poll() is not None or began in self.log.read_text())
        return self.process.poll() is None

    def ask(self, path, **form):
        url = f"http://127.0.0.1:{self.port}{path}"
        with urlopen(url, urlencode(form).encode() or None, PATIENCE) as answer:
            return json.loads(answer.read())

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


@pytest.fixture
def begin():
    started = []

    def begin(folder, settings):
        started.append(Scrapyd(folder, settings))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def test_two_jobs(stack, begin):
    stack = stack("scrapyd")
    # Not the one that is down: a job that is begun after a failed try, tries once more.
    sites = stack.sites(*(name for name in EVERY if name != "down"))
    scrapyd = begin(
        stack.folder,
        {
            "ADDONS": {"scrapy_rep.Addon": 500},
            "REP_STORE": f"sqlite:///{(stack.folder / 'robots.sqlite').as_posix()}",
            "USER_AGENT": "testbot/1.0",
            "REP_DEFER_TIMEOUT": 0,
            "TELNETCONSOLE_ENABLED": False,
        },
    )
    for _ in range(2):
        form = {"project": "jobs_project", "spider": "job", "urls": " ".join(sites.urls)}
        assert scrapyd.ask("/schedule.json", **form)["status"] == "ok"
    wait_until(lambda: len(scrapyd.ask("/listjobs.json")["finished"]) == 2)
    stack.check(sites, "two jobs at a time, one SQLite store")
