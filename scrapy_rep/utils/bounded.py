"""Containers of keys and values that do not grow without a limit."""

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES: Final = 10_000
"""Maximum number of entries where their size is not counted."""


class BoundedCache(Generic[K, V]):
    """A mapping with at most ``max_entries`` values, whose total size is at most ``max_bytes``."""

    def __init__(self, *, max_entries: float = math.inf, max_bytes: float = math.inf) -> None:
        self._max_entries = max_entries
        self.max_bytes = max_bytes
        self.evicted: int = 0
        self._bytes = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def get(self, key: K) -> V | None:
        """Return the value of ``key`` or None, and mark it as the most recently used."""
        if (found := self._values.get(key)) is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def values(self) -> Iterator[V]:
        """Return all values, without marking them as used."""
        return (value for value, _ in self._values.values())

    def items(self) -> Iterator[tuple[K, V]]:
        """Return all keys and values, without marking them as used."""
        return ((key, value) for key, (value, _) in self._values.items())

    def put(self, key: K, value: V, nbytes: int = 0) -> None:
        """Set the value and size of ``key``; above a limit evict the least recently used."""
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
        if (found := self._values.pop(key, None)) is not None:
            self._bytes -= found[1]

    def clear(self) -> None:
        self._values.clear()
        self._bytes = 0


class Once:
    """Tells whether a key occurs for the first time. Above MAX_ENTRIES it forgets the oldest."""

    def __init__(self) -> None:
        self._seen: BoundedCache[Hashable, None] = BoundedCache(max_entries=MAX_ENTRIES)

    def add_if_new(self, key: Hashable) -> bool:
        """Add ``key``; return whether it is new, or was forgotten."""
        if key in self._seen:
            return False
        self._seen.put(key, None)
        return True
