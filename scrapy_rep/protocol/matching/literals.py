"""Literal patterns, which have no ``*`` except at their end.

To compare a target with thousands of patterns takes too long. So the patterns are sorted, and each
is linked to the longest other pattern that is a prefix of it. Bisection finds the last pattern that
is not greater than the target. Only this pattern, and those that its links lead to, can match.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import chain, compress, islice
from operator import contains
from sys import getsizeof
from typing import Final

from scrapy_rep.protocol.matching.packed import (
    LEAF,
    SEPARATOR,
    Deciding,
    pack_numbers,
    pack_strings,
    precedence,
    string_at,
)

END: Final = "$~"
"""Appended to targets: ``$``, with which anchored patterns end, and ``~``, the greatest character
of patterns. With ``~``, a target is greater than a leaf (some patterns joined to one str) whose
first pattern is the target and ``$``, so that bisection finds this leaf."""
_ABOVE: Final = "\x7f"
"""A character greater than all characters of patterns."""
HEAD: Final = slice(4)
"""The slice with the head of a target or pattern: its first characters."""
_WITH_HEADS: Final = 512
"""Number of patterns up to which comparing the heads is faster than bisection."""


class Literals:
    """The literal patterns of a group; ``decide`` finds the one that decides on a target.

    A pattern that ends with ``$`` is stored with it, and ``$`` is appended to the target. As
    canonical targets contain no ``$``, the pattern is a prefix of the one target that it matches.

    A pattern that ends with ``*`` is stored as a text without this end, and the end as a tail. It
    matches the same targets, but with its tail a shorter text may have precedence over a longer
    text (SPEC M-4).

    ``heads`` and ``begins`` are for a fast check. If the head of a target is not in ``heads``, and
    the target begins with none of ``begins``, no pattern matches.
    """

    __slots__ = ("_leaves", "_links", "_tails", "_words", "begins", "heads")

    def __init__(self, texts: list[str], words: dict[str, int], tails: dict[str, str]) -> None:
        """``texts`` are sorted. ``words`` (see ``packed``) and ``tails`` have texts as keys."""
        self._leaves = pack_strings(texts)
        self._words = pack_numbers([words[text] for text in texts])
        self._links = _prefix_links(texts)
        self._tails: dict[int, str] | None = None
        if tails:
            self._tails = {index: tails[text] for index, text in enumerate(texts) if text in tails}
        self.heads: str = ""
        self.begins: tuple[str, ...] = ("",)
        if len(texts) <= _WITH_HEADS:
            heads = dict.fromkeys([text[HEAD] for text in texts])
            self.heads = "".join(heads)
            self.begins = tuple([head for head in heads if len(head) < HEAD.stop])

    def decide(self, target: str) -> Deciding | None:
        """Return the rule that decides on *target*, which ends with ``END``; None if none does."""
        leaves = self._leaves
        number = bisect_right(leaves, target) - 1
        if number < 0:
            return None
        leaf = leaves[number].split(SEPARATOR)
        place = bisect_right(leaf, target) - 1
        text = leaf[place]
        index = number * LEAF + place
        best = None
        while True:
            if target.startswith(text):
                if not self._tails:
                    return text, self._words[index]
                rule = text + self._tails.get(index, ""), self._words[index]
                if best is None or precedence(rule) > precedence(best):
                    best = rule
            index = self._links[index] - 1 if self._links else -1
            if index < 0:
                return best
            text = string_at(leaves, index)

    @property
    def nbytes(self) -> int:
        parts = (self, self._words, self._links, self._tails, self.heads, self.begins, self._leaves)
        tails = chain(*(self._tails or {}).items())
        return sum(map(getsizeof, (*parts, *self._leaves, *self.begins, *tails)))


def _prefix_links(texts: list[str]) -> array[int] | None:
    """Return 1 + the index of the longest text that is a prefix of each text, else 0.

    ``texts`` are sorted. Return None if no text has such a prefix.
    """
    # In sorted order, all texts that begin with another text directly follow that text. The fastest
    # first check is whether the next text contains a text.
    near = compress(range(len(texts)), map(contains, islice(texts, 1, None), texts))
    prefixes = [index for index in near if texts[index + 1].startswith(texts[index])]
    if not prefixes:
        return None
    links = [0] * len(texts)
    for index in prefixes:  # a longer prefix comes later, and replaces the link
        stop = bisect_right(texts, texts[index] + _ABOVE, index)
        links[index + 1 : stop] = [index + 1] * (stop - index - 1)
    return pack_numbers(links)
