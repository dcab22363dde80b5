"""The verdict on all spellings of a URL: if one of them is disallowed, the URL is disallowed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from scrapy_rep.decision.spellings import Spellings
from scrapy_rep.protocol.matching.effort import Effort
from scrapy_rep.protocol.matching.ruleset import RuleSet
from scrapy_rep.protocol.origin import ROBOTSTXT, target_of
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.verdict import Reason, Verdict

VerdictOn = Callable[[str, Tokens, Effort], Verdict | None]

NO_ORIGIN: Final = Verdict(allowed=False, reason=Reason.NO_ORIGIN)
_BY_RULES: Final = (Reason.RULE, Reason.NO_RULE)


def strictest_verdict(
    url: str, target: str, tokens: Tokens, verdict_on: VerdictOn, spellings: Callable[[], set[str]]
) -> tuple[str, Verdict | None]:
    """Return the spelling of ``target`` that decided, and the verdict on it.

    ``verdict_on`` returns the verdict on a target; None if a lookup is needed. ``spellings``
    returns the other spellings. It raises ValueError as ``Spellings.others`` does; the URL then has
    no clear origin, and is disallowed.
    """
    effort = Effort()
    verdict = verdict_on(target, tokens, effort)
    if verdict is None or not verdict.allowed or target == ROBOTSTXT:
        return target, verdict
    if verdict.reason not in _BY_RULES and url.isascii():
        return target, verdict  # without rules, the spelling doesn't matter
    try:
        others = spellings()
    except ValueError:
        return target, NO_ORIGIN
    for spelling in others:
        other = verdict_on(spelling, tokens, effort)
        if other is None or not other.allowed:
            return spelling, other
    return target, verdict


def verdict_of_rules(rules: RuleSet, url: str, spellings: Spellings) -> Verdict:
    """Return the verdict of ``rules`` on all spellings of ``url``."""
    target = target_of(url)

    def verdict_on(target: str, _: Tokens, effort: Effort) -> Verdict:
        return rules.verdict_for(target, effort)

    others = partial(spellings.other_spellings, url, target)
    return strictest_verdict(url, target, (), verdict_on, others)[1] or rules.verdict_for(target)
