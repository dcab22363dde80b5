"""Commands that go on while a test talks with them."""

import subprocess
import sys

from tests.waiting import PATIENCE


def started(*arguments, **options):
    """Start ``scrapy robots *arguments``. Options are those of `subprocess.Popen`."""
    command = [sys.executable, "-m", "scrapy", "robots", f"--set=REP_TIMEOUT={PATIENCE}"]
    return subprocess.Popen([*command, *arguments], **options)
