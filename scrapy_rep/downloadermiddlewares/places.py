"""A limited number of places for each key. Who finds none waits in line for one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from scrapy_rep.utils.concurrency import Promise

K = TypeVar("K", bound=Hashable)


class Places(Generic[K]):
    """``most`` places for each key."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._taken: dict[K, int] = {}
        self._lines: dict[K, deque[Promise[None]]] = {}

    def take(self, key: K) -> bool:
        """Take a place, and return True; False if none is free: then call ``wait``."""
        taken = self._taken.get(key, 0)
        if taken >= self._most:
            return False
        self._taken[key] = taken + 1
        return True

    async def wait(self, key: K) -> None:
        """Return with a place, when it is this caller's turn."""
        place: Promise[None] = Promise()
        self._lines.setdefault(key, deque()).append(place)
        try:
            await place
        except BaseException:
            if place.has_result:  # cancelled just when it got the place
                self.leave(key)
            raise

    def leave(self, key: K) -> None:
        """Free a place, or pass it on to the first in line."""
        line = self._lines.get(key)
        while line:
            place = line.popleft()
            if not place.is_done:  # else cancelled
                place.set_result(None)
                return
        self._lines.pop(key, None)
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]

    def close(self, error: type[Exception]) -> None:
        """Raise ``error`` in all that wait."""
        for line in self._lines.values():
            for place in line:
                place.set_exception(error())
        self._lines.clear()
