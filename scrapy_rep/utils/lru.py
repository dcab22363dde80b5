"""A mapping with a maximum number of entries or bytes. Above it, entries are evicted."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """A mapping with at most ``max_entries`` values, whose total size is at most ``max_bytes``.

    Above a limit the least recently used values are evicted. The newest value always stays, even if
    it is larger than ``max_bytes``.
    """

    def __init__(self, *, max_entries: float = math.inf, max_bytes: float = math.inf) -> None:
        self._max_entries = max_entries
        self.max_bytes = max_bytes
        self.evicted: int = 0
        """Number of evicted values."""
        self._bytes = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, the least recently used first."""
        return iter(self._values)

    def get(self, key: K) -> V | None:
        """Return the value of ``key`` or None, and mark it as the most recently used."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def values(self) -> Iterator[V]:
        """Return all values, without marking them as used."""
        return (value for value, _ in self._values.values())

    def put(self, key: K, value: V, nbytes: int = 0) -> None:
        """Set the value of ``key``; ``nbytes`` is the size of the value in bytes."""
        self.discard(key)
        self._values[key] = value, nbytes
        self._bytes += nbytes
        while len(self._values) > 1 and (
            len(self._values) > self._max_entries or self._bytes > self.max_bytes
        ):
            _, (_, oldest) = self._values.popitem(last=False)
            self._bytes -= oldest
            self.evicted += 1

    def discard(self, key: K) -> None:
        """Remove ``key`` and its value, if the mapping has it."""
        found = self._values.pop(key, None)
        if found is not None:
            self._bytes -= found[1]

    def clear(self) -> None:
        """Remove all keys and values."""
        self._values.clear()
        self._bytes = 0
