"""What was decided of a URL, and why."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scrapy_rep.protocol.matcher import Rule


class Reason(str, Enum):
    """Why a verdict is what it is."""

    RULE = "rule"
    """The longest matching rule of our group decided (RFC 9309 §2.2.2)."""
    NO_RULE = "no-rule"
    """No rule of our group matches, or no group is ours: allowed (RFC 9309 §2.2.2)."""
    ROBOTSTXT = "robotstxt"
    """The URL is /robots.txt itself: always allowed (RFC 9309 §2.2.2)."""
    UNAVAILABLE = "unavailable"
    """There is no robots.txt: allowed (RFC 9309 §2.3.1.3)."""
    UNREACHABLE = "unreachable"
    """Nobody knows what robots.txt says: disallowed, for now (RFC 9309 §2.3.1.4)."""
    UNREACHABLE_LONG = "unreachable-long"
    """Unreachable for so long, without a copy, that all is allowed (RFC 9309 §2.3.1.4)."""
    NO_ORIGIN = "no-origin"
    """The URL has no origin that any two parsers would read alike: not sent."""
    ERROR = "error"
    """An error of ours: disallowed, as nothing else is safe."""
    CLOSING = "closing"
    """The crawl closed before robots.txt was known: not sent."""


class Verdict(NamedTuple):
    """Whether a URL may be fetched, and the rule or the state that decided.

    A named tuple, as one is made for every request.
    """

    allowed: bool
    reason: Reason
    rule: Rule | None = None
    robotstxt_url: str | None = None

    @property
    def line(self) -> int | None:
        """Line number of the deciding rule in its file, 1-based, or None."""
        return self.rule.line if self.rule else None
