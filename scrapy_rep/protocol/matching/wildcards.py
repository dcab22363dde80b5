"""Patterns with ``*`` inside.

Matching doesn't use regular expressions, as the time of these may grow exponentially. A pattern is
only tried if the target contains the longest part of the pattern: parts are the texts between its
wildcards. If there are many patterns, an n-gram index of these parts finds the few that can match.
"""

import re
from collections.abc import Sequence
from itertools import chain
from sys import getsizeof
from typing import Final

from scrapy_rep.protocol.canonical import QUERY_DATA, as_query_data
from scrapy_rep.protocol.limits import MAX_EFFORT
from scrapy_rep.protocol.matching.ngrams import GramIndex
from scrapy_rep.protocol.matching.packed import (
    Deciding,
    pack_numbers,
    pack_strings,
    precedence,
    string_at,
)

_FEW: Final = 256
"""Number of patterns above which the index is faster than a search for each part."""
_LONG: Final = 4
"""Minimum length of the text before the first ``*`` of a pattern that is used in ``begins``."""
_LOOKED_FOR: Final = 8
"""Maximum length of a part that is searched for in a target, in characters."""
_IN_ALL: Final = "/"
"""All targets contain it."""
_QUERY_DATA: Final = re.compile("|".join(QUERY_DATA))
_COMPARISONS: Final = 2**11
"""Number of character comparisons that count as one step of effort."""


class TooCostlyError(Exception):
    """A verdict requires more steps than the limit."""


class Effort:
    """The budget of steps for the verdict on all spellings of a URL; a step takes about 1 µs."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_EFFORT

    def spend(self, steps: int) -> None:
        """Subtract ``steps`` from the budget. Raises TooCostlyError if fewer steps are left."""
        self._left -= steps
        if self._left < 0:
            raise TooCostlyError


def matches_wildcards(pattern: str, target: str) -> bool:
    """Return whether a canonical pattern with ``*`` matches a canonical target.

    Each part between two ``*`` is searched for after the part before it. The first place at which
    it is found is always the best, so there is no backtracking.

    A part behind a ``*`` may be in the path or in the query of the target. The escapes in
    ``QUERY_DATA`` are only in paths; in the query, their characters match. If a part is found in
    the path, it ends before it would in the query.
    """
    first, *parts = pattern.split("*")
    if not target.startswith(first):
        return False
    end = parts.pop()[:-1] if pattern.endswith("$") else None
    position = len(first)
    for part in parts:
        text, found = part, target.find(part, position)
        if found < 0 and "%" in part:
            text, position = _in_query(part, target, position)
            found = target.find(text, position)
        if found < 0:
            return False
        position = found + len(text)
    return (
        end is None
        or target.endswith(end, position)
        or ("%" in end and target.endswith(*_in_query(end, target, position)))
    )


def _in_query(part: str, target: str, position: int) -> tuple[str, int]:
    """Return a part in the form that it has in a query, and from where to search for it."""
    query = target.find("?") + 1 or len(target)
    return as_query_data(part), max(position, query)


def is_match(pattern: str, target: str) -> bool:
    """Return whether a canonical pattern matches a canonical target; an empty one matches all."""
    if "*" in pattern:
        return matches_wildcards(pattern, target)
    # A $ can only be equal to the $ at the end of the pattern, as canonical targets contain none.
    return target.startswith(pattern) or f"{target}$" == pattern


def _text_to_search(pattern: str) -> str:
    """Return the end of the longest part of ``pattern``, or ``/`` if all parts are empty.

    All targets that match contain it. Patterns differ most at the end of parts. It is short, as the
    time of a search may be proportional to the length of the text times that of the target.
    """
    parts = pattern.rstrip("*$").split("*")
    if "%" in pattern:  # behind a *, some escapes match a character in queries
        parts[1:] = chain.from_iterable(map(_QUERY_DATA.split, parts[1:]))
    return max(reversed(parts), key=len)[-_LOOKED_FOR:] or _IN_ALL


class Wildcards:
    """The patterns of a group with a ``*`` inside; ``decide`` finds the one that decides.

    ``begins`` and ``parts`` are for a fast check. If a target begins with none of ``begins``, and
    contains none of ``parts``, no pattern matches.
    """

    __slots__ = ("_index", "_leaves", "_parts", "_words", "begins", "parts")

    def __init__(self, rules: dict[str, int]) -> None:
        """``rules`` has the word (see ``packed``) of each pattern."""
        patterns = sorted(rules, key=len, reverse=True)
        self._leaves = pack_strings(patterns)
        self._words = pack_numbers(list(map(rules.__getitem__, patterns)))
        self._index: GramIndex | None = None
        self._parts: tuple[str, ...] = ()
        self.begins: tuple[str, ...] = ()
        self.parts: tuple[str, ...] = ("",)
        if len(patterns) > _FEW:
            self._index = GramIndex(list(map(_text_to_search, patterns)))
            return
        begins: dict[str, None] = {}
        others: dict[str, None] = {}
        self._parts = tuple(map(_text_to_search, patterns))
        for pattern, part in zip(patterns, self._parts, strict=True):
            begin = pattern[: pattern.index("*")]
            if len(begin) >= _LONG:
                begins[begin] = None
            else:
                others[part] = None
        self.begins = tuple(begins)
        self.parts = tuple(others)

    def decide(self, target: str, other: Deciding | None, effort: Effort | None) -> Deciding | None:
        """Return the rule that decides: one of these, or ``other``. Raises TooCostlyError.

        Without ``effort``, the budget is a new one.
        """
        effort = effort or Effort()
        candidates: Sequence[int]
        if self._index:
            effort.spend(len(target))
            candidates = self._index.find(target)
        else:
            effort.spend(len(self._parts) * len(target) * _LOOKED_FOR // _COMPARISONS)
            candidates = [number for number, part in enumerate(self._parts) if part in target]
        if not candidates:
            return other
        best, least = other, precedence(other) if other else (0, 0, 0)
        for index in candidates:
            pattern, word = string_at(self._leaves, index), self._words[index]
            # In the worst case each character of a part is compared with each one of the target.
            effort.spend(1 + pattern.count("*") + len(pattern) * len(target) // _COMPARISONS)
            rank = precedence((pattern, word))
            if rank > least and matches_wildcards(pattern, target):
                best, least = (pattern, word), rank
            elif len(pattern) < least[0]:
                break
        return best

    @property
    def nbytes(self) -> int:
        parts = (self, self._words, self._leaves, self._parts, self.begins, self.parts)
        strings = (*self._leaves, *self._parts, *self.begins)
        index = self._index.nbytes if self._index else 0
        return index + sum(map(getsizeof, (*parts, *strings)))
