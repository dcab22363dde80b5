"""Patterns with ``*``: which of many matches a target, in time linear in the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_rep.protocol.matcher import Rule


def matches(pattern: str, target: str) -> bool:
    """Say whether a canonical pattern with a ``*`` in it matches a canonical target.

    Each literal part between two ``*`` is found as early as possible behind the one before it; no
    other place could do better, so nothing is ever tried twice.
    """
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    position = len(first)
    last = parts.pop() if anchored else ""
    for part in parts:
        found = target.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(target) - len(last) >= position and target.endswith(last)


class Wildcards:
    """The patterns of a group that have a ``*``, those that go first in front."""

    __slots__ = ("_entries",)

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._entries = tuple((_longest_part(rule.pattern), rule) for rule in rules)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __iter__(self) -> Iterator[tuple[str, Rule]]:
        return iter(self._entries)

    def better(self, target: str, rule: Rule | None) -> Rule | None:
        """Return the first rule that matches and goes before *rule*, else *rule*."""
        floor = (len(rule.pattern), rule.allow) if rule else (0, False)
        for part, candidate in self._entries:
            if part in target:
                if (len(candidate.pattern), candidate.allow) <= floor:
                    return rule
                if matches(candidate.pattern, target):
                    return candidate
        return rule


def _longest_part(pattern: str) -> str:
    """Return what a target must contain to be matched, as long as may be."""
    return max(pattern.removesuffix("$").split("*"), key=len)
