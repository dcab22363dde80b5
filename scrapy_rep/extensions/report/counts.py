"""The counts of a report by origin, by rule and by other keys. The number of rows is limited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Final

from scrapy_rep.extensions.report.row_types import (
    DecidedBy,
    DiffersRow,
    DropRow,
    OriginRow,
    OverrideRow,
    RequestsRow,
)
from scrapy_rep.extensions.report.usage_counts import UsageCounts
from scrapy_rep.extensions.robots_file import RobotsFile, iso_time
from scrapy_rep.protocol.outcome import Unreachable
from scrapy_rep.protocol.policy import Access
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.text import short, without_credentials

Noted = Mapping[str, Any] | None

MAX_ORIGINS: Final = 100_000
"""Maximum number of origins with a row. Further origins are counted in one common row."""
MAX_DROPS: Final = 10_000
"""Maximum number of rules and other causes of drops with a row. Further ones are counted in one
common row for each reason."""
MAX_DIFFERING: Final = 200
"""Maximum number of listed requests on which Scrapy's built-in middleware decides differently."""
MAX_URL: Final = 500
"""Maximum length of a URL in characters. Longer URLs are cut."""
SAMPLE: Final = 10
"""Maximum number of URLs in the sample of a row; 1 after MAX_URLS URLs in all rows."""
MAX_URLS: Final = 20_000
"""Number of URLs in all samples after which a new row gets only one URL."""
MAX_TEXT: Final = 64 * 1024
"""Maximum size of a text in bytes. Longer texts are cut."""
MAX_TEXTS: Final = 4 * 1024**2
"""Maximum total size of all texts in bytes. Above it, the least recently used are removed."""
_MAX_COUNT: Final = 10_000
_BEYOND: Final = "(further origins)"


