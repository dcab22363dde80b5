"""A program that is forked is as one that is started."""

import os
import signal
import subprocess
import sys

import pytest

from tests import forking
from tests.waiting import PATIENCE

PROGRAM = """
import os, sys

print(__name__, sys.argv, os.getcwd(), os.environ["A_NAME"], sys.stdin.read())
print(sys.path[0], "twisted.internet.reactor" in sys.modules)
print("words", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("named", "ends"),
    [("path", ""), ("module", "sys.exit(3)"), ("path", "sys.exit('an end')"), ("module", "1 / 0")],
)
def test_forked_and_started_are_the_same(named, ends, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + ends)
    arguments = [*([str(path)] if named == "path" else ["-m", "program"]), "a", "--b"]
    options = {"input": "ä\n", "cwd": tmp_path, "env": {**os.environ, "A_NAME": "a value"}}
    started = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
        **options,
    )
    forked = forking.run(*arguments, **options)
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert words(forked) == words(started)


def words(run):
    """What is on standard error, without the way that an error came, which differs."""
    lines = run.stderr.splitlines()
    return [line for line in lines if not line.startswith(("Process ", "Traceback ", " "))]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_it_can_be_killed(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("print('here', flush=True); input()")
    process = forking.start(str(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "here\n"
    assert process.poll() is None
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert process.stdout.read() == ""
    process.stdin.close()
    process.stdout.close()
