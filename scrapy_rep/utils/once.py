"""Remembers keys of log messages, so that each message is logged only once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from scrapy_rep.utils.lru import BoundedCache

_MAX_ENTRIES: Final = 10_000
"""Maximum number of keys that are remembered. A key that was removed counts as new again."""


class Once:
    """Determines whether a key occurs for the first time."""

    def __init__(self) -> None:
        self._seen: BoundedCache[Hashable, None] = BoundedCache(max_entries=_MAX_ENTRIES)

    def add_if_new(self, key: Hashable) -> bool:
        """Add ``key``; return whether this is the first call with it."""
        if key in self._seen:
            return False
        self._seen.put(key, None)
        return True
