"""Exceptions that errbacks and callers of ``Robots`` get, and texts about dropped requests."""

import math
from collections.abc import Mapping

from scrapy import exceptions
from scrapy.exceptions import IgnoreRequest
from twisted.internet.error import DNSLookupError

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import DNS_ERROR
from scrapy_rep.protocol.usage import Usage
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.text import printable, short, utc_time_text, without_credentials


class RobotsTxtDisallowed(IgnoreRequest):
    """Raised when a request is dropped because of robots.txt. ``verdict`` has the reason.

    If a response is dropped because of its URL, ``redirected_to`` is that URL, and ``verdict`` is
    about it. This happens if the download handler has followed a redirect itself, as browsers do,
    or if another middleware has changed the URL. Otherwise ``redirected_to`` is None.
    """

    def __init__(self, verdict: Verdict, redirected_to: str | None = None) -> None:
        super().__init__(verdict)
        self.verdict = verdict
        self.redirected_to = redirected_to

    def __str__(self) -> str:
        why = f"{message_prefix(self.verdict)}: {describe(self.verdict)}"
        if self.redirected_to is None:
            return why
        return f"{why}, of {printable(without_credentials(self.redirected_to))} after a redirect"

    @property
    def reason(self) -> Reason:
        """The reason of the verdict: a :class:`~scrapy_rep.protocol.verdict.Reason`."""
        return self.verdict.reason


class RobotsUsageDisallowed(RobotsTxtDisallowed):
    """Raised when a request is dropped because of a usage preference.

    ``usage`` has the statements of the site, ``results`` the result for each declared purpose.
    """

    def __init__(self, verdict: Verdict, usage: Usage, results: Mapping[str, str]) -> None:
        super().__init__(verdict)
        self.usage = usage
        self.results: dict[str, str] = dict(results)

    def __str__(self) -> str:
        return f"Forbidden by {describe_usage(self.verdict, self.results)}"


class CrawlClosingError(Exception):
    """Raised, for example by ``Robots``, if a crawl closes before a robots.txt is known."""


class SettingsError(ValueError):
    """Raised when a crawl starts if a setting has an invalid value. The crawl is stopped."""


def dns_error_of(verdict: Verdict, origin: Origin | None) -> Exception | None:
    """Return Scrapy's error of an ``origin`` whose name can't be resolved, or None."""
    if origin is None or verdict.outage is None or verdict.outage.cause != DNS_ERROR:
        return None
    # The verdict may come from a store. Scrapy before 2.15 raises the error of Twisted.
    error_class = getattr(exceptions, "CannotResolveHostError", DNSLookupError)
    error: Exception = error_class(f"{DNS_ERROR}: {origin.host}")
    return error


def message_prefix(verdict: Verdict) -> str:
    """Return the first words of a message about a request that ``verdict`` drops."""
    return "Dropped" if verdict.rule is None else "Forbidden by robots.txt"


def describe(verdict: Verdict) -> str:
    """Return a verdict as text: the rule (cut if long), its line and file; or the reason."""
    where = verdict.robotstxt_url
    if verdict.rule is not None:
        return f"{short(str(verdict.rule))} (line {verdict.line} of {where or 'robots.txt'})"
    words = verdict.reason.value
    if verdict.outage is not None:
        words = f"robots.txt is {words}: {verdict.outage.cause}"
        if verdict.outage.next_try < math.inf:
            words += f", next try at {utc_time_text(verdict.outage.next_try)}"
    return words if where is None else f"{words} ({where})"


def describe_usage(verdict: Verdict, results: Mapping[str, str]) -> str:
    """Return a verdict by usage preferences as text: the file with them, and the results."""
    where = verdict.robotstxt_url or "robots.txt"
    return f"usage preferences in {where}: {describe_results(results)}"


def describe_results(results: Mapping[str, str]) -> str:
    """Return the results of usage preferences by purpose as text."""
    return ", ".join(f"{purpose}: {result}" for purpose, result in results.items())
