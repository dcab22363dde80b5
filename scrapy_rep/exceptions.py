"""Exceptions for errbacks, for callers of ``Robots`` and for invalid settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.usage.statement import TDMREP_JSON
from scrapy_rep.protocol.usage.tdmrep import TDMREP_PATH
from scrapy_rep.utils.text import moment, printable, short, without_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_rep.protocol.usage.statement import Statement
    from scrapy_rep.protocol.usage.usage import Usage
    from scrapy_rep.protocol.verdict import Reason, Verdict


class RobotsTxtDisallowed(IgnoreRequest):
    """Raised when a request is dropped because of robots.txt; ``verdict`` has the reason.

    If a download handler has followed a redirect itself, as browsers do, or another middleware has
    changed the URL of the response, and the response is dropped, ``redirected_to`` is the URL that
    the verdict is about. Otherwise it is None.
    """

    def __init__(self, verdict: Verdict, redirected_to: str | None = None) -> None:
        super().__init__(verdict)
        self.verdict = verdict
        self.redirected_to = redirected_to

    def __str__(self) -> str:
        why = f"{message_start(self.verdict)}: {describe(self.verdict)}"
        if self.redirected_to is None:
            return why
        return f"{why}, of {printable(without_credentials(self.redirected_to))} after a redirect"

    @property
    def reason(self) -> Reason:
        """The reason of the verdict: a :class:`~scrapy_rep.protocol.verdict.Reason`."""
        return self.verdict.reason


class RobotsUsageDisallowed(RobotsTxtDisallowed):
    """Raised when a request is dropped because of a usage preference.

    ``usage`` has the statements, ``results`` the results by declared purpose.
    """

    def __init__(self, verdict: Verdict, usage: Usage, results: Mapping[str, str]) -> None:
        super().__init__(verdict)
        self.usage = usage
        self.results: dict[str, str] = dict(results)

    def __str__(self) -> str:
        return f"Forbidden by {describe_usage(self.verdict, self.usage, self.results)}"


class CrawlClosingError(Exception):
    """Raised by Robots when the crawl closes before robots.txt is known."""


class SettingsError(ValueError):
    """A setting has an invalid value. Raised when the crawl starts, and stops it."""


def message_start(verdict: Verdict) -> str:
    """Return the beginning of a message about a dropped request."""
    return "Dropped" if verdict.rule is None else "Forbidden by robots.txt"


def describe(verdict: Verdict) -> str:
    """Return a verdict in words: the rule (cut if long), its line and file; or the reason."""
    where = verdict.robotstxt_url
    if verdict.rule is not None:
        return f"{short(str(verdict.rule))} (line {verdict.line} of {where or 'robots.txt'})"
    words = verdict.reason.value
    if verdict.outage is not None:
        words = f"robots.txt is {words}: {verdict.outage.cause}"
        if verdict.outage.next_try < math.inf:
            words += f", next try at {moment(verdict.outage.next_try)}"
    return words if where is None else f"{words} ({where})"


def describe_usage(verdict: Verdict, usage: Usage, results: Mapping[str, str]) -> str:
    """Return a verdict about use in words: the file of the statements, and the results."""
    where, _, in_words = decided_by(verdict, usage, results)
    return f"usage preferences in {where}: {in_words}"


def decided_by(
    verdict: Verdict, usage: Usage, results: Mapping[str, str]
) -> tuple[str, Statement | None, str]:
    """Return the URL of the deciding file, the statement in it, and the results in words."""
    where, statement = verdict.robotstxt_url or "robots.txt", usage.first_disallowing(results)
    if statement is not None and statement.place == TDMREP_JSON:
        where = where.removesuffix(ROBOTSTXT) + TDMREP_PATH
    in_words = ", ".join(f"{purpose}: {result}" for purpose, result in results.items())
    return where, statement, in_words
