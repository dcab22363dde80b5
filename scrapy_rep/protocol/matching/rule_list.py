"""The rules of a group without an index: a target is compared with all of their patterns."""

from collections.abc import Iterable, Iterator, Sequence
from operator import ne
from sys import getsizeof
from typing import Final

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.matching.packed import pack_numbers, precedence
from scrapy_rep.protocol.matching.wildcards import matches_wildcards

_INDEX_FILE: Final = "/index.htm"
_INDEX_BYTES: Final = (500, 10, 80, 300)
"""Approximate bytes of memory that an index needs in addition: in all, for each rule, for each
``*`` in patterns, and for each value that differs from its pattern."""


class RuleList:
    """The rules of a group in the order of the file, in few objects."""

    __slots__ = ("_words", "_written", "patterns")

    def __init__(self, values: Sequence[bytes], words: Sequence[int], *, index_files: bool) -> None:
        written = b"\n".join(values)
        patterns = canonical_patterns(written)
        if index_files and _INDEX_FILE in patterns:
            rules = list(_with_directories(patterns.split("\n"), values, words))
            patterns = "\n".join([pattern for pattern, _, _ in rules])
            written = b"\n".join([value for _, value, _ in rules])
            words = [word for _, _, word in rules]
        self.patterns: str = patterns
        """The canonical patterns, one per line."""
        # Most values already are in canonical form.
        self._written = None if patterns.encode() == written else written
        self._words = pack_numbers(words)

    @property
    def nbytes(self) -> int:
        """Estimated size in memory, in bytes, when there is an index in place of these rules."""
        own = sum(map(getsizeof, (self, self.patterns, self._written, self._words)))
        if not self.patterns:
            return own
        index, rule, star, value = _INDEX_BYTES
        patterns, _, values = self.unpacked()
        differ = sum(map(ne, map(str.encode, patterns), values)) if values else 0
        stars = self.patterns.count("*")
        return own + index + rule * len(self._words) + star * stars + value * differ

    def unpacked(self) -> tuple[list[str], Sequence[int], list[bytes] | None]:
        """Return patterns, words and values of the rules; no values if they equal the patterns."""
        values = None if self._written is None else self._written.split(b"\n")
        return self.patterns.split("\n"), self._words, values

    def decide(self, target: str) -> tuple[str, int, bytes | None] | None:
        """Return pattern, word and value, None if equal to the pattern, of the deciding rule."""
        patterns = self.patterns.split("\n")
        # A pattern that ends with $ is the beginning of the one target that it matches, and $.
        matching = set(filter((target + "$").startswith, patterns))
        if "*" in self.patterns:
            starred = [pattern for pattern in patterns if "*" in pattern]
            matching.update([pattern for pattern in starred if matches_wildcards(pattern, target)])
        matching.discard("")
        if not matching:
            return None
        rules = [rule for rule in zip(patterns, self._words, strict=False) if rule[0] in matching]
        pattern, word = max(rules, key=precedence)
        if self._written is None:
            return pattern, word, None
        return pattern, word, self._written.split(b"\n")[self._words.index(word)]


def _with_directories(
    patterns: Iterable[str], values: Iterable[bytes], words: Iterable[int]
) -> Iterator[tuple[str, bytes, int]]:
    for pattern, value, word in zip(patterns, values, words, strict=False):
        yield pattern, value, word
        if word & 1 and (directory := directory_of(pattern)):
            yield directory, value, word


def directory_of(pattern: str) -> str | None:
    """Return the pattern of the directory of an index file, which an ``Allow`` allows, too."""
    folder, slash, name = pattern.rpartition("/")
    return f"{folder}/$" if slash and name.startswith(_INDEX_FILE[1:]) else None
