"""Many short strings, or numbers, in few objects.

A str of twenty characters holds 69 bytes and 8 for its place in a tuple. The patterns of many
origins are kept by the hundred thousand, so they are packed into leaves, strs of a few lines. To
take one out, one leaf is split.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LEAF: Final = 8
"""Strings of a leaf."""
SEPARATOR: Final = "\n"
"""What stands between them: below all that may follow, so that a leaf compares as its first."""


def packed_strings(strings: Sequence[str]) -> tuple[str, ...]:
    """Return leaves with strings of printable ASCII."""
    starts = range(0, len(strings), LEAF)
    return tuple([SEPARATOR.join(strings[start : start + LEAF]) for start in starts])


def string_at(leaves: Sequence[str], index: int) -> str:
    """Return one of the strings in leaves."""
    return leaves[index // LEAF].split(SEPARATOR)[index % LEAF]


def packed_numbers(numbers: Collection[int]) -> array[int]:
    """Return numbers of 0 to 2**32 - 1 in as few bytes as the largest of them allows."""
    try:
        return array("H", numbers)
    except OverflowError:
        return array("I", numbers)
