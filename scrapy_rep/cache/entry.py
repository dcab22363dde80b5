"""What the memory holds of an origin: its compiled rules, and until when they hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, Delay, delay_in
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.usage.rules import NO_USAGE_RULES, UsageRules
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Reason, Verdict

if TYPE_CHECKING:
    from scrapy_rep.protocol.matching.effort import Effort
    from scrapy_rep.protocol.matching.ruleset import RuleSet
    from scrapy_rep.protocol.outage import Outage
    from scrapy_rep.protocol.parser import RobotsTxt
    from scrapy_rep.protocol.product_tokens import Tokens
    from scrapy_rep.protocol.usage.usage import Usage

_ENTRY_BYTES: Final = 680
"""About what an entry costs beside its rules: its own parts and its place in the mapping."""
_MAX_TOKEN_LISTS: Final = 128
"""Crawlers, each with its own list of product tokens, whose rules an entry holds: more than there
are browsers, whose names a crawl may send in turns."""


class Entry:
    """What the hot path holds of an origin: access, until when, and the rules of our tokens."""

    __slots__ = ("_delays", "_rules", "_state", "_usage", "end", "mark", "start")

    def __init__(self, access: Access) -> None:
        self.start = access.start
        self.end = access.end
        self.mark = mark_of(access)
        """What it is made of: equal for equal ``Access``."""
        # The body stays in the store: here are only the rules that are asked for.
        self._state = (
            None
            if access.grant is Grant.RULES
            else Verdict(access.grant is Grant.ALL, access.reason, outage=access.outage)
        )
        self._rules: dict[Tokens, RuleSet] = {}
        self._delays: dict[Tokens, Delay] | None = None
        self._usage: dict[Tokens, UsageRules] | None = None

    def is_of(self, access: Access) -> bool:
        """Return whether this was made of ``access``, or of one that is equal."""
        return self.mark == mark_of(access)

    @property
    def is_unreachable(self) -> bool:
        """Whether nothing may be fetched until a later try of robots.txt."""
        return self._state is not None and self._state.reason is Reason.UNREACHABLE

    @property
    def may_come_back(self) -> bool:
        """Whether there will be that later try."""
        return self.is_unreachable and self.end < math.inf

    @property
    def outage(self) -> Outage | None:
        """Why nobody knows the rules, where that decides."""
        return None if self._state is None else self._state.outage

    @property
    def asks_for_delay(self) -> bool:
        """Whether a group of ours asks for some time between two requests."""
        return self._delays is not None

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory this takes."""
        usage = 0 if self._usage is None else sum(each.nbytes for each in self._usage.values())
        return _ENTRY_BYTES + usage + sum(rules.nbytes for rules in self._rules.values())

    def has(self, tokens: Tokens) -> bool:
        """Return whether the rules for ``tokens`` are held."""
        return tokens in self._rules

    def add(self, tokens: Tokens, robots: RobotsTxt) -> None:
        """Hold the rules for ``tokens``, too."""
        if len(self._rules) >= _MAX_TOKEN_LISTS:
            oldest = next(iter(self._rules))
            del self._rules[oldest]
            if self._delays is not None:
                self._delays.pop(oldest, None)
            if self._usage is not None:
                self._usage.pop(oldest, None)
        self._rules[tokens] = robots.rules_for(*tokens)
        delay = delay_in(robots.fields_for(*tokens, names=DELAY_FIELDS))
        if delay is not None:
            self._delays = {**(self._delays or {}), tokens: delay}
        usage = robots.usage_rules_for(*tokens)
        if usage is not NO_USAGE_RULES:
            self._usage = {**(self._usage or {}), tokens: usage}

    def delay(self, tokens: Tokens) -> Delay | None:
        """Return what the group of ``tokens`` asks to be left between two requests, if it does."""
        return None if self._delays is None else self._delays.get(tokens)

    def usage(self, target: str, tokens: Tokens) -> Usage:
        """Return what robots.txt says about the use of ``target``, which is allowed."""
        rules = NO_USAGE_RULES if self._usage is None else self._usage.get(tokens, NO_USAGE_RULES)
        return rules.usage_for(target, *tokens)

    def verdict(self, target: str, tokens: Tokens, effort: Effort | None = None) -> Verdict | None:
        """Return the verdict on ``target``; None where the rules for ``tokens`` aren't held."""
        rules = self._rules.get(tokens)
        if rules is not None:
            return rules.verdict_for(target, effort)
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        return self._state


def mark_of(access: Access) -> int:
    """Return a number that an ``Access`` is known by in this process."""
    # Two answers of one moment may differ: two workers' at the same tick of the clock.
    body = None if access.copy is None else access.copy.body
    return hash((access.start, access.end, access.reason, body))
