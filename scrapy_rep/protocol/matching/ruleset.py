"""The compiled rules for one crawler, for finding the rule that decides (RFC 9309 §2.2.2)."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import ne
from sys import getsizeof
from typing import Final

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import as_text
from scrapy_rep.protocol.matching.literals import END, HEAD, Literals
from scrapy_rep.protocol.matching.packed import pack_numbers, precedence
from scrapy_rep.protocol.matching.wildcards import (
    Effort,
    TooCostlyError,
    Wildcards,
    is_match,
    matches_wildcards,
)
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Reason, Rule, Verdict

_NO_RULE: Final = Verdict(allowed=True, reason=Reason.NO_RULE)
_TOO_COSTLY: Final = Verdict(allowed=False, reason=Reason.TOO_COSTLY)
_VERDICTS: Final = 256
"""Number of verdicts in the LRU cache. All URLs for which one rule decides share a verdict."""
_SCANS: Final = 4
"""Number of verdicts without an index. Building the index takes about as long as five of them."""
_MAX_STARS: Final = 256
"""Number of ``*`` in the patterns of a group above which the index is always used."""
_MAX_SCAN: Final = 2**24
"""Length of all patterns times length of a target above which the index is always used. So no
verdict without an index takes much longer than 10 ms."""
_FIRST: Final = ("/", "*")
"""First characters of patterns that can match (SPEC M-1)."""
_BEHIND_SLASH: Final = chr(ord("/") + 1)
_INDEX_FILE: Final = "/index.htm"
_INDEX_BYTES: Final = (500, 10, 80, 300)
"""Approximate bytes of memory that an index needs in addition: in all, for each rule, for each
``*`` in patterns, and for each value that differs from its pattern."""
_NO_LITERALS: Final = Literals([], {}, {})
_NO_WILDCARDS: Final = Wildcards({})


def rules_of(values: Sequence[bytes], words: Sequence[int]) -> Iterator[Rule]:
    """Yield the rules with these values, as written, and these words (see ``packed``)."""
    patterns = canonical_patterns(b"\n".join(values)).split("\n")
    for pattern, value, word in zip(patterns, values, words, strict=False):
        yield Rule(bool(word & 1), pattern, as_text(value), word >> 1)


class RuleList:
    """The rules of a group in the order of the file, with those for directories of index files."""

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
        """Return patterns (``[""]`` without rules), words, and values (None if they are equal)."""
        values = None if self._written is None else self._written.split(b"\n")
        return self.patterns.split("\n"), self._words, values

    def decide(self, target: str) -> tuple[str, int, bytes | None] | None:
        """Return pattern, word (``packed``), value (None if equal) of what decides; else None."""
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


class RuleSet:
    """The rules for one crawler, small in memory; ``verdict_for`` decides on a target.

    For the first verdicts, the target is compared with all patterns, as most sites of a broad crawl
    have few pages. Then an index is built: ``Literals`` and ``Wildcards``.
    """

    __slots__ = ("_list", "_literals", "_raws", "_scans", "_wildcards")

    def __init__(
        self, values: Sequence[bytes], words: Sequence[int], *, index_files: bool = True
    ) -> None:
        """``values`` and ``words`` are as for ``rules_of``, *index_files* as for ``RobotsTxt``."""
        self._list: RuleList | None = RuleList(values, words, index_files=index_files)
        self._scans = _SCANS
        self._literals = _NO_LITERALS
        self._wildcards = _NO_WILDCARDS
        self._raws: dict[str, bytes] | None = None
        if self._list.patterns.count("*") > _MAX_STARS:
            self._build_index(self._list)

    def _build_index(self, rules: RuleList) -> None:
        """Replace ``rules``, the list of this set, by ``Literals`` and ``Wildcards``."""
        patterns, words, values = rules.unpacked()
        literals = dict(zip(patterns, words, strict=False))
        if len(literals) < len(words):
            literals = _deciding_words(patterns, words)
        if values is not None:
            value_of = dict(zip(words, values, strict=True))
            self._raws = {
                pattern: value_of[word]
                for pattern, word in literals.items()
                if value_of[word] != pattern.encode()
            }
        literals.pop("", None)
        tails: dict[str, str] = {}
        wildcards: dict[str, int] = {}
        for pattern in [pattern for pattern in literals if "*" in pattern]:
            word = literals.pop(pattern)
            text = pattern.rstrip("*$")
            if not pattern.startswith(_FIRST):
                continue
            if "*" in text:
                wildcards[pattern] = word
                continue
            other = text + tails.get(text, ""), literals.get(text, 0)
            if precedence((pattern, word)) > precedence(other):
                tails[text] = pattern[len(text) :]
                literals[text] = word
        texts = sorted(literals)
        # Only texts that begin with '/', and the empty text of the pattern '*', can match (SPEC
        # M-1). All other texts are at the two ends of the sorted list.
        if texts and (texts[0] < "/" or texts[-1] >= _BEHIND_SLASH):
            texts = [text for text in texts if not text or text.startswith("/")]
        if texts:
            self._literals = Literals(texts, literals, tails)
        if wildcards:
            self._wildcards = Wildcards(wildcards)
        self._list = None

    @property
    def nbytes(self) -> int:
        """Estimated size in memory, in bytes, with the index, even if it is not built yet."""
        if self._list is not None:
            return getsizeof(self) + self._list.nbytes
        literals = 0 if self._literals is _NO_LITERALS else self._literals.nbytes
        wildcards = 0 if self._wildcards is _NO_WILDCARDS else self._wildcards.nbytes
        raws = chain(*(self._raws or {}).items())
        return literals + wildcards + sum(map(getsizeof, (self, self._raws, *raws)))

    def verdict_for(self, target: str, effort: Effort | None = None) -> Verdict:
        """Return whether a target may be fetched, and the rule that decides.

        *target* is canonical, as ``target_of`` returns it. ``/robots.txt`` is allowed. Otherwise
        the longest pattern that matches decides, and of patterns of the same length an ``Allow``.
        *effort* is the budget of steps that all spellings of a URL share; by default, it is a new
        one. It is only spent if there is an index. If it is used up, the target is disallowed.
        """
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        if (rules := self._list) is not None:
            if self._scans and len(rules.patterns) * len(target) <= _MAX_SCAN:
                self._scans -= 1
                found = rules.decide(target)
                return _NO_RULE if found is None else _verdict_of(*found)
            self._build_index(rules)
        deciding = None
        literals, wildcards = self._literals, self._wildcards
        # For most targets these fast checks find that no rule matches.
        heads, begins = literals.heads, literals.begins
        if (heads and target[HEAD] in heads) or (begins and target.startswith(begins)):
            deciding = literals.decide(target + END)
        begins = wildcards.begins
        try:
            if begins and target.startswith(begins):
                deciding = wildcards.decide(target, deciding, effort)
            else:
                for part in wildcards.parts:
                    if part in target:
                        deciding = wildcards.decide(target, deciding, effort)
                        break
        except TooCostlyError:
            return _TOO_COSTLY
        if deciding is None:
            return _NO_RULE
        pattern, word = deciding
        return _verdict_of(pattern, word, self._raws.get(pattern) if self._raws else None)


@lru_cache(_VERDICTS)
def _verdict_of(pattern: str, word: int, raw: bytes | None) -> Verdict:
    rule = Rule(bool(word & 1), pattern, pattern if raw is None else as_text(raw), word >> 1)
    return Verdict(rule.allow, Reason.RULE, rule)


def _with_directories(
    patterns: Iterable[str], values: Iterable[bytes], words: Iterable[int]
) -> Iterator[tuple[str, bytes, int]]:
    for pattern, value, word in zip(patterns, values, words, strict=False):
        yield pattern, value, word
        if word & 1 and (directory := directory_of(pattern)):
            yield directory, value, word


def directory_of(pattern: str) -> str | None:
    """Return the pattern of the directory if ``pattern`` is that of an index file; else None."""
    folder, slash, name = pattern.rpartition("/")
    return f"{folder}/$" if slash and name.startswith(_INDEX_FILE[1:]) else None


def _deciding_words(patterns: Sequence[str], words: Sequence[int]) -> dict[str, int]:
    """Return by pattern the word (``packed``) of its first ``Allow``, or else ``Disallow``."""
    deciding: dict[str, int] = {}
    for pattern, word in zip(patterns, words, strict=True):
        other = deciding.get(pattern)
        if other is None or word & 1 > other & 1:
            deciding[pattern] = word
    return deciding


def matching_rules(rules: Sequence[Rule], target: str) -> tuple[Rule, ...]:
    """Return all of ``rules`` that match ``target``; the first one decides.

    An ``Allow`` of an index file also matches its directory; then the directory is its pattern.
    """
    directories = [
        rule._replace(pattern=directory)
        for rule in rules
        if rule.allow and (directory := directory_of(rule.pattern))
    ]
    matching = [
        rule
        for rule in (*rules, *directories)
        if rule.pattern.startswith(_FIRST) and is_match(rule.pattern, target)
    ]
    return tuple(sorted(matching, key=rank_of, reverse=True))


def rank_of(rule: Rule) -> tuple[int, bool, int]:
    """Return the sort key of a rule among those that match a target, as ``precedence`` does."""
    return len(rule.pattern), rule.allow, -rule.line
