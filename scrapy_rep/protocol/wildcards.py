"""Patterns with ``*`` inside: which of many decides about a target.

Matching is linear in the target, without regular expressions. Before a pattern is tried, the target
must contain a part of it; where there are many patterns, an index by such parts names the few that
can match.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import chain
from sys import getsizeof, intern
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.packed import Packed, packed_numbers
from scrapy_rep.protocol.places import Places
from scrapy_rep.protocol.precedence import precedence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scrapy_rep.protocol.precedence import Deciding

_FEW: Final = 128
"""Patterns up to which each one's part is looked for; an index does better for more."""
_FEW_TO_TRY: Final = 128
"""Patterns up to which each is matched by str.find; Places do better for more."""
_GRAM: Final = 4
"""Characters of a part in the index."""
_SLICES: Final = 256
"""Characters of a target whose grams are taken by slices made before."""
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
    """The patterns of a group that have a ``*`` inside, the longest first."""

    __slots__ = ("_index", "_lengths", "_patterns", "_words", "parts")

    def __init__(self, rules: dict[str, int]) -> None:
        """Take patterns and their words."""
        patterns = sorted(rules, key=len, reverse=True)
        # What a target must contain to be matched, as long as may be.
        parts = [max(pattern.rstrip("*$").split("*"), key=len) for pattern in patterns]
        few = len(patterns) <= _FEW
        self._patterns = Packed(patterns)
        self._words = packed_numbers(list(map(rules.__getitem__, patterns)))
        self.parts = tuple(map(intern, parts)) if few else ()
        self._index = {} if few else _index_of(parts)
        self._lengths = tuple({len(gram) for gram in self._index})

    def decide(self, target: str, other: Deciding | None) -> Deciding | None:
        """Return pattern and word of the rule that decides, be it the other."""
        if self.parts:
            candidates = [index for index, part in enumerate(self.parts) if part in target]
        else:
            index = self._index
            grams = [_grams(target, length) for length in self._lengths]
            found = set(filter(index.__contains__, chain(*grams)))
            candidates = sorted(chain(*map(index.__getitem__, found)))
        return self._first(candidates, target, other) if candidates else other

    def _first(self, candidates: list[int], target: str, other: Deciding | None) -> Deciding | None:
        few = len(candidates) <= _FEW_TO_TRY
        find = target.find if few else Places(target).find
        patterns = self._patterns if few else self._patterns.unpacked()
        best, least = other, precedence(other) if other else (0, 0)
        for index in candidates:
            pattern = patterns[index]
            if (len(pattern), 1) <= least:
                break
            if matches(pattern, target, find):
                rule = pattern, self._words[index]
                if precedence(rule) > least:
                    best, least = rule, precedence(rule)
        return best

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        index = [thing for entry in self._index.items() for thing in entry]
        held = (self, self._words, self.parts, self._index, *self.parts, *index)
        return self._patterns.nbytes + sum(map(getsizeof, held))


def _grams(target: str, length: int) -> Iterable[str]:
    """Return all that a target contains of a length."""
    count = len(target) - length + 1
    slices = _slices(length)
    if count <= len(slices):
        return map(target.__getitem__, slices[: max(count, 0)])
    return [target[start : start + length] for start in range(count)]


@lru_cache(_GRAM)
def _slices(length: int) -> list[slice]:
    return [slice(start, start + length) for start in range(_SLICES)]


def _grams_of(part: str) -> list[str]:
    """Return the last few grams of a part."""
    last = len(part) - _GRAM
    return [
        part[start : start + _GRAM] for start in range(max(last - _GRAMS_COMPARED, 0), last + 1)
    ]


def _index_of(parts: Sequence[str]) -> dict[str, list[int]]:
    """Return the numbers of the parts by the rarest gram of each, or by the part if it is short."""
    grams = {part: _grams_of(part) for part in parts if len(part) > _GRAM}
    count = Counter(gram for of_part in grams.values() for gram in of_part)
    index: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        gram = min(grams[part], key=count.__getitem__) if part in grams else part
        index.setdefault(gram, []).append(number)
    return index
