"""The counts of a report by origin, by rule and by other keys. The number of rows is limited."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from time import time
from typing import Any, Final

from scrapy import Request
from scrapy import signals as scrapy_signals

from scrapy_rep import signals
from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.usage import stored_judgement
from scrapy_rep.exceptions import describe_results
from scrapy_rep.extensions.output_files import iso_time
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.usage import LICENSE, Usage
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.text import short, without_credentials

MAX_ORIGINS: Final = 100_000
"""Maximum number of origins with a row. Further origins are counted in one common row."""
MAX_DROPS: Final = 10_000
"""Maximum number of rules and other causes of drops with a row. Further ones are counted in one
common row for each reason."""
MAX_URL: Final = 500
SAMPLE: Final = 10
"""Maximum number of URLs in a row."""
MAX_TEXT: Final = 64 * 1024
"""Maximum size of a text in bytes. Longer texts are cut."""
MAX_TEXTS: Final = 2 * 1024**2
"""Maximum total size of all texts in bytes. Above it, the least recently used are removed."""
_BEYOND: Final = "(further origins)"
_OF_DROP: Final = ("robotstxt_url", "reason", "rule", "line", "dropped")
_ENDS: Final = ("allowed", "dropped", "would_drop")
"""What became of a request. One that would be dropped was sent because of a dry run."""


@dataclass(slots=True)
class OriginRow:
    """The row of an origin: its robots.txt, and the numbers of its requests."""

    origin: str
    # How the last fetch of robots.txt ended.
    outcome: str = "not asked for"
    status: int | None = None
    error: str | None = None
    hops: int = 0
    asked: str | None = None
    fetches: int = 0
    # The text with the valid rules. Without a text, the size is that of the last response.
    fetched: str | None = None
    sha256: str | None = None
    size: int = 0
    truncated: bool = False
    # Numbers of requests. Those that would be dropped were sent because of a dry run.
    allowed: int = 0
    dropped: int = 0
    would_drop: int = 0
    # The last outage; if ``unreachable_until`` is None, it has not ended.
    unreachable_cause: str | None = None
    unreachable_since: str | None = None
    unreachable_until: str | None = None
    crawl_delay: dict[str, Any] | None = None
    """The delay in robots.txt (``asked``) and that of the download slot (``taken``, None if
    DOWNLOAD_SLOTS has one), in seconds, and the ``field`` of robots.txt with its ``line``."""
    # Number and seconds of pauses after 429 or 503.
    back_offs: int = 0
    back_off_seconds: float = 0.0
    # Requests that robots.txt allows and the site refused: their number, and why the last one.
    refused: int = 0
    refusal: str | None = None


class Counts:
    """The counts of a crawl. Its methods that count are receivers of signals."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.origins: dict[str, OriginRow] = {}
        self.reasons: dict[str, Counter[str]] = {name: Counter() for name in _ENDS}
        """The numbers of requests by the reason of the verdict, for each of _ENDS."""
        self.drops: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.usage_refused = 0
        self.usage_results: Counter[tuple[str, str]] = Counter()
        """Numbers of pages by purpose and result."""
        self.usage_statements: Counter[tuple[str, str, str]] = Counter()
        """Numbers of pages by source, label and value of a statement."""
        self._texts: BoundedCache[str, tuple[bytes, int]] = BoundedCache(
            max_entries=MAX_ENTRIES, max_bytes=MAX_TEXTS
        )
        """Texts of robots.txt files, with the number of bytes that were cut, by SHA-256 in hex."""
        self._overrides: dict[str, dict[str, Any]] = {}
        self.exempt = _requests_row()

    def receivers(self) -> list[tuple[Callable[..., None], object]]:
        return [
            (self.count_verdict, signals.robotstxt_verdict),
            (self.count_forbidden, signals.robotstxt_forbidden),
            (self.count_fetched, signals.robotstxt_fetched),
            (self.count_refused, signals.robotstxt_refused),
            (self.count_usage, signals.robotstxt_usage),
            (self.count_exempt, scrapy_signals.request_reached_downloader),
        ]

    def row(self, origin: str) -> OriginRow:
        """Return the row of an origin, new or not; above MAX_ORIGINS, the common row."""
        origin = short(origin, MAX_URL)
        if origin not in self.origins and len(self.origins) >= MAX_ORIGINS:
            origin = _BEYOND
        return self.origins.setdefault(origin, OriginRow(origin))

    def count_verdict(self, request: Request, verdict: Verdict, decision: Decision) -> None:
        """Count the override, and an allowed request; ``count_forbidden`` counts the others."""
        if (override := decision.override) is not None:
            new = _requests_row(**override.as_dict())
            _count_request(self._overrides.setdefault(override.host, new), request.url)
        if verdict.allowed and decision.origin is not None:
            self.row(str(decision.origin)).allowed += 1
            self.reasons["allowed"][verdict.reason.value] += 1

    def count_forbidden(self, request: Request, verdict: Verdict, dropped: bool) -> None:
        """Count a request that is dropped, or would be without the dry run."""
        url, rule, line, cause = _what_decided(request, verdict)
        row, reason = self.row(_origin_text(request.url)), verdict.reason.value
        row.dropped += dropped
        row.would_drop += not dropped
        self.reasons["dropped" if dropped else "would_drop"][reason] += 1
        if verdict.outage is not None:
            _set_unreachable(row, verdict.outage.cause, verdict.outage.since)
        key = url and short(url, MAX_URL), reason, rule, line, dropped
        if key not in self.drops and len(self.drops) >= MAX_DROPS:
            key = _BEYOND, reason, None, None, dropped
        common = {**dict(zip(_OF_DROP, key, strict=True)), "sha256": None, "cause": None}
        drop = self.drops.setdefault(key, _requests_row(**common))
        if line is not None:
            self._texts.get(row.sha256 or "")  # is not the least recently used any more
            drop["sha256"] = row.sha256
        drop["cause"] = cause
        _count_request(drop, request.url)

    def count_fetched(self, record: Record, stored: bool) -> None:
        """Set the state of robots.txt in the row of its origin, keep its text, count a fetch."""
        row, last = self.row(str(record.origin)), record.last
        row.fetches += not stored
        evidence, copy = last.evidence, self._policy.access(record, time()).copy
        row.outcome, row.status = last.kind.value, evidence.status
        row.error = evidence.error and short(evidence.error)
        row.asked = iso_time(evidence.at)
        row.size, row.fetched, row.sha256 = evidence.size, None, None
        if copy is not None:
            evidence = copy.evidence
            row.size, row.fetched = len(copy.body), iso_time(evidence.at)
            row.sha256 = self.add_text(copy.body)
        row.hops, row.truncated = len(evidence.hops), evidence.truncated
        if record.unreachable_since is not None:
            _set_unreachable(row, last.evidence.summary, record.unreachable_since)
        elif row.unreachable_since is not None and row.unreachable_until is None:
            row.unreachable_until = row.asked

    def add_text(self, body: bytes) -> str:
        """Keep the first MAX_TEXT bytes of ``body``; return the SHA-256 of all of it in hex."""
        name = sha256(body).hexdigest()
        if self._texts.get(name) is None:
            text = body[:MAX_TEXT]
            self._texts.put(name, (text, len(body) - len(text)), len(text))
        return name

    def add_hosts(self, hosts: Hosts) -> None:
        for origin, (delay, taken) in hosts.delays.reported.items():
            self.row(str(origin)).crawl_delay = {
                "asked": delay.seconds,
                "taken": taken,
                "field": short(f"{delay.field.name}: {delay.field.value}"),
                "line": delay.field.line,
            }
        for origin, (times, seconds) in hosts.pauses.reported.items():
            row = self.row(str(origin))
            row.back_offs, row.back_off_seconds = times, seconds

    def count_refused(self, origin: Origin, cause: str) -> None:
        row = self.row(str(origin))
        row.refused, row.refusal = row.refused + 1, cause

    def count_usage(self, usage: Usage, results: Mapping[str, str], refused: bool) -> None:
        """Count a page: each of its statements and ``results`` once."""
        self.usage_refused += refused
        self.usage_results.update(results.items())
        # Their number is limited: labels that are not known have no name.
        said = {(s.source, s.label, s.value) for s in usage.statements if s.source != LICENSE}
        self.usage_statements.update(said)

    def count_exempt(self, request: Request) -> None:
        if request.meta.get("dont_obey_robotstxt") and TRANSFER_KEY not in request.meta:
            _count_request(self.exempt, request.url)

    def as_dict(self) -> dict[str, Any]:
        """Return all counts: unreachable origins first, then by drops; rules by drops."""

        def place(row: OriginRow) -> tuple[bool, int, str]:
            return row.outcome != "unreachable", -row.dropped - row.would_drop, row.origin

        return {
            "reasons": {name: dict(counts) for name, counts in self.reasons.items()},
            "origins": [asdict(row) for row in sorted(self.origins.values(), key=place)],
            "drops": sorted(self.drops.values(), key=lambda row: -row["requests"]),
            "overrides": list(self._overrides.values()),
            "exempt": self.exempt,
            "usage": {
                "refused": self.usage_refused,
                "results": _rows(self.usage_results, "purpose", "result"),
                "statements": _rows(self.usage_statements, "source", "label", "value"),
            },
            "texts": {
                name: {"text": text.decode("utf-8", "backslashreplace"), "left_out": left_out}
                for name, (text, left_out) in self._texts.items()
            },
        }


