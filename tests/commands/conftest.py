"""A way to run a command."""

import json
from dataclasses import dataclass

import pytest

from tests.commands.started import PATIENT


@dataclass
class Run:
    status: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def robots_command(run_scrapy, tmp_path):
    def run(*arguments, cwd=tmp_path, stdin=""):
        done = run_scrapy("robots", PATIENT, *arguments, cwd=cwd, stdin=stdin)
        assert "Traceback" not in done.stderr, done.stderr
        return Run(done.returncode, done.stdout, done.stderr)

    return run
