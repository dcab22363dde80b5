"""What the tests of commands share: a web of sites, and a way to run one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.crawling.web import Web


@dataclass
class Run:
    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def web():
    web = Web()
    yield web
    web.close()


@pytest.fixture
def robots_command(tmp_path):
    def run(*arguments, cwd=tmp_path, stdin=""):
        process = subprocess.run(
            [sys.executable, "-m", "scrapy", "robots", *arguments],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in process.stderr, process.stderr
        return Run(process.returncode, process.stdout, process.stderr)

    return run
