"""Python programs in processes of their own, without the second that it takes to import Scrapy.

They are forked from a process that has imported it: preloaded.py. Where there is no fork, they are
started. Programs and options are given as to ``python`` and `subprocess`. What is registered with
`atexit` is not run where it was forked.
"""

import gc
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
HAS_FORK = "forkserver" in multiprocessing.get_all_start_methods()
if HAS_FORK:
    _FORKS = multiprocessing.get_context("forkserver")
    _FORKS.set_forkserver_preload(["tests.preloaded"])


def start(*arguments, **options):
    """Start ``python *arguments``: ``start("-m", "scrapy", "list", stdout=subprocess.PIPE)``.

    Returns what has the methods of `subprocess.Popen` that tests use. Options are ``stdin``, ``stdout``,
    ``stderr`` (files or pipes), ``cwd`` and ``env``; streams are text.
    """
    if not HAS_FORK:
        return subprocess.Popen([sys.executable, *arguments], text=True, **options)
    return _Forked(arguments, **options)


def run(*arguments, input="", timeout=PATIENCE, **options):  # noqa: A002 - as subprocess has it
    """Run ``python *arguments`` to its end, and return a `subprocess.CompletedProcess`."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
    ):
        stdin.write(input)
        stdin.seek(0)
        process = start(*arguments, stdin=stdin, stdout=stdout, stderr=stderr, **options)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(arguments, status, stdout.read(), stderr.read())


class _Forked:
    def __init__(self, arguments, *, stdin=None, stdout=None, stderr=None, cwd=None, env=None):
        ours, theirs = zip(*map(_ends, (0, 1, 2), (stdin, stdout, stderr)), strict=True)
        self.stdin, self.stdout, self.stderr = ours
        self._process = _FORKS.Process(
            target=_become,
            args=([*map(str, arguments)], theirs, str(cwd or Path.cwd()), dict(env or os.environ)),
            daemon=True,
        )
        here = Path.cwd()
        # Where the process that all are forked from, which is started with the first, finds `tests`.
        os.chdir(ROOT)
        try:
            self._process.start()
        finally:
            os.chdir(here)
            for end in theirs:
                end.close()

    @property
    def pid(self):
        return self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self.returncode

    def kill(self):
        self._process.kill()

    def terminate(self):
        self._process.terminate()

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)


def _ends(number, stream):
    """Return our end, if there is one, and theirs, of a standard stream."""
    if stream == subprocess.PIPE:
        read, write = os.pipe()
        ours, theirs = (read, write) if number else (write, read)
        return open(ours, "r" if number else "w", encoding="utf-8"), Connection(theirs)  # noqa: PTH123 - a number
    return None, Connection(os.dup(number if stream is None else stream.fileno()))


def _become(arguments, streams, cwd, env):
    """Be ``python *arguments``, in a process that has just been forked."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the end
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the end
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115 - the same
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, cwd)
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")
    gc.collect()  # Twisted logs an error that nobody has handled when it is freed
