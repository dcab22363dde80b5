"""N-gram index: which of many strings may be in a text, by a few characters of each."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST: Final = 8
"""Characters of a gram, at most: the more, the fewer strings have it."""
_SHORTEST: Final = 4
"""Characters of a gram, at least, but of strings that are shorter."""
_FEW: Final = 16
"""Grams of one length up to which each is looked for; of more, all that a text has are."""
_COMPARED: Final = 3
"""Grams at the end of a string, of which the rarest is taken: ends differ the most."""
_SLICES: Final = 256
"""Characters of a text whose grams are taken by slices made before."""


class GramIndex:
    """An index of strings by the rarest gram of each."""

    __slots__ = ("_few", "_index", "_lengths")

    def __init__(self, strings: Sequence[str]) -> None:
        """Take strings that aren't empty; they are named by their numbers."""
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
        """Return the numbers of strings that may be in a text, in order; all others are not."""
        index = self._index
        found = {gram for gram in self._few if gram in text}
        for length in self._lengths:
            found.update([text[at] for at in _slices(length, len(text)) if text[at] in index])
        return sorted(chain(*map(index.__getitem__, found))) if found else ()

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = (self, self._index, self._few, self._lengths)
        entries = chain(self._index, self._index.values(), *self._index.values())
        return sum(map(getsizeof, chain(held, entries)))


def _gram_size(strings: Sequence[str]) -> int:
    """Return the most characters that nearly all strings have, within bounds."""
    lengths = sorted(map(len, set(strings)))
    return max(_SHORTEST, min(_LONGEST, lengths[: _FEW + 1][-1]))


def _last_grams(string: str, size: int) -> list[str]:
    last = len(string) - size
    return [string[at : at + size] for at in range(max(last - _COMPARED + 1, 0), last + 1)]


def _slices(length: int, size: int) -> Sequence[slice]:
    """Return the slices of a length of what has a size."""
    count = max(size - length + 1, 0)
    if count <= _SLICES:
        return _first_slices(length)[:count]
    return [slice(start, start + length) for start in range(count)]


@lru_cache(_LONGEST)
def _first_slices(length: int) -> list[slice]:
    return [slice(start, start + length) for start in range(_SLICES)]
