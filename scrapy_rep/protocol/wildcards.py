"""Patterns with ``*`` inside: which of many decides about a target.

Matching is linear in the target, without regular expressions. Before a pattern is tried, the target
must contain a part of it; where there are many patterns, an index by such parts names the few that
can match.
"""

from __future__ import annotations

from sys import getsizeof, intern
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.grams import GramIndex
from scrapy_rep.protocol.packed import Packed, packed_numbers, split
from scrapy_rep.protocol.places import Places
from scrapy_rep.protocol.precedence import precedence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_rep.protocol.precedence import Deciding

_FEW: Final = 256
"""Patterns up to which each one's part is looked for; an index does better for more."""
_LONG: Final = 4
"""Characters before its first ``*``, from which on a pattern is known by these."""
_ANY: Final = ("",)
_FEW_TO_TRY: Final = 128
"""Patterns up to which each is matched by str.find; Places do better for more."""


def matches(pattern: str, target: str, find: Callable[[str, int], int]) -> bool:
    """Say whether a canonical pattern with a ``*`` in it matches a canonical target.

    *find* is ``target.find``, or does the same. Each literal part between two ``*`` is found as
    early as possible behind the one before it; no other place could do better, so nothing is ever
    tried twice.
    """
    first, *parts, last = pattern.split("*")
    if not target.startswith(first):
        return False
    position = len(first)
    for part in parts:
        found = find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    if last.endswith("$"):
        return target.endswith(last[:-1], position)
    return find(last, position) >= 0


class Wildcards:
    """The patterns of a group that have a ``*`` inside, the longest first.

    Most targets are let go at a glance: where a pattern matches, the target begins with one of
    ``begins`` or contains one of ``parts``.
    """

    __slots__ = (
        "_index",
        "_parts",
        "_patterns",
        "_words",
        "begins",
        "parts",
    )

    def __init__(self, rules: dict[str, int]) -> None:
        """Take patterns and their words."""
        patterns = sorted(rules, key=len, reverse=True)
        parts: list[str] = []
        begins: dict[str, None] = {}
        others: dict[str, None] = {}
        for pattern in patterns:
            pieces = pattern.rstrip("*$").split("*")
            # What a target must contain to be matched, as long as may be. Ends differ the most.
            part = intern(max(reversed(pieces), key=len))
            parts.append(part)
            if len(pieces[0]) >= _LONG:
                begins[pieces[0]] = None
            else:
                others[part] = None
        few = len(patterns) <= _FEW
        self._patterns = Packed(patterns)
        self._words = packed_numbers(list(map(rules.__getitem__, patterns)))
        self._index = None if few else GramIndex(parts)
        self._parts = tuple(parts) if few else ()
        self.begins = tuple(map(intern, begins)) if few else ()
        self.parts = tuple(others) if few else _ANY

    def decide(self, target: str, other: Deciding | None) -> Deciding | None:
        """Return pattern and word of the rule that decides, be it the other."""
        candidates: Sequence[int]
        if self._index:
            candidates = self._index.find(target)
        else:
            candidates = [number for number, part in enumerate(self._parts) if part in target]
        return self._first(candidates, target, other) if candidates else other

    def _first(
        self, candidates: Sequence[int], target: str, other: Deciding | None
    ) -> Deciding | None:
        few = len(candidates) <= _FEW_TO_TRY
        find = target.find if few else Places(target).find
        patterns: Packed | Sequence[str] = self._patterns
        if not self._patterns.is_long:
            patterns = split(self._patterns)
        elif not few:
            patterns = self._patterns.unpacked()
        best, least = other, precedence(other) if other else (0, 0)
        for index in candidates:
            pattern, word = patterns[index], self._words[index]
            rank = precedence((pattern, word))
            if rank > least and matches(pattern, target, find):
                best, least = (pattern, word), rank
            elif len(pattern) < least[0]:
                break
        return best

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        index = self._index.nbytes if self._index else 0
        held = (self, self._words, self._parts, *self._parts, self.begins, *self.begins, self.parts)
        return self._patterns.nbytes + index + sum(map(getsizeof, held))
