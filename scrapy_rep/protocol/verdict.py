"""The verdict on a URL: whether it may be fetched, and the rule or reason that decided."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Final, NamedTuple

from scrapy_rep.protocol.origin import Origin


class Reason(str, Enum):
    """The reason of a verdict."""

    RULE = "rule"
    """A rule allows or disallows the URL (RFC 9309 §2.2.2)."""
    NO_RULE = "no-rule"
    """No rule for the crawler matches: allowed (RFC 9309 §2.2.2)."""
    ROBOTSTXT = "robotstxt"
    """The URL is that of robots.txt: always allowed (RFC 9309 §2.2.2)."""
    UNAVAILABLE = "unavailable"
    """The origin has no robots.txt: allowed (RFC 9309 §2.3.1.3)."""
    UNREACHABLE = "unreachable"
    """robots.txt could not be fetched: disallowed, for now (RFC 9309 §2.3.1.4)."""
    UNREACHABLE_LONG = "unreachable-long"
    """robots.txt has been unreachable for a long time, and no copy is stored: allowed
    (RFC 9309 §2.3.1.4)."""
    NO_ORIGIN = "no-origin"
    """The URL has no valid host or port, or parsers read them in different ways, or the request may
    be sent to another origin: disallowed."""
    ERROR = "error"
    """An error in scrapy-rep prevented a decision: disallowed, as nothing else is safe."""
    USAGE = "usage"
    """The page must not be used for a purpose that the crawl has declared: disallowed."""
    OVERRIDE = "override"
    """An entry of REP_OVERRIDES allows or disallows the URL."""
    NOFOLLOW = "nofollow"
    """The page with the link has nofollow in a meta tag or X-Robots-Tag: disallowed."""
    TOO_COSTLY = "too-costly"
    """Matching the rules would take too much work: disallowed, as nothing else is safe."""
    CLOSING = "closing"
    """The crawl was closed before robots.txt was known: disallowed."""


UNKNOWN_RULES: Final = frozenset({Reason.UNREACHABLE, Reason.ERROR})
"""Reasons of a verdict that is none of the site, as nobody knows its rules."""


class Rule(NamedTuple):
    """One ``Allow`` or ``Disallow`` line."""

    allow: bool
    pattern: str
    """The value in canonical form: printable ASCII; ``*`` and a ``$`` at the end are operators."""
    raw: str
    """The value as written; bytes that are not UTF-8 are escaped."""
    line: int
    """The line number, 1-based."""

    def __str__(self) -> str:
        value = self.raw if self.raw.isprintable() else self.pattern
        return f"{'Allow' if self.allow else 'Disallow'}: {value}"


class Outage(NamedTuple):
    """Why a robots.txt is unreachable. Times are in seconds since the epoch."""

    cause: str
    """A printable text, such as ``connection closed`` or ``status 503``."""
    since: float
    """Time of the first failed fetch in a row."""
    next_try: float
    """Time of the next fetch; infinity if there is none."""


class Verdict(NamedTuple):
    """Whether a URL may be fetched, and the rule or other reason that decided."""

    allowed: bool
    reason: Reason
    rule: Rule | None = None
    robotstxt_url: str | None = None
    outage: Outage | None = None
    """The outage, if robots.txt is unreachable."""

    @property
    def line(self) -> int | None:
        """The line number of the rule that decided, 1-based; None without one."""
        return self.rule.line if self.rule else None

    def with_origin(self, origin: Origin | None) -> Verdict:
        """Return this verdict with the URL of the robots.txt of ``origin``, unless it has one."""
        if origin is None or self.robotstxt_url is not None or self.reason is Reason.OVERRIDE:
            return self
        return self._replace(robotstxt_url=origin.robotstxt_url)

    def as_dict(self) -> dict[str, Any]:
        """Return a flat dict for JSON: the rule is text, and an infinite ``next_try`` is None."""
        cause, since, next_try = self.outage or (None, None, None)
        return {
            "allowed": self.allowed,
            "reason": self.reason.value,
            "rule": None if self.rule is None else str(self.rule),
            "line": self.line,
            "robotstxt_url": self.robotstxt_url,
            "cause": cause,
            "unreachable_since": since,
            "next_try": None if next_try == math.inf else next_try,
        }


ALLOWED_ROBOTSTXT: Final = Verdict(allowed=True, reason=Reason.ROBOTSTXT)
"""The verdict on robots.txt itself (RFC 9309 §2.2.2, SPEC S-9)."""