class Texts:
    """The texts of robots.txt files, by their SHA-256."""

    def __init__(self) -> None:
        self._texts: BoundedCache[str, tuple[bytes, int]] = BoundedCache(
            max_entries=_MAX_COUNT, max_bytes=MAX_TEXTS
        )

    def add(self, body: bytes) -> str:
        """Add the text ``body``; return its SHA-256 in hex."""
        name = sha256(body).hexdigest()
        if self._texts.get(name) is None:
            text = body[:MAX_TEXT]
            self._texts.put(name, (text, len(body) - len(text)), len(text))
        return name

    def mark_used(self, name: str | None) -> None:
        """Mark the text with the hash ``name`` as used, as a request was dropped by its rule."""
        if name is not None:
            self._texts.get(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the texts by hash, each with the number of bytes that were cut."""
        return {
            name: {"text": text.decode("utf-8", "backslashreplace"), "left_out": left_out}
            for name, (text, left_out) in zip(self._texts, self._texts.values(), strict=True)
        }


@dataclass
class Counts:
    """The counts of a crawl."""

    origins: dict[str, OriginRow] = field(default_factory=dict)
    allowed: Counter[str] = field(default_factory=Counter)
    """Number of requests that were allowed, by the reason of the verdict."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Number of requests that were dropped, by the reason of the verdict."""
    would_drop: Counter[str] = field(default_factory=Counter)
    """Number of requests that were sent only because of a dry run, by the reason of the verdict."""
    drops: dict[tuple[Any, ...], DropRow] = field(default_factory=dict)
    overrides: dict[str, OverrideRow] = field(default_factory=dict)
    exempt: RequestsRow = field(default_factory=RequestsRow)
    """Requests with ``dont_obey_robotstxt`` that were sent."""
    differing: int = 0
    """Number of requests in a dry run on which Scrapy's built-in middleware decides differently."""
    differing_urls: list[DiffersRow] = field(default_factory=list)
    usage: UsageCounts = field(default_factory=UsageCounts)
    texts: Texts = field(default_factory=Texts)
    urls: int = 0
    """Number of URLs in all samples."""

    def row(self, origin: str) -> OriginRow:
        """Return the row of an origin; above MAX_ORIGINS, the common row of further origins."""
        origin = short(origin, MAX_URL)
        row = self.origins.get(origin)
        if row is None:
            if len(self.origins) >= MAX_ORIGINS:
                origin = _BEYOND
            row = self.origins.setdefault(origin, OriginRow(origin))
        return row

    def count_lookup(self, record: Record, access: Access) -> OriginRow:
        """Count a lookup of robots.txt, which ended with ``record``; return the row of its origin.

        ``access`` is what may be fetched according to ``record``.
        """
        row = self.row(str(record.file.origin))
        file, last = RobotsFile.from_record(record, access), record.last
        row.outcome, row.status = file.outcome, file.status
        row.error = None if file.error is None else short(file.error)
        row.hops, row.truncated, row.size = len(file.hops), file.truncated, file.size
        row.asked = iso_time(file.asked)
        row.fetched = None if file.fetched is None else iso_time(file.fetched)
        row.sha256 = None if file.body is None else self.texts.add(file.body)
        if isinstance(last, Unreachable) and record.unreachable_since is not None:
            self._set_unreachable(row, last.evidence.summary, record.unreachable_since)
        elif row.unreachable_since is not None and row.unreachable_until is None:
            row.unreachable_until = row.asked
        return row

    @staticmethod
    def _set_unreachable(row: OriginRow, cause: str, since: float) -> None:
        row.outcome = "unreachable"
        row.unreachable_cause, row.unreachable_since = short(cause), iso_time(since)
        row.unreachable_until = None

    def count_allowed(self, origin: str, verdict: Verdict) -> None:
        self.row(origin).allowed += 1
        self.allowed[verdict.reason.value] += 1

    def count_forbidden(
        self, url: str, origin: str, verdict: Verdict, usage: Noted = None, *, dropped: bool = True
    ) -> OriginRow:
        """Count a disallowed request; return the row of its origin.

        ``dropped`` is false if the request was sent nevertheless, because of a dry run. ``usage``
        is the judgement about usage preferences in the meta of the request.
        """
        decided = DecidedBy.from_verdict(verdict, usage)
        row = self.row(origin)
        row.dropped += dropped
        row.would_drop += not dropped
        (self.dropped if dropped else self.would_drop)[verdict.reason.value] += 1
        if verdict.outage is not None:
            self._set_unreachable(row, verdict.outage.cause, verdict.outage.since)
        drop = self._drop_row(verdict.reason.value, decided, dropped=dropped)
        if decided.line is not None:
            self.texts.mark_used(row.sha256)
            drop.sha256 = row.sha256
        drop.cause = decided.cause
        self.count_request(drop, url)
        return row

    def _drop_row(self, reason: str, decided: DecidedBy, *, dropped: bool) -> DropRow:
        url = decided.robotstxt_url
        key = (
            None if url is None else short(url, MAX_URL),
            reason,
            decided.rule,
            decided.line,
            dropped,
        )
        if key not in self.drops and len(self.drops) >= MAX_DROPS:
            key = _BEYOND, reason, None, None, dropped
        return self.drops.setdefault(key, DropRow(*key))

    def count_request(self, row: DropRow | OverrideRow | RequestsRow, url: str) -> None:
        """Count a request, and add its URL to the sample of ``row`` unless that is full."""
        row.requests += 1
        if len(row.urls) >= (SAMPLE if self.urls < MAX_URLS else 1):
            return
        url = short(without_credentials(url), MAX_URL)
        if url not in row.urls:
            row.urls.append(url)
            self.urls += 1

    def count_differing(self, url: str, verdict: Verdict, usage: Noted = None) -> None:
        self.differing += 1
        if len(self.differing_urls) < MAX_DIFFERING:
            url = short(without_credentials(url), MAX_URL)
            decided = DecidedBy.from_verdict(verdict, usage)
            row = DiffersRow(url, verdict.allowed, verdict.reason.value, decided.rule, decided.line)
            self.differing_urls.append(row)

    def as_dict(self) -> dict[str, Any]:
        """Return all counts as plain values.

        Unreachable origins come first, then those with most drops; rules are sorted by drops.
        """
        origins = sorted(
            self.origins.values(),
            key=lambda row: (
                row.outcome != "unreachable",
                -row.dropped - row.would_drop,
                row.origin,
            ),
        )
        drops = sorted(self.drops.values(), key=lambda row: -row.requests)
        return {
            "reasons": {
                "allowed": dict(self.allowed),
                "dropped": dict(self.dropped),
                "would_drop": dict(self.would_drop),
            },
            "origins": [asdict(row) for row in origins],
            "drops": [asdict(row) for row in drops],
            "overrides": [asdict(row) for row in self.overrides.values()],
            "exempt": asdict(self.exempt),
            "differing": {
                "requests": self.differing,
                "urls": [asdict(row) for row in self.differing_urls],
            },
            "usage": self.usage.as_dict(),
            "texts": self.texts.as_dict(),
        }
