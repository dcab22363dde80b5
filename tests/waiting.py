"""Waiting in tests: for something that happens, for as long as it takes.

No test depends on how fast a machine is. What is to have happened is waited for, not slept for; what
is to be over is made so by moving the clock, not by waiting; and how long something took is asserted
nowhere. test_no_clocks.py looks after that. The bound below guards against a test that would hang.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import sys
import time
from contextlib import suppress

PATIENCE = 300
"""Seconds after which something that has not happened never will, on any machine."""
_BETWEEN = 0.02
_LOOKS = round(PATIENCE / _BETWEEN)
_ROUNDS = 10


def wait_until(condition, meanwhile=lambda: None):
    """Wait until ``condition`` holds, and return what it returned; of other processes."""
    for _ in range(_LOOKS):
        if held := condition():
            return held
        meanwhile()
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


class Clock:
    """Moves the clocks of scrapy_rep ahead, all of them, wherever a module has them from.

    They go on by themselves. Timers that run are not moved: what waits for one comes when it is
    over, and then finds the time that the clock has.
    """

    def __init__(self, monkeypatch=None):
        self._put = setattr if monkeypatch is None else monkeypatch.setattr
        self._ahead = 0.0
        self._theirs = {}
        for real in (time.time, time.monotonic):
            self._theirs[real] = self._moved(real)
        for module in _modules():
            for attribute, value in list(vars(module).items()):
                if value is time.time or value is time.monotonic:
                    self._put(module, attribute, self._theirs[value])

    def _moved(self, real):
        return lambda: real() + self._ahead

    def time(self):
        """Return the seconds since the epoch that scrapy_rep sees."""
        return self._theirs[time.time]()

    def advance(self, seconds):
        self._ahead += seconds


def _modules():
    """Return all modules of scrapy_rep, also those that would be imported later."""
    import scrapy_rep

    for found in pkgutil.walk_packages(scrapy_rep.__path__, "scrapy_rep."):
        with suppress(ImportError):  # some take what is not installed everywhere
            importlib.import_module(found.name)
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] == "scrapy_rep"
    ]
