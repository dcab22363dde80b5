"""Patterns with ``*`` inside: which of many decides about a target.

Matching is linear in the target, without regular expressions. Before a pattern is tried, the target
must contain a part of it; where there are many patterns, an index by such parts names the few that
can match.
"""

from __future__ import annotations

from collections import Counter
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.packed import Packed, packed_numbers
from scrapy_rep.protocol.places import Places
from scrapy_rep.protocol.precedence import precedence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy_rep.protocol.precedence import Deciding

_FEW: Final = 64
"""Patterns up to which each one's part is looked for; an index does better for more."""
_FEW_TO_TRY: Final = 128
"""Patterns up to which each is matched by str.find; Places do better for more."""
_GRAM: Final = 3
"""Characters of a part in the index."""
_GRAMS_COMPARED: Final = 8
"""Grams at the end of a part, of which the rarest goes into the index: ends differ the most."""


def matches(pattern: str, target: str, find: Callable[[str, int], int]) -> bool:
    """Say whether a canonical pattern with a ``*`` in it matches a canonical target.

    *find* is ``target.find``, or does the same. Each literal part between two ``*`` is found as
    early as possible behind the one before it; no other place could do better, so nothing is ever
    tried twice.
    """
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    position = len(first)
    last = parts.pop() if anchored else ""
    for part in parts:
        found = find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(target) - len(last) >= position and target.endswith(last)


class Wildcards:
    """The patterns of a group that have a ``*`` inside, those that go first in front."""

    __slots__ = ("_index", "_parts", "_patterns", "_words")

    def __init__(self, rules: dict[str, int]) -> None:
        """Take patterns and their words."""
        ordered = sorted(rules.items(), key=precedence, reverse=True)
        patterns = [pattern for pattern, _ in ordered]
        parts = [_longest_part(pattern) for pattern in patterns]
        self._patterns = Packed(patterns)
        self._words = packed_numbers([word for _, word in ordered])
        few = len(patterns) <= _FEW
        self._parts = "\n".join(parts) if few else ""
        self._index = {} if few else _index_of(parts)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def decide(self, target: str, other: Deciding | None) -> Deciding | None:
        """Return pattern and word of the first rule that matches, if it goes before the other."""
        candidates = self._candidates(target)
        find = target.find if len(candidates) <= _FEW_TO_TRY else Places(target).find
        for index in candidates:
            candidate = self._patterns[index], self._words[index]
            if other and precedence(candidate) <= precedence(other):
                break
            if matches(candidate[0], target, find):
                return candidate
        return other

    def _candidates(self, target: str) -> list[int]:
        """Return what may match, in order."""
        if not self._index:
            parts = self._parts.split("\n")
            return [index for index, part in enumerate(parts) if part in target]
        found = self._index.keys() & _grams(target)
        return sorted(index for gram in found for index in self._index[gram])

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        index = [thing for entry in self._index.items() for thing in entry]
        held = (self, self._words, self._parts, self._index, *index)
        return self._patterns.nbytes + sum(map(getsizeof, held))


def _longest_part(pattern: str) -> str:
    """Return what a target must contain to be matched, as long as may be."""
    return max(pattern.removesuffix("$").split("*"), key=len)


def _grams(target: str) -> set[str]:
    """Return all that a target contains of up to three characters."""
    return {
        target[start : start + length]
        for length in range(1, _GRAM + 1)
        for start in range(len(target) - length + 1)
    }


def _last_grams(part: str) -> list[str]:
    """Return the grams at the end of a part, itself where it is no longer than one."""
    last = max(len(part) - _GRAM, 0)
    first = max(last - _GRAMS_COMPARED + 1, 0)
    return [part[start : start + _GRAM] for start in range(first, last + 1)]


def _index_of(parts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the parts by the rarest gram of each."""
    grams = [_last_grams(part) for part in parts]
    count = Counter(gram for of_part in grams for gram in of_part)
    index: dict[str, list[int]] = {}
    for number, of_part in enumerate(grams):
        index.setdefault(min(of_part, key=count.__getitem__), []).append(number)
    return {gram: tuple(numbers) for gram, numbers in index.items()}
