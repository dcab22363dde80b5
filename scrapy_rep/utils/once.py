"""What has been told already, so that it isn't told again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Hashable

_MAX_ENTRIES: Final = 10_000
"""Things that are remembered; one that was told before all these may be told again."""


class Once:
    """Tells the first time of a thing from all later ones."""

    def __init__(self) -> None:
        self._told: BoundedCache[Hashable, None] = BoundedCache(max_entries=_MAX_ENTRIES)

    def is_first(self, thing: Hashable) -> bool:
        """Return whether this is the first time that ``thing`` is asked about."""
        if thing in self._told:
            return False
        self._told.put(thing, None)
        return True
