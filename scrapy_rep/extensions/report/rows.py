"""The rows of a report: plain values, as they are in JSON. Times are ISO 8601, in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_rep.exceptions import decided_by
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.utils.text import short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_rep.protocol.verdict import Verdict


class Why(NamedTuple):
    """What a verdict comes of, as rows tell it: long texts are cut."""

    robotstxt_url: str | None
    """Of a statement about use, the file that has it."""
    rule: str | None
    """The rule, or the statement."""
    line: int | None
    cause: str | None
    """Why the origin was unreachable, or what is said about use comes to."""

    @classmethod
    def from_verdict(cls, verdict: Verdict, usage: Mapping[str, Any] | None = None) -> Why:
        """Take a verdict, and what is noted of the use of its page."""
        url, rule, line = verdict.robotstxt_url, verdict.rule and str(verdict.rule), verdict.line
        cause = verdict.outage and verdict.outage.cause
        if verdict.reason is Reason.USAGE and usage is not None:
            url, said, cause = decided_by(verdict, Usage.from_dict(usage), usage["results"])
            rule = said and f"{said.source}: {said.raw}"
            line = said and said.line
        return cls(url, rule and short(rule), line, cause and short(cause))


@dataclass(slots=True)
class OriginRow:
    """One origin."""

    origin: str
    outcome: str = "not asked for"
    status: int | None = None
    error: str | None = None
    hops: int = 0
    asked: str | None = None
    """When the last fetch of its robots.txt ended."""
    fetches: int = 0
    changes: int = 0
    fetched: str | None = None
    """When the text was fetched whose rules hold; None where there is none."""
    sha256: str | None = None
    """Of that text."""
    size: int = 0
    """Bytes of it; where there is none, of the last answer."""
    truncated: bool = False
    allowed: int = 0
    dropped: int = 0
    would_drop: int = 0
    """Requests that a dry run has sent."""
    unreachable_cause: str | None = None
    """Why it was unreachable, the last time that it was."""
    unreachable_since: str | None = None
    unreachable_until: str | None = None
    """When it was reached again; None where it never was."""
    crawl_delay: dict[str, Any] | None = None
    """What it asks to be left between two requests: ``asked`` and ``taken``, in seconds, the
    ``field`` and its ``line``."""
    back_offs: int = 0
    """How many times it was left alone after 429 or 503."""
    back_off_seconds: float = 0.0
    """For how long, all times together."""


@dataclass(slots=True)
class DropRow:
    """What dropped requests: a rule, or the state of an origin."""

    robotstxt_url: str | None
    reason: str
    rule: str | None
    """Or a statement about use. Cut where it is long."""
    line: int | None
    dropped: bool = True
    """False for requests that a dry run has sent."""
    sha256: str | None = None
    """Of the text that the line is of."""
    cause: str | None = None
    """Why its origin was unreachable, or what is said about use comes to, if that is the reason."""
    requests: int = 0
    urls: list[str] = field(default_factory=list)
    """A sample of them."""


@dataclass(slots=True)
class OverrideRow:
    """One override that was used."""

    host: str
    policy: str
    reason: str
    until: str | None
    requests: int = 0
    urls: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SampleRow:
    """Requests that have something in common."""

    requests: int = 0
    urls: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DiffersRow:
    """A request on which the built-in decides otherwise."""

    url: str
    allowed: bool
    reason: str
    rule: str | None
    line: int | None
