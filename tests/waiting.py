"""Waiting in tests: for something that happens, for as long as it takes.

No test depends on how fast a machine is. What is to have happened is waited for, not slept for; what
is to be over is made so by moving the clock, not by waiting; and how long something took is asserted
nowhere: ruff knows the clocks and sleeps. The bound below guards against a test that would hang.
"""

import asyncio
import importlib
import logging
import pkgutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from types import FunctionType

PATIENCE = 300
"""Seconds after which something that has not happened never will, on any machine."""
_BETWEEN = 0.02
_LOOKS = round(PATIENCE / _BETWEEN)
_ROUNDS = 10


def run_to_end(*command, timeout=PATIENCE, **options):
    """Run a command to its end, and return a `subprocess.CompletedProcess` with its text."""
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=timeout, **options
    )


def wait_until(condition):
    """Wait until ``condition`` holds, and return what it returned; of other processes."""
    for _ in range(_LOOKS):
        if held := condition():
            return held
        time.sleep(_BETWEEN)
    raise AssertionError("what was waited for has not happened")


async def until(condition):
    """Await that ``condition`` holds, and return what it returned; of this process, too."""
    for _ in range(_LOOKS):
        if held := condition():
            return held
        await asyncio.sleep(_BETWEEN)
    raise AssertionError("what was waited for has not happened")


async def a_while():
    """Let what must not happen have its chance.

    A machine that is slow leaves it less of one; nothing fails for that.
    """
    for _ in range(_ROUNDS):
        await asyncio.sleep(_BETWEEN)


@contextmanager
def event_loop():
    """Let what is called meanwhile hand coroutines to an event loop of its own.

    They begin as in a crawl: not when they are handed over, but with ``settle``.
    """
    logging.getLogger("asyncio").setLevel(logging.INFO)  # a new loop names its selector
    outer = asyncio._get_running_loop()
    loop = asyncio.new_event_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        settle()
        asyncio._set_running_loop(outer)
        loop.close()


def settle():
    """Let the event loop go on until all has come as far as it can."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        loop.run_until_complete(_rounds())
    finally:
        asyncio._set_running_loop(loop)


async def _rounds():
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


class Clock:
    """Moves the clocks of scrapy_rep ahead, all of them.

    Those of its modules, whatever they call them, and those that functions and classes take where
    they are given none. They go on by themselves. Timers that run are not moved: what waits for one
    comes when it is over, and then finds the time that the clock has.
    """

    def __init__(self, monkeypatch=None):
        self._put = setattr if monkeypatch is None else monkeypatch.setattr
        self._ahead = 0.0
        self._theirs = {real: self._moved(real) for real in (time.time, time.monotonic)}
        for module in modules():
            self._move(module)
            for function in _functions(module):
                self._move_defaults(function)

    def _move(self, module):
        for name, value in list(vars(module).items()):
            if value is time.time or value is time.monotonic:
                self._put(module, name, self._theirs[value])

    def _move_defaults(self, function):
        defaults, by_name = function.__defaults__, function.__kwdefaults__
        if defaults is not None:
            self._put(function, "__defaults__", tuple(map(self._in_place_of, defaults)))
        if by_name is not None:
            moved = {name: self._in_place_of(value) for name, value in by_name.items()}
            self._put(function, "__kwdefaults__", moved)

    def _in_place_of(self, value):
        return next((moved for real, moved in self._theirs.items() if value is real), value)

    def _moved(self, real):
        return lambda: real() + self._ahead

    def time(self):
        return self._theirs[time.time]()

    def advance(self, seconds):
        self._ahead += seconds

    def later(self, seconds, *requests):
        """Return a phase of a crawl, which begins ``seconds`` later with these requests."""

        def phase():
            self.advance(seconds)
            return requests

        return phase


def modules():
    import scrapy_rep

    for found in pkgutil.walk_packages(scrapy_rep.__path__, "scrapy_rep."):
        with suppress(ImportError):  # some take what is not installed everywhere
            importlib.import_module(found.name)
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] == "scrapy_rep"
    ]


def _functions(module):
    """Return the functions and methods that a module defines."""
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) == module.__name__:
            inside = list(vars(value).values()) if isinstance(value, type) else [value]
            yield from (each for each in inside if isinstance(each, FunctionType))
