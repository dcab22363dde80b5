"""Patterns without ``*`` but at their end: which of many decides about a target, in O(log n).

They are sorted, and each is linked to its longest proper prefix among them. Bisection finds the
last that is not above the target; the links lead from it to the longest that the target begins
with.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from sys import getsizeof, intern
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.packed import Packed, packed_numbers, split
from scrapy_rep.protocol.precedence import precedence

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from scrapy_rep.protocol.precedence import Deciding

END: Final = "$~"
"""What is put behind a target: its ``$``, and what is above anything that a pattern has there."""
_ABOVE: Final = "\x7f"
"""What is above every character of a text."""
_FEW: Final = 16
"""Literals up to which speed goes before memory."""
_NOTHING: Final = Packed(())


class Literals:
    """The literal patterns of a group.

    An anchored pattern keeps its ``$``, and a target is given one: a canonical target has no raw
    ``$`` of its own, so an anchored pattern is a prefix of its own target and of nothing else.

    A pattern that ends in ``*`` matches what it would match without, but is longer (SPEC M-4): it
    is kept as text and tail. Where there are tails, a prefix may go before a longer one.
    """

    __slots__ = ("_deciding", "_links", "_packed", "_tails", "_words", "few")

    def __init__(self, words: dict[str, int], tails: dict[str, str]) -> None:
        """Take the words of the rules, and tails where they have one, by their texts."""
        texts = sorted(words)
        # Few are kept as they are, and once for all origins that have them: /wp-admin/.
        few = len(texts) <= _FEW
        self.few = tuple(map(intern, texts)) if few else ()
        self._packed = _NOTHING if few else Packed(texts)
        self._words = packed_numbers(list(map(words.__getitem__, texts)))
        self._tails: dict[int, str] | None = None
        self._links: array[int] | None = None
        self._deciding: array[int] | None = None
        if tails:
            self._tails = {index: tails[text] for index, text in enumerate(texts) if text in tails}
        # Of few, those before the one that bisection finds are looked at in turn.
        links = [] if few and not tails else _links(texts)
        if links:
            self._links = packed_numbers(links)
            if tails:
                rules = [(text + tails.get(text, ""), words[text]) for text in texts]
                self._deciding = packed_numbers(_deciding(rules, links))

    def decide(self, target: str) -> Deciding | None:
        """Return the pattern and word of the rule that decides, or None where none matches.

        *target* has ``END`` behind it.
        """
        texts: Sequence[str] | Packed
        if self._packed.is_long:
            texts = self._packed
            index, text = texts.last_below(target)
        else:
            texts = self.few or split(self._packed)
            index = bisect_right(texts, target) - 1
            text = texts[index]
        links = self._links
        while index >= 0 and not target.startswith(text):
            if self.few:
                index -= 1
            elif not links or links[index] == index:
                return None
            else:
                index = links[index]
            text = texts[index]
        if index < 0:
            return None
        if self._tails:
            if self._deciding and self._deciding[index] != index:
                index = self._deciding[index]
                text = texts[index]
            text += self._tails.get(index, "")
        return text, self._words[index]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = (self, self._words, self._links, self._deciding, self._tails, self.few, *self.few)
        packed = 0 if self.few else self._packed.nbytes
        return packed + sum(map(getsizeof, held))


def _links(texts: list[str]) -> list[int]:
    """Return, for each sorted text, the index of its longest proper prefix, or its own.

    An empty list where none has one.
    """
    # Those that begin with a text stand right behind it. That the next contains it is told fastest.
    near = [index for index, (text, behind) in enumerate(pairwise(texts)) if text in behind]
    prefixes = [index for index in near if texts[index + 1].startswith(texts[index])]
    if not prefixes:
        return []
    links = list(range(len(texts)))
    for index in prefixes:  # a longer one comes later, and has the last word
        stop = bisect_right(texts, texts[index] + _ABOVE, index)
        links[index + 1 : stop] = [index] * (stop - index - 1)
    return links


def _deciding(rules: list[Deciding], links: list[int]) -> list[int]:
    """Return, for each rule, the index of the one that goes first among it and its prefixes."""
    deciding: list[int] = []
    for index, link in enumerate(links):
        best = index
        if link != index and precedence(rules[deciding[link]]) > precedence(rules[index]):
            best = deciding[link]
        deciding.append(best)
    return deciding
