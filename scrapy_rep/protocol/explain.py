"""The explanation of a verdict: the group that applies, and all its rules that match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_rep.protocol.matching.ruleset import matching
from scrapy_rep.protocol.parser import RobotsTxt

if TYPE_CHECKING:
    from scrapy_rep.protocol.parser import Group
    from scrapy_rep.protocol.verdict import Rule, Verdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a verdict was found."""

    target: str
    """Path and query in canonical form, as patterns are matched with them."""
    tokens: tuple[str, ...]
    """The product tokens that were tried, in order."""
    token: str | None
    """The token whose group applies: one of ``tokens``, else ``*``, else None."""
    group: Group | None
    """The group that applies; groups of one token are merged."""
    matching: tuple[Rule, ...]
    """The rules of ``group`` that match, the longest first; the first decides."""
    verdict: Verdict


def explain(body: bytes, target: str, *tokens: str) -> Explanation:
    """Return why the robots.txt ``body`` decides about ``target`` as it does."""
    robots = RobotsTxt.parse(body)
    group = robots.group_for(*tokens)
    rules = [] if group is None else list(matching(group.rules, target))
    # The sort is stable: of equal rules the first in the file decides.
    rules.sort(key=lambda rule: (len(rule.pattern), rule.allow), reverse=True)
    verdict = robots.rules_for(*tokens).verdict_for(target)
    return Explanation(target, tokens, robots.token_for(*tokens), group, tuple(rules), verdict)
