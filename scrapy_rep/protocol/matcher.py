"""Rules of one group: which of them decides about a target (RFC 9309 §2.2.2)."""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.literals import Literals
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.protocol.wildcards import Wildcards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_rep.protocol.precedence import Deciding

ROBOTSTXT: Final = "/robots.txt"
"""The target that may always be fetched (RFC 9309 §2.2.2, SPEC S-9)."""

ALLOWED_ROBOTSTXT: Final = Verdict(allowed=True, reason=Reason.ROBOTSTXT)
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


def rule_of(pattern: str, raw: bytes, word: int) -> Rule:
    """Return a rule of its pattern, its value as written, and its word."""
    return Rule(bool(word & 1), pattern, raw.decode("utf-8", "backslashreplace"), word >> 1)


class RuleSet:
    """The rules that hold for one crawler, compiled: immutable and small."""

    __slots__ = ("_literals", "_raws", "_wildcards")

    def __init__(self, patterns: dict[str, int], raws: dict[str, str]) -> None:
        """Take patterns with their words, and the raw values that differ from their patterns."""
        literals: dict[str, Deciding] = {}
        wildcards: dict[str, int] = {}
        for pattern, word in patterns.items():
            if "*" not in pattern:
                if pattern[:1] == "/":  # anything else matches no target: SPEC M-1
                    literals.setdefault(pattern, (pattern, word))
            elif pattern[0] in "/*":
                text = pattern.removesuffix("$").rstrip("*")
                if "*" in text:
                    wildcards[pattern] = word
                elif len(pattern) > len(literals.get(text, ("",))[0]):
                    literals[text] = pattern, word
        self._literals = Literals(literals) if literals else None
        self._wildcards = Wildcards(wildcards) if wildcards else None
        self._raws = raws or None

    @classmethod
    def compile(
        cls, values: Sequence[bytes], words: Sequence[int], *, index_files: bool = True
    ) -> RuleSet:
        """Compile the rules of a group.

        With *index_files*, an ``Allow`` that ends in ``/index.htm`` or ``/index.html`` also allows
        the directory itself (Google).
        """
        patterns = canonical_patterns(values)
        # Later entries replace earlier ones: of equal patterns an Allow, and the first in the file.
        rules = [*zip(reversed(patterns), reversed(words), strict=True)]
        allowing = {pattern: word for pattern, word in rules if word & 1}
        chosen = {pattern: word for pattern, word in rules if not word & 1}
        if index_files:
            chosen |= {
                pattern[: pattern.rindex("/") + 1] + "$": word
                for pattern, word in allowing.items()
                if pattern.endswith(_INDEX_FILES)
            }
        chosen |= allowing
        raw_of = dict(zip(words, values, strict=True))
        raws = {
            pattern: raw_of[word].decode("utf-8", "backslashreplace")
            for pattern, word in chosen.items()
            if raw_of[word] != pattern.encode()
        }
        return cls(chosen, raws)

    def __bool__(self) -> bool:
        """Whether any rule can match: without one, every target is allowed."""
        return bool(self._literals or self._wildcards)

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
        deciding = self._literals.decide(target) if self._literals else None
        if self._wildcards:
            deciding = self._wildcards.decide(target, deciding)
        if not deciding:
            return _NO_RULE
        pattern, word = deciding
        raw = self._raws.get(pattern, pattern) if self._raws else pattern
        rule = Rule(bool(word & 1), pattern, raw, word >> 1)
        return Verdict(rule.allow, Reason.RULE, rule)
