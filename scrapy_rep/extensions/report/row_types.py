"""The rows of a report, which are written as JSON. Times are strings, ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scrapy_rep.exceptions import usage_decision_of
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.text import short


class DecidedBy(NamedTuple):
    """What decided a verdict: a rule, a usage preference, or the state of the origin.

    Long texts are cut.
    """

    robotstxt_url: str | None
    """The URL of the file with the rule or the usage preference."""
    rule: str | None
    """The rule, or the usage preference with its source; None if neither decided."""
    line: int | None
    """The number of the line in the file with the rule or the usage preference."""
    cause: str | None
    """Why robots.txt was unreachable, or the results of the usage preferences by purpose; None if
    neither decided."""

    @classmethod
    def from_verdict(cls, verdict: Verdict, usage: Mapping[str, Any] | None = None) -> DecidedBy:
        """Return what decided ``verdict``.

        ``usage`` is the judgement about usage preferences in the meta of the request.
        """
        url, rule, line = verdict.robotstxt_url, verdict.rule and str(verdict.rule), verdict.line
        cause = verdict.outage and verdict.outage.cause
        if verdict.reason is Reason.USAGE and usage is not None:
            url, statement, cause = usage_decision_of(
                verdict, Usage.from_dict(usage), usage["results"]
            )
            rule = statement and f"{statement.source}: {statement.raw}"
            line = statement and statement.line
        return cls(url, rule and short(rule), line, cause and short(cause))


@dataclass(slots=True)
class DelayRow:
    """The delay between requests in the robots.txt of an origin. Times are in seconds."""

    asked: float
    """The delay in robots.txt."""
    taken: float | None
    """The delay of the download slot, within the limits of the settings; None if DOWNLOAD_SLOTS
    has a delay for the slot, which is used instead."""
    field: str
    """The field of robots.txt, such as ``Crawl-delay: 5``."""
    line: int


@dataclass(slots=True)
class OriginRow:
    """The row of an origin: its robots.txt, and the numbers of its requests."""

    origin: str
    outcome: str = "not asked for"
    status: int | None = None
    error: str | None = None
    hops: int = 0
    asked: str | None = None
    """When the last fetch of robots.txt ended."""
    fetches: int = 0
    changes: int = 0
    """Number of fetches after which the text of robots.txt differed from the former text."""
    fetched: str | None = None
    """When the text with the valid rules was fetched; None if no rules are valid."""
    sha256: str | None = None
    """SHA-256 of the text with the valid rules."""
    size: int = 0
    """Size of the text in bytes; without a text, of the last response."""
    truncated: bool = False
    allowed: int = 0
    dropped: int = 0
    would_drop: int = 0
    """Number of requests that were sent only because of a dry run."""
    unreachable_cause: str | None = None
    """The cause of the last outage."""
    unreachable_since: str | None = None
    """When the last outage began."""
    unreachable_until: str | None = None
    """When the last outage ended; None if it has not ended."""
    crawl_delay: DelayRow | None = None
    back_offs: int = 0
    """Number of pauses after 429 or 503."""
    back_off_seconds: float = 0.0
    """Total duration of the pauses after 429 or 503, in seconds."""
    refused: int = 0
    """Number of responses with which the site refused requests that robots.txt allows."""
    refusal: str | None = None
    """The status of the last of these responses, and the headers that say why."""


@dataclass(slots=True)
class DropRow:
    """The row of a cause of drops: a rule, a usage preference, or the state of robots.txt."""

    robotstxt_url: str | None
    reason: str
    rule: str | None
    """The rule or the usage preference, cut if it is long; None if neither decided."""
    line: int | None
    dropped: bool = True
    """False if the requests were sent only because of a dry run."""
    sha256: str | None = None
    """SHA-256 of the text to which ``line`` refers."""
    cause: str | None = None
    """Why robots.txt was unreachable, or the results of the usage preferences; None if neither
    decided."""
    requests: int = 0
    urls: list[str] = field(default_factory=list)
    """A sample of the URLs."""


@dataclass(slots=True)
class OverrideRow:
    """The row of an entry of REP_OVERRIDES that decided on requests."""

    host: str
    policy: str
    reason: str
    until: str | None
    requests: int = 0
    urls: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RequestsRow:
    """A number of requests with a sample of their URLs."""

    requests: int = 0
    urls: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DiffersRow:
    """The row of a request on which Scrapy's built-in middleware decides differently."""

    url: str
    allowed: bool
    reason: str
    rule: str | None
    line: int | None
