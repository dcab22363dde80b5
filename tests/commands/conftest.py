"""A way to run a command."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.waiting import PATIENCE

PATIENT = [f"--set={name}={PATIENCE}" for name in ("REP_TIMEOUT", "REP_STORE_TIMEOUT")]
"""A machine that is busy is no store and no site that fails."""


@dataclass
class Run:
    status: int
    out: str
    err: str


@pytest.fixture
def robots_command(tmp_path):
    def run(*arguments, cwd=tmp_path, stdin=""):
        process = subprocess.run(
            [sys.executable, "-m", "scrapy", "robots", *PATIENT, *arguments],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in process.stderr, process.stderr
        return Run(process.returncode, process.stdout, process.stderr)

    return run
