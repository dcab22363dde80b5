"""An n-gram index: finds the strings that may be in a text among many.

Each string is indexed by one gram, a few characters near its end, which few other strings have. To
search a text, all its grams are looked up in the index. Each string found is a candidate that is
checked later; strings that are not found can't be in the text.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST: Final = 8
"""Maximum length of a gram: the longer it is, the fewer strings have it."""
_SHORTEST: Final = 4
"""Smallest length of a gram, except for strings that are shorter."""
_FEW: Final = 16
"""Number of grams of one length up to which each is searched for in the text."""
_COMPARED: Final = 3
"""Number of last grams of a string of which the rarest is used; strings differ at their ends."""
_SLICES: Final = 256
"""Length of a text up to which prepared slices are used."""


class GramIndex:
    """An index of strings by one gram of each."""

    __slots__ = ("_few", "_index", "_lengths")

    def __init__(self, strings: Sequence[str]) -> None:
        """Take strings that aren't empty."""
        size = _gram_size(strings)
        grams = {string: _last_grams(string, size) for string in strings if len(string) > size}
        count = Counter(chain(*grams.values()))
        index: dict[str, list[int]] = {}
        for number, string in enumerate(strings):
            gram = min(grams[string], key=count.__getitem__) if string in grams else string
            index.setdefault(gram, []).append(number)
        self._index = {gram: tuple(numbers) for gram, numbers in index.items()}
        lengths = Counter(map(len, index))
        self._lengths = tuple(length for length in lengths if lengths[length] > _FEW)
        self._few = tuple(gram for gram in index if lengths[len(gram)] <= _FEW)

    def find(self, text: str) -> Sequence[int]:
        """Return the sorted indexes of the strings that may be in ``text``."""
        index = self._index
        found = {gram for gram in self._few if gram in text}
        for length in self._lengths:
            found.update([text[at] for at in _slices(length, len(text)) if text[at] in index])
        return sorted(chain(*map(index.__getitem__, found))) if found else ()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        parts = (self, self._index, self._few, self._lengths)
        entries = chain(self._index, self._index.values(), *self._index.values())
        return sum(map(getsizeof, chain(parts, entries)))


def _gram_size(strings: Sequence[str]) -> int:
    """Return the largest length that nearly all strings have, within the limits."""
    lengths = sorted(map(len, set(strings)))
    return max(_SHORTEST, min(_LONGEST, lengths[: _FEW + 1][-1]))


def _last_grams(string: str, size: int) -> list[str]:
    last = len(string) - size
    return [string[at : at + size] for at in range(max(last - _COMPARED + 1, 0), last + 1)]


def _slices(length: int, size: int) -> Sequence[slice]:
    """Return all slices of ``length`` characters in a text of ``size`` characters."""
    count = max(size - length + 1, 0)
    if count <= _SLICES:
        return _first_slices(length)[:count]
    return [slice(start, start + length) for start in range(count)]


@lru_cache(_LONGEST)
def _first_slices(length: int) -> list[slice]:
    return [slice(start, start + length) for start in range(_SLICES)]
