"""A limited number of places, in all and for each key. Who finds none waits in line for one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from scrapy_rep.utils.concurrency import Promise

K = TypeVar("K", bound=Hashable)


class Places(Generic[K]):
    """``most`` places, and ``most_of(key)`` of them for each key."""

    def __init__(self, most_of: Callable[[K], float], most: float = math.inf) -> None:
        self._most_of = most_of
        self._most = most
        self._all = 0
        self._taken: dict[K, int] = {}
        self._lines: dict[K, deque[Promise[None]]] = {}

    def take(self, key: K) -> bool:
        """Take a place, and return True, if one is free."""
        if self._all >= self._most:
            return False
        taken = self._taken.get(key, 0)
        if taken and taken >= self._most_of(key):
            return False
        self._all += 1
        self._taken[key] = taken + 1
        return True

    async def wait(self, key: K) -> None:
        """Return with a place, at once or when it is this caller's turn."""
        if self.take(key):
            return
        place: Promise[None] = Promise()
        self._lines.setdefault(key, deque()).append(place)
        try:
            await place
        except BaseException:
            if place.is_set:  # cancelled just when it got the place
                self.leave(key)
            raise

    def leave(self, key: K) -> None:
        """Free a place, or pass it on to the first in a line; the lines take turns."""
        self._all -= 1
        if taken := self._taken.pop(key) - 1:
            self._taken[key] = taken
        for other in [*self._lines] if self._lines else ():  # most often none
            line = self._lines.pop(other)
            while line and line[0].is_done:  # cancelled
                line.popleft()
            is_passed_on = bool(line) and self.take(other)
            if is_passed_on:
                line.popleft().set_result(None)
            if line:
                self._lines[other] = line
            if is_passed_on:
                return
