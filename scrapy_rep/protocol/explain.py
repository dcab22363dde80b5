"""The explanation of a verdict: the group that applies, and all its rules that match."""

from dataclasses import dataclass

from scrapy_rep.protocol.parser import Group, RobotsTxt
from scrapy_rep.protocol.verdict import Rule, Verdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a verdict was found."""

    target: str
    """Path and query of the URL in canonical form, with which patterns are matched."""
    tokens: tuple[str, ...]
    """The product tokens of the crawler, in the order in which their groups were searched for."""
    token: str | None
    """The token whose group applies: one of ``tokens`` or ``*``; None if no group applies."""
    group: Group | None
    """The group that applies. Groups of one token are merged."""
    matching: tuple[Rule, ...]
    """The rules of ``group`` that match, the longest first. The first decides, if a rule does."""
    verdict: Verdict


def explain(body: bytes, target: str, *tokens: str) -> Explanation:
    """Return the verdict of the robots.txt ``body`` on a URL, and how it was found.

    ``target`` is path and query in canonical form, as ``target_of`` returns them; other spellings
    are not checked. *tokens* are the product tokens of the crawler, the most specific first.
    """
    robots = RobotsTxt.parse(body)
    group = robots.group_for(*tokens)
    rules = robots.matching_rules(target, *tokens)
    verdict = robots.rules_for(*tokens).verdict_for(target)
    return Explanation(target, tokens, robots.token_for(*tokens), group, rules, verdict)
