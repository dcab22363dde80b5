"""Patterns without ``*`` but at their end: which of many decides about a target, in O(log n).

They are sorted, and each is linked to its longest proper prefix among them. Bisection finds the
last that is not above the target; the links lead from it to the longest that the target begins
with.
"""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING

from scrapy_rep.protocol.packed import Packed, packed_numbers
from scrapy_rep.protocol.precedence import precedence

if TYPE_CHECKING:
    from array import array

    from scrapy_rep.protocol.precedence import Deciding

_END = "$"


class Literals:
    """The literal patterns of a group.

    An anchored pattern keeps its ``$``, and a target is given one: no canonical target has a raw
    ``$``, so an anchored pattern is a prefix of its own target and of nothing else.

    A pattern that ends in ``*`` matches what it would match without, but is longer (SPEC M-4): it
    is kept as text and tail. Where there are tails, a prefix may go before a longer one.
    """

    __slots__ = ("_deciding", "_links", "_tails", "_texts", "_words")

    def __init__(self, rules: dict[str, Deciding]) -> None:
        """Take the rules by what a target must begin with."""
        texts = sorted(rules)
        self._texts = Packed(texts)
        self._words = packed_numbers([rules[text][1] for text in texts])
        self._tails = {
            index: rules[text][0][len(text) :]
            for index, text in enumerate(texts)
            if len(rules[text][0]) > len(text)
        } or None
        self._links: array[int] | None = None
        self._deciding: array[int] | None = None
        if any(map(str.startswith, texts[1:], texts)):
            links, deciding = _nested(texts, rules)
            self._links = packed_numbers(links)
            if self._tails:
                self._deciding = packed_numbers(deciding)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def decide(self, target: str) -> Deciding | None:
        """Return the pattern and word of the rule that decides, or None where none matches."""
        target += _END
        index, text = self._texts.last_not_above(target)
        if index < 0:
            return None
        while not target.startswith(text):
            if not self._links or self._links[index] == index:
                return None
            index = self._links[index]
            text = self._texts[index]
        if self._tails:
            if self._deciding and self._deciding[index] != index:
                index = self._deciding[index]
                text = self._texts[index]
            text += self._tails.get(index, "")
        return text, self._words[index]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = (self, self._words, self._links, self._deciding, self._tails)
        return self._texts.nbytes + sum(map(getsizeof, held))


def _nested(texts: list[str], rules: dict[str, Deciding]) -> tuple[list[int], list[int]]:
    """Return, for each text, the index of its longest proper prefix and of the rule that decides.

    What has no prefix links to itself.
    """
    links: list[int] = []
    deciding: list[int] = []
    prefixes: list[int] = []  # of the text before, itself included
    for index, text in enumerate(texts):
        while prefixes and not text.startswith(texts[prefixes[-1]]):
            prefixes.pop()
        best = index
        if prefixes:
            other = deciding[prefixes[-1]]
            if precedence(rules[texts[other]]) > precedence(rules[text]):
                best = other
        links.append(prefixes[-1] if prefixes else index)
        deciding.append(best)
        prefixes.append(index)
    return links, deciding
