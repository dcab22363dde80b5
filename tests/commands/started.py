"""Commands that go on while a test talks with them."""

import sys
from subprocess import PIPE, Popen

from tests.waiting import PATIENCE

PATIENT = f"--set=REP_TIMEOUT={PATIENCE}"
"""A machine that is busy is no site that fails."""


def started(*arguments, cwd, stdin=None, stderr=PIPE):
    """Start ``scrapy robots *arguments``, whose output can be read."""
    command = [sys.executable, "-m", "scrapy", "robots", PATIENT, *arguments]
    return Popen(command, cwd=cwd, stdin=stdin, stdout=PIPE, stderr=stderr, text=True)
