"""The result of a crawl by origin, as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason

if TYPE_CHECKING:
    from scrapy_rep.protocol.outcome import Outcome
    from scrapy_rep.protocol.verdict import Verdict

WORDS = {
    Reason.UNREACHABLE: "robots.txt is unreachable",
    Reason.CLOSING: "the crawl closed before robots.txt was known",
    Reason.ERROR: "an error while obeying robots.txt, see the log",
}


def in_words(verdict: Verdict) -> str:
    """Return why a request was dropped."""
    if verdict.rule is not None:
        return f"{verdict.rule} (line {verdict.line})"
    return WORDS.get(verdict.reason, verdict.reason.value)


def as_label(text: str) -> str:
    """Return the words of a link as a terminal can show them, in one short line."""
    return "".join(filter(str.isprintable, " ".join(text.split())))[:40]


@dataclass
class Row:
    """What came of one origin."""

    name: str = ""
    robots: list[str] = field(default_factory=list)
    fetched: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


class Report:
    """Rows by origin, in the order in which the origins were first met."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def row(self, url: str) -> Row:
        """Return the row of the origin of ``url``."""
        return self._rows.setdefault(str(origin_of(url)), Row())

    def __str__(self) -> str:
        cells = [("origin", "what it is", "fetched", "dropped", "result of robots.txt; reasons")]
        for origin, row in self._rows.items():
            notes = list(row.robots) or ["not asked for"]
            notes += [f"dropped {count}: {why}" for why, count in row.dropped.items()]
            notes += [f"failed {count}: {why}" for why, count in row.failed.items()]
            numbers = str(row.fetched), str(row.dropped.total())
            cells.append((origin, row.name, *numbers, notes[0]))
            cells += [("", "", "", "", note) for note in notes[1:]]
        widths = [max(len(line[column]) for line in cells) for column in range(4)]
        return "\n".join(
            f"{origin:{widths[0]}}  {name:{widths[1]}}  {fetched:>{widths[2]}}"
            f"  {dropped:>{widths[3]}}  {note}".rstrip()
            for origin, name, fetched, dropped, note in cells
        )


def came_to(outcome: Outcome) -> str:
    """Return how a fetch of robots.txt ended."""
    evidence = outcome.evidence
    kind = type(outcome).__name__.lower()
    what = evidence.summary
    if kind == "unreachable":
        return f"{kind}: {what}"
    hops = f", redirects: {len(evidence.hops)}" if evidence.hops else ""
    return f"{kind}: {what}, {evidence.size} bytes{hops}"
