"""What we raise at users: for errbacks, for who asks Robots, and for wrong settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from scrapy_rep.protocol.verdict import Reason, Verdict


class RobotsTxtDisallowed(IgnoreRequest):
    """A request was dropped because of robots.txt; ``verdict`` tells why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {explain(self.verdict)}"

    @property
    def reason(self) -> Reason:
        """Why: see :class:`~scrapy_rep.protocol.verdict.Reason`."""
        return self.verdict.reason


class CrawlClosingError(Exception):
    """The crawl closed before it was known what robots.txt says."""


class SettingsError(ValueError):
    """A setting with a value that it doesn't take; stops the crawl at its start."""


def explain(verdict: Verdict) -> str:
    """Return a verdict in words: the rule, its line and its file, or the state of the origin."""
    where = verdict.robotstxt_url
    if verdict.rule is not None:
        return f"{verdict.rule} (line {verdict.line} of {where or 'robots.txt'})"
    return verdict.reason.value if where is None else f"{verdict.reason.value} ({where})"