def _requests_row(**common: Any) -> dict[str, Any]:
    """Return a row of requests with what they have in common, as the rule that dropped them."""
    return {**common, "requests": 0, "urls": []}


def _count_request(row: dict[str, Any], url: str) -> None:
    row["requests"] += 1
    url = short(without_credentials(url), MAX_URL)
    if len(row["urls"]) < SAMPLE and url not in row["urls"]:
        row["urls"].append(url)


def _set_unreachable(row: OriginRow, cause: str, since: float) -> None:
    row.outcome = "unreachable"
    row.unreachable_cause, row.unreachable_since = short(cause), iso_time(since)
    row.unreachable_until = None


def _what_decided(
    request: Request, verdict: Verdict
) -> tuple[str | None, str | None, int | None, str | None]:
    """Return file, rule, line and cause; for usage the preference, and the results as cause."""
    url, rule, line = verdict.robotstxt_url, verdict.rule and str(verdict.rule), verdict.line
    cause = verdict.outage and verdict.outage.cause
    if verdict.reason is Reason.USAGE and (values := stored_judgement(request)) is not None:
        usage, results = Usage.from_dict(values), values["results"]
        url, cause = verdict.robotstxt_url or "robots.txt", describe_results(results)
        statement = usage.first_disallowing(results)
        rule = statement and f"{statement.source}: {statement.raw}"
        line = statement and statement.line
    return url, rule and short(rule), line, cause and short(cause)


def _origin_text(url: str) -> str:
    """Return the origin of ``url``, or ``(no origin)``."""
    try:
        return str(origin_of(url))
    except ValueError:
        return "(no origin)"


def _rows(counts: Counter[Any], *names: str) -> list[dict[str, Any]]:
    return [
        {**dict(zip(names, key, strict=True)), "pages": pages}
        for key, pages in counts.most_common()
    ]
