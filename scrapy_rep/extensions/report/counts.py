"""What a report is made of: counts by origin and by rule, bounded, as the crawl goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from scrapy_rep.protocol.outcome import Available, Unreachable
from scrapy_rep.utils.text import short

if TYPE_CHECKING:
    from scrapy_rep.overrides import Override
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.protocol.verdict import Verdict

MAX_ORIGINS: Final = 100_000
"""Origins, and rules, that are told apart; those that come on top are counted together."""
_BEYOND: Final = "(further origins)"


@dataclass
class OriginRow:
    """One origin."""

    origin: str
    outcome: str = "not asked for"
    status: int | None = None
    error: str | None = None
    hops: int = 0
    size: int = 0
    truncated: bool = False
    sha256: str | None = None
    """Of the robots.txt whose rules hold, as it was read."""
    fetched_at: float | None = None
    fetches: int = 0
    changes: int = 0
    dropped: int = 0
    unreachable_since: float | None = None
    unreachable_until: float | None = None
    """When it was reached again; None where it never was."""


@dataclass
class OverrideRow:
    """One override that was used."""

    host: str
    policy: str
    reason: str
    until: str | None
    requests: int = 0


@dataclass
class Collected:
    """All counts of a crawl."""

    origins: dict[str, OriginRow] = field(default_factory=dict)
    rules: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Requests dropped, by URL of the robots.txt, rule, cut where it is long, and line."""
    reasons: Counter[str] = field(default_factory=Counter)
    overrides: dict[str, OverrideRow] = field(default_factory=dict)
    differing: int = 0

    def row(self, origin: str) -> OriginRow:
        """Return the row of an origin, or the common one of those beyond the bound."""
        row = self.origins.get(origin)
        if row is None:
            if len(self.origins) >= MAX_ORIGINS:
                origin = _BEYOND
            row = self.origins.setdefault(origin, OriginRow(origin))
        return row

    def learned(self, record: Record, *, fetched: bool) -> OriginRow:
        """Note what a look-up came to."""
        row = self.row(record.origin)
        evidence = record.last.evidence
        row.outcome = type(record.last).__name__.lower()
        row.status, row.error = evidence.status, evidence.error
        row.hops, row.size, row.truncated = len(evidence.hops), evidence.size, evidence.truncated
        row.fetched_at = evidence.at
        row.fetches += fetched
        body = None if record.copy is None else record.copy.body
        row.sha256 = None if body is None else sha256(body).hexdigest()
        if isinstance(record.last, Unreachable):
            row.unreachable_since = row.unreachable_since or record.unreachable_since
            row.unreachable_until = None
        elif row.unreachable_since is not None and row.unreachable_until is None:
            row.unreachable_until = evidence.at
        if isinstance(record.last, Available):
            row.size = len(record.last.body)
        return row

    def forbidden(self, origin: str, verdict: Verdict) -> OriginRow:
        """Note that a request was dropped."""
        row = self.row(origin)
        row.dropped += 1
        self.reasons[verdict.reason.value] += 1
        if verdict.rule is not None:
            key = verdict.robotstxt_url or "", short(str(verdict.rule)), verdict.rule.line
            if key not in self.rules and len(self.rules) >= MAX_ORIGINS:
                key = "", "(further rules)", 0
            self.rules[key] += 1
        return row

    def overridden(self, override: Override) -> OverrideRow:
        """Note that an override decided."""
        key = override.host
        row = self.overrides.get(key)
        if row is None:
            row = self.overrides[key] = OverrideRow(
                override.host, override.policy, override.reason, override.until_text
            )
        row.requests += 1
        return row

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "origins": [asdict(row) for row in self.origins.values()],
            "rules": [
                {"robotstxt_url": url, "rule": rule, "line": line, "dropped": count}
                for (url, rule, line), count in self.rules.most_common()
            ],
            "reasons": dict(self.reasons),
            "overrides": [asdict(row) for row in self.overrides.values()],
        }
