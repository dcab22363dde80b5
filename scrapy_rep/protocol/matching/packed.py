"""Rules in few objects, to save memory.

A rule is a pattern and a word, an integer: twice the line number, plus one for ``Allow``.

A str of twenty characters takes 69 bytes, and 8 more in a tuple. A crawl may have hundreds of
thousands of patterns in memory, so they are joined to leaves of a few strings. To get one string,
its leaf is split.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Deciding = tuple[str, int]
"""The canonical pattern and the word of a rule that matches."""

LEAF: Final = 8
"""Number of strings in a leaf."""
SEPARATOR: Final = "\n"
"""Separates strings. Less than their characters, so a leaf sorts like its first string."""


def packed_strings(strings: Sequence[str]) -> tuple[str, ...]:
    """Return the leaves of strings of printable ASCII."""
    starts = range(0, len(strings), LEAF)
    return tuple([SEPARATOR.join(strings[start : start + LEAF]) for start in starts])


def string_at(leaves: Sequence[str], index: int) -> str:
    """Return the string with this index."""
    return leaves[index // LEAF].split(SEPARATOR)[index % LEAF]


def packed_numbers(numbers: Collection[int]) -> array[int]:
    """Return numbers from 0 to 2**32 - 1 in an array with the smallest possible items."""
    try:
        return array("H", numbers)
    except OverflowError:
        return array("I", numbers)


def precedence(rule: Deciding) -> tuple[int, int, int]:
    """Return a sort key of rules that match: the greatest decides (RFC 9309 §2.2.2, SPEC M-4).

    It has the octets of the pattern, whether the rule allows, and the order of the file.
    """
    pattern, word = rule
    return len(pattern), word & 1, -word
