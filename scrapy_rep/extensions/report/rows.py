"""The rows of a report: plain values, as they are in JSON. Times are ISO 8601, in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from scrapy_rep.exceptions import decided_by
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.utils.text import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy_rep.protocol.verdict import Verdict

T = TypeVar("T")


class DecidedBy(NamedTuple):
    """What decided a verdict; long texts are cut."""

    robotstxt_url: str | None
    """The file with the rule, or with the usage preference."""
    rule: str | None
    """The rule, or the usage preference with its source."""
    line: int | None
    cause: str | None
    """Why the origin was unreachable, or the results of the usage preferences."""

    @classmethod
    def from_verdict(cls, verdict: Verdict, usage: Mapping[str, Any] | None = None) -> DecidedBy:
        """Return what decided ``verdict``; ``usage`` is the judgement in the request's meta."""
        url, rule, line = verdict.robotstxt_url, verdict.rule and str(verdict.rule), verdict.line
        cause = verdict.outage and verdict.outage.cause
        if verdict.reason is Reason.USAGE and usage is not None:
            url, statement, cause = decided_by(verdict, Usage.from_dict(usage), usage["results"])
            rule = statement and f"{statement.source}: {statement.raw}"
            line = statement and statement.line
        return cls(url, rule and short(rule), line, cause and short(cause))


@dataclass(slots=True)
class DelayRow:
    """The delay that an origin asks for, in seconds."""

    asked: float
    taken: float | None
    """The delay that is kept."""
    field: str
    line: int


@dataclass(slots=True)
class OriginRow:
    """The row of an origin."""

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
    """When the text with the valid rules was fetched; None if there is none."""
    sha256: str | None = None
    """SHA-256 of the text."""
    size: int = 0
    """Size of the text in bytes, else of the last response."""
    truncated: bool = False
    allowed: int = 0
    dropped: int = 0
    would_drop: int = 0
    """Requests that a dry run has sent."""
    unreachable_cause: str | None = None
    """DecidedBy of the last outage."""
    unreachable_since: str | None = None
    unreachable_until: str | None = None
    """When it was reachable again; None if it isn't yet."""
    crawl_delay: DelayRow | None = None
    back_offs: int = 0
    """Number of pauses after 429 or 503."""
    back_off_seconds: float = 0.0
    """Total seconds of these pauses."""


@dataclass(slots=True)
class DropRow:
    """The row of a cause of drops: a rule, or the state of an origin."""

    robotstxt_url: str | None
    reason: str
    rule: str | None
    """The rule or the usage preference; a long one is cut."""
    line: int | None
    dropped: bool = True
    """False for requests that a dry run has sent."""
    sha256: str | None = None
    """SHA-256 of the text with the line."""
    cause: str | None = None
    """DecidedBy of the outage, or results of the usage preferences, if that is the reason."""
    requests: int = 0
    urls: list[str] = field(default_factory=list)
    """A sample of the URLs."""


@dataclass(slots=True)
class OverrideRow:
    """The row of an override that was used."""

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
    """The row of a request on which the built-in decides differently."""

    url: str
    allowed: bool
    reason: str
    rule: str | None
    line: int | None


def read_rows(cls: type[T], rows: Iterable[dict[str, Any]]) -> list[T]:
    """Return the rows of an earlier report. Raises TypeError if a value doesn't fit."""
    types = _types_of(cls)
    found = []
    for row in rows:
        if (delay := row.get("crawl_delay")) is not None:
            row["crawl_delay"] = read_rows(DelayRow, [delay])[0]
        for name, value in row.items():
            check_type(value, *types.get(name, ()))
        found.append(cls(**row))
    return found


def check_type(value: object, *types: type) -> None:
    """Raise TypeError if ``value``, which comes from an earlier report, has none of ``types``."""
    if not isinstance(value, types):
        raise TypeError(f"{value!a:.100} is not {' or '.join(each.__name__ for each in types)}")


def _types_of(cls: type) -> dict[str, tuple[type, ...]]:
    """Return the types of the fields of a row, without those of their elements."""
    types = {}
    for name, hint in get_type_hints(cls).items():
        members = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        types[name] = tuple(get_origin(each) or each for each in members)
        if float in types[name]:
            types[name] += (int,)
    return types
