"""A mapping that removes values that are over when it has many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ExpiringDict(dict[K, V]):
    """A dict from which ``put`` removes the values that are over.

    They are searched for when a key is added to ``many`` keys or more. If most values are not over,
    the next search comes only when there are twice as many keys.
    """

    def __init__(self, many: int, is_over: Callable[[V], bool]) -> None:
        super().__init__()
        self._many = self._search_at = many
        self._is_over = is_over

    def put(self, key: K, value: V) -> V:
        """Set the value of ``key``, and return it."""
        if key not in self and len(self) >= self._search_at:
            for over in [name for name, each in self.items() if self._is_over(each)]:
                del self[over]
            self._search_at = max(self._many, 2 * len(self))
        self[key] = value
        return value
