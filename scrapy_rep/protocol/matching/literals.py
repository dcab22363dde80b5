"""Patterns without ``*`` but at their end: which of many decides about a target.

They are sorted. Bisection finds the last that is not above the target; what the target begins with
is that, or before it: of few it is looked for, of many each is linked to its longest proper prefix
among them, and there are no more of these than the target has characters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import compress, islice
from operator import contains, itemgetter
from sys import getsizeof, intern
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.matching.packed import Packed, packed_numbers, split
from scrapy_rep.protocol.matching.precedence import precedence

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from scrapy_rep.protocol.matching.precedence import Deciding

END: Final = "$~"
"""What is put behind a target: its ``$``, and what is above anything that a pattern has there."""
_ABOVE: Final = "\x7f"
"""What is above every character of a text."""
HEAD: Final = slice(4)
"""The first characters of a target, which are looked for among those of the texts."""
_head_of: Final = itemgetter(HEAD)
_FEW: Final = 16
"""Literals up to which speed goes before memory."""
_SCANNED: Final = 64
"""Literals up to which those before the nearest are looked at in turn; links cost time to make."""
_NOTHING: Final = Packed(())


class Literals:
    """The literal patterns of a group.

    An anchored pattern keeps its ``$``, and a target is given one: a canonical target has no raw
    ``$`` of its own, so an anchored pattern is a prefix of its own target and of nothing else.

    A pattern that ends in ``*`` matches what it would match without, but is longer (SPEC M-4): it
    is kept as text and tail. Where there are tails, a prefix may go before a longer one.

    Most targets are let go at a glance: where one matches, its head is found in ``heads``, or it
    begins with one of ``begins``.
    """

    __slots__ = ("_few", "_links", "_packed", "_tails", "_words", "begins", "heads")

    def __init__(self, texts: list[str], words: dict[str, int], tails: dict[str, str]) -> None:
        """Take sorted texts, by these the words of the rules, and tails where they have one."""
        # Few are kept as they are, and once for all origins that have them: /wp-admin/.
        few = len(texts) <= _FEW
        self._few = tuple(map(intern, texts)) if few else ()
        self._packed = _NOTHING if few else Packed(texts)
        self._words = packed_numbers(list(map(words.__getitem__, texts)))
        is_scanned = len(texts) <= _SCANNED and not self._packed.is_long
        self._links = None if is_scanned else _links(texts)
        self._tails: dict[int, str] | None = None
        if tails:
            self._tails = {index: tails[text] for index, text in enumerate(texts) if text in tails}
        self.heads = ""
        self.begins = self._few
        if self._packed.is_long:
            self.begins = ("",)
        elif not few:
            heads = dict.fromkeys(map(_head_of, texts))
            self.heads = "".join(heads)
            self.begins = tuple(head for head in heads if len(head) < HEAD.stop)
        elif "$" in "".join(texts):
            self.begins = tuple(text.removesuffix("$") for text in texts)

    def decide(self, target: str) -> Deciding | None:
        """Return the pattern and word of the rule that decides, or None where none matches.

        *target* has ``END`` behind it.
        """
        texts: Sequence[str] | Packed
        if self._packed.is_long:
            texts = self._packed
            index, text = texts.last_below(target)
        else:
            texts = self._few or split(self._packed)
            index = bisect_right(texts, target) - 1
            text = texts[index] if index >= 0 else ""
        links, best = self._links, None
        while index >= 0:
            if target.startswith(text):
                if not self._tails:
                    return text, self._words[index]
                rule = text + self._tails.get(index, ""), self._words[index]
                if best is None or precedence(rule) > precedence(best):
                    best = rule
                index = links[index] - 1 if links else index - 1
            elif links:
                index = links[index] - 1
            elif self._few or text >= target[HEAD]:
                index -= 1
            else:  # below are none but those that are shorter than a head
                short = [
                    begin for begin in self.begins if begin < text and target.startswith(begin)
                ]
                index = bisect_left(split(self._packed), max(short)) if short else -1
            if index >= 0:
                text = texts[index]
        return best

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = (self, self._words, self._links, self._tails, self.heads, self.begins)
        packed = 0 if self._few else self._packed.nbytes
        return packed + sum(map(getsizeof, (*held, self._few, *self._few)))


def _links(texts: list[str]) -> array[int]:
    """Return, for each sorted text, one more than the index of its longest proper prefix, or 0."""
    # Those that begin with a text stand right behind it. That the next contains it is told fastest.
    near = compress(range(len(texts)), map(contains, islice(texts, 1, None), texts))
    prefixes = [index for index in near if texts[index + 1].startswith(texts[index])]
    links = [0] * len(texts)
    for index in prefixes:  # a longer one comes later, and has the last word
        stop = bisect_right(texts, texts[index] + _ABOVE, index)
        links[index + 1 : stop] = [index + 1] * (stop - index - 1)
    return packed_numbers(links)
