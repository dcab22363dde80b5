"""An entry in memory for an origin: its compiled rules, and how long they are valid."""

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
"""Approximate size of an entry without its rules, in bytes."""
_MAX_TOKEN_LISTS: Final = 128
"""Largest number of token lists whose rules an entry holds. A crawl may rotate the User-Agents of
browsers, and there are fewer of those."""


class Entry:
    """The access to an origin, and the rules for the product tokens of the crawl."""

    __slots__ = ("_delays", "_rules", "_state", "_usage", "end", "mark", "start")

    def __init__(self, access: Access) -> None:
        self.start: float = access.start
        self.end: float = access.end
        self.mark: int = mark_of(access)
        """A number that is equal for entries of equal ``Access``."""
        # The text stays in the store; memory has only the rules that are used.
        self._state = (
            None
            if access.grant is Grant.RULES
            else Verdict(access.grant is Grant.ALL, access.reason, outage=access.outage)
        )
        self._rules: dict[Tokens, RuleSet] = {}
        self._delays: dict[Tokens, Delay] | None = None
        self._usage: dict[Tokens, UsageRules] | None = None

    def is_of(self, access: Access) -> bool:
        """Return whether this is the entry of ``access``, or of an equal one."""
        return self.mark == mark_of(access)

    @property
    def is_unreachable(self) -> bool:
        """Whether all is disallowed because robots.txt is unreachable."""
        return self._state is not None and self._state.reason is Reason.UNREACHABLE

    @property
    def may_come_back(self) -> bool:
        """Whether robots.txt is unreachable and will be tried again."""
        return self.is_unreachable and self.end < math.inf

    @property
    def outage(self) -> Outage | None:
        """The outage because of which the rules are unknown, if that decides."""
        return None if self._state is None else self._state.outage

    @property
    def asks_for_delay(self) -> bool:
        """Whether a group of the crawl's tokens asks for a delay between requests."""
        return self._delays is not None

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""
        usage = 0 if self._usage is None else sum(each.nbytes for each in self._usage.values())
        return _ENTRY_BYTES + usage + sum(rules.nbytes for rules in self._rules.values())

    def has(self, tokens: Tokens) -> bool:
        """Return whether the entry has the rules for ``tokens``."""
        return tokens in self._rules

    def add(self, tokens: Tokens, robots: RobotsTxt) -> None:
        """Add the rules for ``tokens``."""
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
        """Return the delay that the group of ``tokens`` asks for, if it does."""
        return None if self._delays is None else self._delays.get(tokens)

    def usage(self, target: str, tokens: Tokens) -> Usage:
        """Return the usage preferences of robots.txt for ``target``, which is allowed."""
        rules = NO_USAGE_RULES if self._usage is None else self._usage.get(tokens, NO_USAGE_RULES)
        return rules.usage_for(target, *tokens)

    def verdict(self, target: str, tokens: Tokens, effort: Effort | None = None) -> Verdict | None:
        """Return the verdict on ``target``; None if the rules for ``tokens`` are missing."""
        rules = self._rules.get(tokens)
        if rules is not None:
            return rules.verdict_for(target, effort)
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        return self._state


def mark_of(access: Access) -> int:
    """Return a number that identifies an ``Access`` in this process."""
    # With the body, as two workers may fetch different ones at the same time.
    body = None if access.copy is None else access.copy.body
    return hash((access.start, access.end, access.reason, body))
