"""Explanation of a verdict: which group holds, and every rule of it that matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_rep.protocol.lexer import LineKind, lex
from scrapy_rep.protocol.matching.ruleset import RuleSet
from scrapy_rep.protocol.parser import ANYONE, RobotsTxt

if TYPE_CHECKING:
    from scrapy_rep.protocol.parser import Group
    from scrapy_rep.protocol.verdict import Rule, Verdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """What led to a verdict."""

    target: str
    """Path and query, in the form that patterns are matched against."""
    tokens: tuple[str, ...]
    """The product tokens that were tried, in order."""
    token: str | None
    """The one whose group holds; ``*`` where none has one, None where that hasn't either."""
    group: Group | None
    """That group; groups of one token are merged."""
    matching: tuple[Rule, ...]
    """Its rules that match, the longest first; the first decides."""
    verdict: Verdict


def explain(body: bytes, target: str, *tokens: str) -> Explanation:
    """Return why the robots.txt ``body`` decides about ``target`` as it does."""
    robots = RobotsTxt.parse(body)
    verdict = robots.rules_for(*tokens).verdict_for(target)
    group = robots.group_for(*tokens)
    lines = set() if group is None else {rule.line for rule in group.rules}
    matching = []
    for line in lex(body):
        if line.number in lines:
            word = 2 * line.number + (line.kind is LineKind.ALLOW)
            rule = RuleSet.compile([line.value], [word]).verdict_for(target).rule
            if rule is not None:
                matching.append(rule)
    # The sort is stable: of equal rules the first in the file decides.
    matching.sort(key=lambda rule: (len(rule.pattern), rule.allow), reverse=True)
    return Explanation(target, tokens, _token(robots, tokens), group, tuple(matching), verdict)


def _token(robots: RobotsTxt, tokens: tuple[str, ...]) -> str | None:
    anyone = robots.group_for()
    for token in tokens:
        group = robots.group_for(token)
        if group is not None and (group != anyone or token.lower() in group.tokens):
            return token
    return None if anyone is None else ANYONE
