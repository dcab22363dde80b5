"""Remembers what was logged, so that it is logged once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Hashable

_MAX_ENTRIES: Final = 10_000
"""Number of things that are remembered; older ones may be logged again."""


class Once:
    """Tells the first occurrence of a thing from later ones."""

    def __init__(self) -> None:
        self._told: BoundedCache[Hashable, None] = BoundedCache(max_entries=_MAX_ENTRIES)

    def is_first(self, thing: Hashable) -> bool:
        """Return whether this is the first call with ``thing``."""
        if thing in self._told:
            return False
        self._told.put(thing, None)
        return True
