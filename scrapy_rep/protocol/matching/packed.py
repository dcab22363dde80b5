"""Rules in few objects, to save memory.

A rule is a pattern and a word, an integer: twice the line number, plus one for ``Allow``.

A str of twenty characters takes 69 bytes, and 8 more in a tuple. A crawl may have hundreds of
thousands of patterns in memory. So a few of them are joined to one str, a leaf. To get one pattern,
its leaf is split.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Final

Deciding = tuple[str, int]
"""The canonical pattern and the word of a rule that matches."""

LEAF: Final = 8
"""Number of strings in a leaf."""
SEPARATOR: Final = "\n"
"""Less than all characters of strings, so that leaves have the order of their first strings."""


def pack_strings(strings: Sequence[str]) -> tuple[str, ...]:
    """Return leaves with these strings, which are printable ASCII."""
    starts = range(0, len(strings), LEAF)
    return tuple([SEPARATOR.join(strings[start : start + LEAF]) for start in starts])


def string_at(leaves: Sequence[str], index: int) -> str:
    """Return the string with this index in the sequence that was packed."""
    return leaves[index // LEAF].split(SEPARATOR)[index % LEAF]


def pack_numbers(numbers: Collection[int]) -> array[int]:
    """Return numbers from 0 to 2**32 - 1 in an array with items of 2 bytes, or 4 if needed."""
    try:
        return array("H", numbers)
    except OverflowError:
        return array("I", numbers)


def precedence(rule: Deciding) -> tuple[int, int, int]:
    """Return a sort key: of the rules that match, the greatest decides (RFC 9309 §2.2.2, SPEC M-4).

    It has the longest pattern; among those, it is an ``Allow``; among those, the first in the file.
    """
    pattern, word = rule
    return len(pattern), word & 1, -word
