"""The rows of a report, which are written as JSON. Times are strings, ISO 8601 in UTC."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scrapy_rep.protocol.usage import LICENSE, Usage


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


@dataclass(slots=True)
class RequestsRow:
    """A number of requests, and some of their URLs; ``Counts`` fills it."""

    common: dict[str, Any] = field(default_factory=dict)
    """What the requests have in common, such as the rule that dropped them."""
    requests: int = 0
    urls: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {**self.common, "requests": self.requests, "urls": self.urls}


@dataclass
class UsageCounts:
    """Numbers of pages by their usage preferences, and by the results for declared purposes."""

    results: Counter[tuple[str, str]] = field(default_factory=Counter)
    statements: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Number of pages by source, label and value of a statement."""
    refused: int = 0

    def add(self, usage: Usage, results: Mapping[str, str], refused: bool) -> None:
        """Count a page: each of its statements and ``results`` once. A receiver of the signal."""
        self.results.update(results.items())
        self.refused += refused
        # Their number is limited: labels that are not known have no name.
        said = {(s.source, s.label, s.value) for s in usage.statements if s.source != LICENSE}
        self.statements.update(said)

    def as_dict(self) -> dict[str, Any]:
        return {
            "refused": self.refused,
            "results": _rows(self.results, "purpose", "result"),
            "statements": _rows(self.statements, "source", "label", "value"),
        }


def _rows(counts: Counter[Any], *names: str) -> list[dict[str, Any]]:
    return [
        {**dict(zip(names, key, strict=True)), "pages": pages}
        for key, pages in counts.most_common()
    ]
