"""The entry of an origin in memory: its compiled rules, and from when to when they are valid.

An expired entry may still decide on one page, up to ten minutes after its fetch. Otherwise a
robots.txt that expires before its page is sent would be fetched again and again while the page
waits for its turn. If other workers use the store, it may only in the second after a lookup, which
finds their newer records.

An entry doesn't contain the text of robots.txt, which stays in the store. It only has the rules for
the product tokens that were needed so far. Rules for other tokens are added when they are needed.
"""

import math
from hashlib import sha256
from typing import Final, NamedTuple

from scrapy_rep.protocol import limits
from scrapy_rep.protocol.access_policy import Access
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, Delay, delay_in
from scrapy_rep.protocol.lexer import is_robotstxt
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.outcome import DNS_ERROR
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.rules import RuleSet
from scrapy_rep.protocol.usage import NO_USAGE_LINES, Usage, UsageLines, read
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Outage, Reason, Verdict

_ENTRY_BYTES: Final = 790
"""Approximate bytes of memory for an entry without rules."""
MAX_UNUSED: Final = limits.CACHE_TTL_MIN
"""Seconds after a fetch in which its entry may decide on a first page though it has expired."""
_AFTER_LOOKUP: Final = 0.5
"""Seconds after a lookup in which it may, if other workers use the store."""
_MAX_TOKEN_LISTS: Final = 128
"""Maximum number of lists of product tokens for which an entry has rules. A crawl may rotate the
User-Agent; 128 is more than the number of User-Agents of browsers in use."""


class _Rules(NamedTuple):
    """What robots.txt has for a list of product tokens."""

    rules: RuleSet
    delay: Delay | None
    usage: UsageLines


class Entry:
    """The rules of an origin; or the one verdict on all of its pages, if no rules are valid.

    It is valid from ``start`` to ``end``, in seconds since the epoch; for a first page until
    ``valid_until``.
    """

    __slots__ = (
        "_hash",
        "_rules",
        "_verdict",
        "end",
        "fetched",
        "has_delay",
        "is_known",
        "is_unused",
        "sha256",
        "start",
        "valid_until",
    )

    def __init__(self, access: Access) -> None:
        self.start: float = access.start
        self.end: float = access.end
        self.is_unused: bool = access.may_allow
        """Whether pages may be allowed, and the entry has not decided on one yet."""
        self.valid_until: float = self.end
        copy = access.copy
        self.is_known: bool = access.is_absent or (copy is not None and is_robotstxt(copy.body))
        """Whether the site has shown a robots.txt, or said that it has none."""
        self._hash = hash(access)
        self.fetched: float = access.start if copy is None else copy.evidence.at
        """When the text with the rules was fetched, in seconds since the epoch; without a text, the
        time of the last fetch."""
        self.sha256: bytes | None = None if copy is None else sha256(copy.body).digest()
        """SHA-256 of the text with the rules; None without a text."""
        self._verdict = access.verdict
        self._rules: dict[Tokens, _Rules] = {}
        self.has_delay: bool = False
        """Whether robots.txt asks for a delay, for any list of product tokens in the entry."""

    def is_valid(self, now: float) -> bool:
        """Return whether the entry is valid at ``now``, for any page or only for its first."""
        return self.start <= now < self.valid_until

    def mark_looked_up(self, now: float, *, is_alone: bool) -> None:
        """Note that a lookup has ended at ``now``.

        A worker that ``is_alone`` may use the entry for its first page for MAX_UNUSED seconds from
        the fetch on; beside others it may only for _AFTER_LOOKUP seconds from ``now`` on.
        """
        if self.is_unused:
            first_page_until = self.start + MAX_UNUSED if is_alone else now + _AFTER_LOOKUP
            self.valid_until = max(self.end, first_page_until)

    def mark_used(self) -> None:
        """Note that the entry has decided on a page."""
        self.is_unused = False
        self.valid_until = self.end

    def is_from(self, access: Access) -> bool:
        """Return whether the entry was made from an ``Access`` with the same hash."""
        return self._hash == hash(access)

    @property
    def is_unreachable(self) -> bool:
        """Whether robots.txt is unreachable, so that nothing may be fetched until the next try."""
        return self._verdict is not None and self._verdict.reason is Reason.UNREACHABLE

    @property
    def is_worth_a_wait(self) -> bool:
        """Whether robots.txt is unreachable, and the next try may end otherwise.

        After a DNS error it was tried as often as Scrapy tries a page.
        """
        is_retried = self.is_unreachable and self.end < math.inf
        return is_retried and self.outage is not None and self.outage.cause != DNS_ERROR

    @property
    def outage(self) -> Outage | None:
        """Why robots.txt is unreachable; None if it isn't, or if the rules of its copy are used."""
        return None if self._verdict is None else self._verdict.outage

    @property
    def nbytes(self) -> int:
        found = self._rules.values()
        return _ENTRY_BYTES + sum(each.rules.nbytes + each.usage.nbytes for each in found)

    def add_rules(self, tokens: Tokens, robots: RobotsTxt, waiting: int = 1) -> None:
        """Add the rules, the delay and the usage preferences of ``robots`` for ``tokens``.

        Above 128 lists of tokens, or as many as are ``waiting`` for the same lookup, the rules for
        the list that was added first are removed.
        """
        known = self._rules.pop(tokens, None)
        while len(self._rules) >= max(_MAX_TOKEN_LISTS, waiting):
            del self._rules[next(iter(self._rules))]
        rules = known or _Rules(
            robots.rules_for(*tokens),
            delay_in(robots.fields_for(*tokens, names=DELAY_FIELDS)),
            robots.usage_lines_for(*tokens),
        )
        self._rules[tokens] = rules
        self.has_delay |= rules.delay is not None

    def delay(self, tokens: Tokens) -> Delay | None:
        """Return the delay that the group for ``tokens`` asks for."""
        rules = self._rules.get(tokens)
        return None if rules is None else rules.delay

    def usage(self, target: str, tokens: Tokens) -> Usage:
        """Return the usage preferences of robots.txt for ``target``, an allowed page."""
        rules = self._rules.get(tokens)
        return read(NO_USAGE_LINES if rules is None else rules.usage, target, tokens)

    def verdict(self, target: str, tokens: Tokens) -> Verdict | None:
        """Return the verdict on ``target``; None if rules decide, and lack those for ``tokens``."""
        rules = self._rules.get(tokens)
        if rules is not None:
            return rules.rules.verdict_for(target)
        return ALLOWED_ROBOTSTXT if target == ROBOTSTXT else self._verdict
