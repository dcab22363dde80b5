"""Rules of one group: which of them decides about a target (RFC 9309 §2.2.2)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from sys import getsizeof
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_pattern
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.protocol.wildcards import Wildcards

if TYPE_CHECKING:
    from collections.abc import Iterable

ROBOTSTXT: Final = "/robots.txt"
"""The target that may always be fetched (RFC 9309 §2.2.2, SPEC S-9)."""

_ALLOWED_ROBOTSTXT: Final = Verdict(allowed=True, reason=Reason.ROBOTSTXT)
_NO_RULE: Final = Verdict(allowed=True, reason=Reason.NO_RULE)
_INDEX_FILES: Final = ("/index.htm", "/index.html")


class Rule(NamedTuple):
    """One ``Allow`` or ``Disallow`` line."""

    allow: bool
    pattern: str
    """Canonical: printable ASCII, where ``*`` and a ``$`` at the end are operators."""
    raw: str
    """The value as written."""
    line: int
    """1-based."""

    def __str__(self) -> str:
        value = self.raw if self.raw.isprintable() else self.pattern
        return f"{'Allow' if self.allow else 'Disallow'}: {value}"


class RuleLine(NamedTuple):
    """A rule as it was read, before anything is made of its value."""

    allow: bool
    value: bytes
    line: int

    def rule(self) -> Rule:
        """Return the rule with its pattern in canonical form."""
        return Rule(self.allow, canonical_pattern(self.value), self.raw, self.line)

    @property
    def raw(self) -> str:
        """The value as text; bytes that are no UTF-8 are shown as escapes."""
        return self.value.decode("utf-8", "backslashreplace")


class RuleSet:
    """The rules that hold for one crawler, compiled: immutable and small.

    Patterns without ``*`` are sorted, and each is linked to its longest proper prefix among them:
    bisection finds the last that is not above the target, the links lead to the longest that the
    target begins with, and that one knows which of its prefixes decides.
    """

    __slots__ = ("_deciding", "_exact", "_links", "_prefixes", "_wildcards")

    def __init__(
        self, prefixes: dict[str, Rule], exact: dict[str, Rule], wildcards: Iterable[Rule]
    ) -> None:
        self._exact = exact
        self._wildcards = Wildcards(sorted(wildcards, key=precedence, reverse=True))
        self._prefixes = tuple(sorted(prefixes))
        self._links = array("L", [])
        deciding: list[Rule] = []
        chain: list[int] = []  # the prefixes that the last one begins with, itself included
        for index, prefix in enumerate(self._prefixes):
            while chain and not prefix.startswith(self._prefixes[chain[-1]]):
                chain.pop()
            rule = prefixes[prefix]
            if chain:
                rule = max(rule, deciding[chain[-1]], key=precedence)
            self._links.append(chain[-1] if chain else index)
            deciding.append(rule)
            chain.append(index)
        self._deciding = tuple(deciding)

    @classmethod
    def compile(cls, lines: Iterable[RuleLine], *, index_files: bool = True) -> RuleSet:
        """Compile the rules of a group."""
        rules: dict[str, Rule] = {}
        for line in lines:
            rule = line.rule()
            _keep(rules, rule.pattern, rule)
            if index_files and rule.allow and rule.pattern.endswith(_INDEX_FILES):
                directory = rule.pattern[: rule.pattern.rindex("/") + 1] + "$"
                _keep(rules, directory, rule._replace(pattern=directory))
        prefixes: dict[str, Rule] = {}
        exact: dict[str, Rule] = {}
        wildcards: list[Rule] = []
        for pattern, rule in rules.items():
            if not pattern.startswith(("/", "*")):
                continue  # matches no target: M-1
            open_end = pattern.removesuffix("$")
            fixed = open_end.rstrip("*")
            if "*" in fixed:
                wildcards.append(rule)
            elif fixed == open_end != pattern:
                _keep(exact, fixed, rule)
            else:
                _keep(prefixes, fixed, rule)
        return cls(prefixes, exact, wildcards)

    def __bool__(self) -> bool:
        """Whether any rule can match: without one, every target is allowed."""
        return bool(self._prefixes or self._exact or self._wildcards)

    @property
    def nbytes(self) -> int:
        """Estimated memory held, in bytes."""
        rules = {id(rule): rule for rule in (*self._deciding, *self._exact.values())}
        rules.update((id(rule), rule) for _, rule in self._wildcards)
        held = (self, self._prefixes, self._links, self._deciding, self._exact, self._prefixes)
        texts = (text for rule in rules.values() for text in (rule, rule.pattern, rule.raw))
        return sum(map(getsizeof, (*held, *texts, *self._prefixes, *self._exact)))

    def verdict_for(self, target: str) -> Verdict:
        """Return whether a target may be fetched, and the rule that decides.

        *target* is canonical, as ``target_of`` returns it. The longest pattern that matches
        decides, of equally long ones an ``Allow``.
        """
        if target == ROBOTSTXT:
            return _ALLOWED_ROBOTSTXT
        rule = self._longest_prefix(target)
        if target in self._exact:
            exact = self._exact[target]
            rule = max(rule, exact, key=precedence) if rule else exact
        if self._wildcards:
            rule = self._wildcards.better(target, rule)
        return Verdict(rule.allow, Reason.RULE, rule) if rule else _NO_RULE

    def _longest_prefix(self, target: str) -> Rule | None:
        index = bisect_right(self._prefixes, target) - 1
        if index < 0:
            return None
        while not target.startswith(self._prefixes[index]):
            link = self._links[index]
            if link == index:
                return None
            index = link
        return self._deciding[index]


def precedence(rule: Rule) -> tuple[int, bool]:
    """Return what decides between rules that match: octets of the pattern, then ``Allow``."""
    return len(rule.pattern), rule.allow


def _keep(rules: dict[str, Rule], key: str, rule: Rule) -> None:
    """Keep the rule that goes first; of equals, the first in the file."""
    other = rules.get(key)
    if other is None or precedence(rule) > precedence(other):
        rules[key] = rule
