"""Rules of one group: which of them decides about a target (RFC 9309 §2.2.2)."""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.literals import END, Literals
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.protocol.wildcards import Wildcards

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


ROBOTSTXT: Final = "/robots.txt"
"""The target that may always be fetched (RFC 9309 §2.2.2, SPEC S-9)."""

ALLOWED_ROBOTSTXT: Final = Verdict(allowed=True, reason=Reason.ROBOTSTXT)
_BY_RULE: Final = Reason.RULE
_NO_RULE: Final = Verdict(allowed=True, reason=Reason.NO_RULE)
_INDEX_FILES: Final = ("/index.htm", "/index.html")


class Rule(NamedTuple):
    """One ``Allow`` or ``Disallow`` line."""

    allow: bool
    pattern: str
    """Canonical: printable ASCII, where ``*`` and a ``$`` at the end are operators."""
    raw: str
    """The value as written; bytes that are no UTF-8 are shown as escapes."""
    line: int
    """1-based."""

    def __str__(self) -> str:
        value = self.raw if self.raw.isprintable() else self.pattern
        return f"{'Allow' if self.allow else 'Disallow'}: {value}"


def rules_of(values: Sequence[bytes], words: Sequence[int]) -> Iterator[Rule]:
    """Yield the rules of values as written, and their words."""
    for pattern, value, word in zip(canonical_patterns(values), values, words, strict=True):
        yield Rule(bool(word & 1), pattern, _text(value), word >> 1)


class RuleSet:
    """The rules that hold for one crawler, compiled: immutable and small."""

    __slots__ = ("_literals", "_parts", "_raws", "_texts", "_wildcards")

    def __init__(self, patterns: dict[str, int], raws: dict[str, str]) -> None:
        """Take patterns with their words, and the raw values that differ from their patterns."""
        wildcards: dict[str, int] = {}
        tails: dict[str, str] = {}
        # What starts with neither matches no target: SPEC M-1.
        literals = {p: patterns[p] for p in patterns if "*" not in p and p[:1] == "/"}
        for pattern in [p for p in patterns if "*" in p and p[0] in "/*"]:
            word = patterns[pattern]
            text = pattern.removesuffix("$").rstrip("*")
            if "*" in text:
                wildcards[pattern] = word
            elif len(pattern) > len(text + tails.get(text, "")):
                tails[text] = pattern[len(text) :]
                literals[text] = word
        self._literals = Literals(literals, tails) if literals else None
        self._wildcards = Wildcards(wildcards) if wildcards else None
        self._raws = raws or None
        # Where all is few: what a target must begin with, or contain, if a rule is to match.
        texts = self._literals.few if self._literals else ()
        parts = self._wildcards.parts if self._wildcards else ()
        few = bool(texts) == bool(literals) and bool(parts) == bool(wildcards)
        self._texts = texts if few else None
        self._parts = parts if few else ()

    @classmethod
    def compile(
        cls, values: Sequence[bytes], words: Sequence[int], *, index_files: bool = True
    ) -> RuleSet:
        """Compile the rules of a group.

        With *index_files*, an ``Allow`` that ends in ``/index.htm`` or ``/index.html`` also allows
        the directory itself (Google).
        """
        patterns = canonical_patterns(values)
        chosen = dict(zip(patterns, words, strict=True))
        if len(chosen) < len(patterns):
            chosen = _first_of_equals(patterns, words)
        if index_files:
            _add_directories(chosen)
        return cls(chosen, _raws(chosen, values, words))

    def __bool__(self) -> bool:
        """Whether any rule can match: without one, every target is allowed."""
        return self._literals is not None or self._wildcards is not None

    @property
    def nbytes(self) -> int:
        """Estimated memory held, in bytes."""
        parts = [part.nbytes for part in (self._literals, self._wildcards) if part]
        raws = [thing for entry in (self._raws or {}).items() for thing in entry]
        return sum(parts) + sum(map(getsizeof, (self, self._raws, *raws)))

    def verdict_for(self, target: str) -> Verdict:
        """Return whether a target may be fetched, and the rule that decides.

        *target* is canonical, as ``target_of`` returns it. The longest pattern that matches
        decides, of equally long ones an ``Allow``.
        """
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        if self._texts is not None and not (target + END).startswith(self._texts):
            for part in self._parts:
                if part in target:
                    break
            else:
                return _NO_RULE  # the most frequent end, in the fewest steps
        literals, wildcards = self._literals, self._wildcards
        deciding = literals.decide(target) if literals else None
        if wildcards:
            deciding = wildcards.decide(target, deciding)
        if deciding is None:
            return _NO_RULE
        pattern, word = deciding
        raw = self._raws.get(pattern, pattern) if self._raws else pattern
        rule = Rule(bool(word & 1), pattern, raw, word >> 1)
        return Verdict(rule.allow, _BY_RULE, rule)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _raws(
    patterns: dict[str, int], values: Sequence[bytes], words: Sequence[int]
) -> dict[str, str]:
    """Return, by pattern, the raw values that differ."""
    if "\n".join(patterns).encode() == b"\n".join(values):
        return {}  # as nearly always
    value_of = dict(zip(words, values, strict=True))
    return {
        pattern: _text(value_of[word])
        for pattern, word in patterns.items()
        if value_of[word] != pattern.encode()
    }


def _first_of_equals(patterns: list[str], words: Sequence[int]) -> dict[str, int]:
    """Return, for each pattern, its first Allow, or else its first Disallow."""
    rules = list(zip(reversed(patterns), reversed(words), strict=True))
    first = {pattern: word for pattern, word in rules if not word & 1}
    first |= {pattern: word for pattern, word in rules if word & 1}
    return first


def _add_directories(rules: dict[str, int]) -> None:
    """Allow the directories of index files that are allowed (Google)."""
    for pattern in [pattern for pattern in rules if pattern.endswith(_INDEX_FILES)]:
        directory = pattern[: pattern.rindex("/") + 1] + "$"
        if rules[pattern] & 1 and not rules.get(directory, 0) & 1:
            rules[directory] = rules[pattern]
