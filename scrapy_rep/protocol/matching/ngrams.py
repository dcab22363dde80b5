"""An n-gram index: finds which of many strings may be in a text.

To search a text for thousands of strings, one after the other, takes too long. So the index has one
gram of each string: 4 to 8 successive characters near its end, which few other strings have. (A
string that is shorter is its own gram.) To search a text, each piece of it that is as long as a
gram is looked up in the index. The strings that are found are candidates, which the caller checks.
All other strings can't be in the text, because their gram is not.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from sys import getsizeof
from typing import Final

_LONGEST: Final = 8
"""Maximum length of a gram. The longer a gram is, the fewer strings have it."""
_SHORTEST: Final = 4
"""Minimum length of a gram, except for strings that are shorter."""
_FEW: Final = 16
"""Up to this number of grams of one length, the text is searched for each gram. If there are more,
the pieces of the text are looked up in the index."""
_COMPARED: Final = 3
"""Number of last grams of a string of which the rarest is indexed: strings differ at their end."""
_SLICES: Final = 256
"""Number of slices of one length that are kept for later calls; few texts have more slices."""


class GramIndex:
    """An index of strings by one gram of each; ``find`` returns those that may be in a text."""

    __slots__ = ("_few", "_index", "_lengths")

    def __init__(self, strings: Sequence[str]) -> None:
        """``strings`` must not contain an empty string."""
        # Nearly all strings are at least as long as a gram.
        shortest = sorted(map(len, set(strings)))[: _FEW + 1]
        size = max(_SHORTEST, min(_LONGEST, shortest[-1]))
        longer = list(dict.fromkeys([string for string in strings if len(string) > size]))
        grams = dict(zip(longer, _rarest_grams(longer, size), strict=True))
        index: dict[str, list[int]] = {}
        for number, string in enumerate(strings):
            index.setdefault(grams.get(string, string), []).append(number)
        self._index = {gram: tuple(numbers) for gram, numbers in index.items()}
        lengths = Counter(map(len, index))
        self._lengths = tuple(length for length in lengths if lengths[length] > _FEW)
        self._few = tuple(gram for gram in index if lengths[len(gram)] <= _FEW)

    def find(self, text: str) -> Sequence[int]:
        """Return the sorted indexes of all strings in ``text``, and perhaps of some others."""
        index = self._index
        found = {gram for gram in self._few if gram in text}
        for length in self._lengths:
            found.update([text[at] for at in _slices(length, len(text)) if text[at] in index])
        return sorted(chain(*map(index.__getitem__, found))) if found else ()

    @property
    def nbytes(self) -> int:
        parts = (self, self._index, self._few, self._lengths)
        entries = chain(self._index, self._index.values(), *self._index.values())
        return sum(map(getsizeof, chain(parts, entries)))


def _rarest_grams(strings: Sequence[str], size: int) -> list[str]:
    """Return one gram of each string, the rarest of its last three; all are longer than a gram."""
    last = ([string[-size - back :][:size] for string in strings] for back in range(_COMPARED))
    grams = list(zip(*last, strict=True))
    count = Counter(chain.from_iterable(grams))
    return [min(each, key=count.__getitem__) for each in grams]


def _slices(length: int, size: int) -> Sequence[slice]:
    """Return the slices of all n-grams with ``length`` characters in a text with ``size``."""
    count = max(size - length + 1, 0)
    if count <= _SLICES:
        return _first_slices(length)[:count]
    return [slice(start, start + length) for start in range(count)]


@lru_cache(_LONGEST)
def _first_slices(length: int) -> list[slice]:
    return [slice(start, start + length) for start in range(_SLICES)]
