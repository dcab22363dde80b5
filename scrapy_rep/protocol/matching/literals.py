"""Literal patterns, with no ``*`` but at their end: which of many decides about a target.

They are sorted, and each is linked to its longest proper prefix among them. Bisection finds the
last that is not above the target; what the target begins with is that, or follows by the links, of
which there are no more than the target has characters.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain, compress, islice
from operator import contains, itemgetter
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.matching.packed import (
    LEAF,
    SEPARATOR,
    packed_numbers,
    packed_strings,
    string_at,
)
from scrapy_rep.protocol.matching.precedence import precedence

if TYPE_CHECKING:
    from array import array

    from scrapy_rep.protocol.matching.precedence import Deciding

END: Final = "$~"
"""What is put behind a target: its ``$``, and what is above anything that a pattern has there."""
_ABOVE: Final = "\x7f"
"""What is above every character of a text."""
HEAD: Final = slice(4)
"""The first characters of a target, which are looked for among those of the texts."""
_head_of: Final = itemgetter(HEAD)
_WITH_HEADS: Final = 512
"""Literals up to which bisection takes longer than a look for a head."""


class Literals:
    """The literal patterns of a group.

    An anchored pattern keeps its ``$``, and a target is given one: a canonical target has no raw
    ``$`` of its own, so an anchored pattern is a prefix of its own target and of nothing else.

    A pattern that ends in ``*`` matches what it would match without, but is longer (SPEC M-4): it
    is kept as text and tail. Where there are tails, a prefix may go before a longer one.

    Most targets are let go at a glance: where one matches, its head is found in ``heads``, or it
    begins with one of ``begins``.
    """

    __slots__ = ("_leaves", "_links", "_tails", "_words", "begins", "heads")

    def __init__(self, texts: list[str], words: dict[str, int], tails: dict[str, str]) -> None:
        """Take sorted texts, by these the words of the rules, and tails where they have one."""
        self._leaves = packed_strings(texts)
        self._words = packed_numbers([words[text] for text in texts])
        self._links = _links(texts)
        self._tails: dict[int, str] | None = None
        if tails:
            self._tails = {index: tails[text] for index, text in enumerate(texts) if text in tails}
        self.heads = ""
        self.begins: tuple[str, ...] = ("",)
        if len(texts) <= _WITH_HEADS:
            heads = dict.fromkeys(map(_head_of, texts))
            self.heads = "".join(heads)
            self.begins = tuple([head for head in heads if len(head) < HEAD.stop])

    def decide(self, target: str) -> Deciding | None:
        """Return the pattern and word of the rule that decides, or None where none matches.

        *target* has ``END`` behind it.
        """
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
        """Memory held, in bytes."""
        held = (self, self._words, self._links, self._tails, self.heads, self.begins, self._leaves)
        tails = chain(*(self._tails or {}).items())
        return sum(map(getsizeof, (*held, *self._leaves, *self.begins, *tails)))


def _links(texts: list[str]) -> array[int] | None:
    """Return, for each sorted text, one more than the index of its longest proper prefix, or 0.

    None where there is no such prefix.
    """
    # Those that begin with a text stand right behind it. That the next contains it is told fastest.
    near = compress(range(len(texts)), map(contains, islice(texts, 1, None), texts))
    prefixes = [index for index in near if texts[index + 1].startswith(texts[index])]
    if not prefixes:
        return None
    links = [0] * len(texts)
    for index in prefixes:  # a longer one comes later, and has the last word
        stop = bisect_right(texts, texts[index] + _ABOVE, index)
        links[index + 1 : stop] = [index + 1] * (stop - index - 1)
    return packed_numbers(links)
