"""Many short strings in few objects.

A str of twenty characters holds 69 bytes and 8 for its place in a tuple. The patterns of an origin
are kept by the hundred thousand, so they are packed into leaves: a str with a line each. Most
sequences are one leaf, and the few in use are held split too. Of a longer one a leaf has sixteen
strings: taking one out, or bisecting, splits one leaf, which costs less than a step of a bisection
in Python.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import lru_cache
from sys import getsizeof
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_SHIFT: Final = 4
_LEAF: Final = 1 << _SHIFT
_SEPARATOR: Final = "\n"
_ONE_LEAF: Final = 512, 32_768
"""Strings, and characters of its leaf, up to which a sequence is one leaf."""
_SPLIT: Final = 32
"""Such sequences, the last ones used, whose leaf is also held split: of the sites being crawled."""


class Packed:
    """An immutable sequence of strings of printable ASCII."""

    __slots__ = ("_leaves", "is_long")

    def __init__(self, strings: Sequence[str]) -> None:
        leaf = _SEPARATOR.join(strings)
        self.is_long = len(strings) > _ONE_LEAF[0] or len(leaf) > _ONE_LEAF[1]
        """Whether there are several leaves."""
        self._leaves: tuple[str, ...] = (leaf,) if strings else ()
        if self.is_long:
            starts = range(0, len(strings), _LEAF)
            self._leaves = tuple(_SEPARATOR.join(strings[at : at + _LEAF]) for at in starts)

    def __getitem__(self, index: int) -> str:
        if not self.is_long:
            return split(self)[index]
        return self._leaves[index >> _SHIFT].split(_SEPARATOR)[index & (_LEAF - 1)]

    def unpacked(self) -> list[str]:
        """Return all strings."""
        return _SEPARATOR.join(self._leaves).split(_SEPARATOR) if self._leaves else []

    def last_below(self, string: str) -> tuple[int, str]:
        """Return index and value of the last string below one that is not among them.

        The strings are sorted. Where none is below: (-1, "").
        """
        # A leaf compares as its first string does: a line feed is below all that may follow.
        number = bisect_right(self._leaves, string) - 1
        if number < 0:
            return -1, ""
        leaf = self._leaves[number].split(_SEPARATOR)
        index = bisect_right(leaf, string) - 1
        return (number << _SHIFT) + index, leaf[index]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return getsizeof(self) + getsizeof(self._leaves) + sum(map(getsizeof, self._leaves))


@lru_cache(_SPLIT)
def split(packed: Packed) -> list[str]:
    """Return all strings of a sequence that is not long; don't change it."""
    return packed.unpacked()


def packed_numbers(numbers: Collection[int]) -> array[int]:
    """Return numbers of 0 to 2**32 - 1 in as few bytes as the largest of them allows."""
    try:
        return array("H", numbers)
    except OverflowError:
        return array("I", numbers)
