"""Sorted suffixes of a target: where the parts of very many patterns stand in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

_LONGEST: Final = 256
"""Characters of a part up to which it is looked up, in a long target; str.find is linear above."""
_LONG: Final = 2_500
"""Characters from which on a target is long. In a shorter one str.find takes as long as the product
of target and part: there, every part is looked up."""
_ABOVE_ALL: Final = "\x7f"


class Places:
    """A target whose parts are found by bisection in its sorted suffixes.

    str.find takes time in proportion to the target, and to the part as well where both are made
    for it. A hostile site chooses both, and ten thousands of patterns: here each distinct part
    costs O(log n) comparisons, once.
    """

    __slots__ = ("_beginnings", "_longest", "_order", "_places", "_target")

    def __init__(self, target: str) -> None:
        """Take a target of printable ASCII."""
        self._longest = longest = _LONGEST if len(target) >= _LONG else len(target)
        beginnings = [target[start : start + longest] for start in range(len(target))]
        self._order = sorted(range(len(target)), key=beginnings.__getitem__)
        self._beginnings = [beginnings[start] for start in self._order]
        self._places: dict[str, list[int]] = {}
        self._target = target

    def find(self, part: str, position: int) -> int:
        """Return what ``target.find(part, position)`` does."""
        if not part or len(part) > self._longest:
            return self._target.find(part, position)
        places = self._places.get(part)
        if places is None:
            first = bisect_left(self._beginnings, part)
            beyond = bisect_right(self._beginnings, part + _ABOVE_ALL, first)
            places = self._places[part] = sorted(self._order[first:beyond])
        index = bisect_left(places, position)
        return places[index] if index < len(places) else -1
