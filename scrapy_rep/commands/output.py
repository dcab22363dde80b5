"""What the commands return and show: exit status, colours, progress on a terminal, records."""

import math
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.utils.text import counted, describe_duration, printable, utc_time_text

EXIT_OK: Final = 0
EXIT_NO: Final = 1
EXIT_UNKNOWN: Final = 2

_COLOURS: Final = {
    "allowed": 32,
    "available": 32,
    "disallowed": 31,
    "can't tell": 33,
    "unreachable": 33,
    "finding": 33,
    "heading": 1,
    "unavailable": 0,
}
_WORDS: Final = {EXIT_OK: "allowed", EXIT_NO: "disallowed", EXIT_UNKNOWN: "can't tell"}
_UNKNOWN_REASONS: Final = {Reason.UNREACHABLE, Reason.ERROR}
_CLEAR: Final = "\r\x1b[K"
_WIDTH: Final = 30
_STEPS: Final = 1_000


def exit_status_of(verdict: Verdict | ValueError) -> int:
    """Return the exit status for a verdict, or for the error of a URL without a verdict."""
    if isinstance(verdict, ValueError) or verdict.reason in _UNKNOWN_REASONS:
        return EXIT_UNKNOWN
    return EXIT_OK if verdict.allowed else EXIT_NO


def word_of(status: int, width: int = 0) -> str:
    """Return the word for a verdict with this exit status, in colour, ``width`` characters wide."""
    return coloured(_WORDS[status], f"{_WORDS[status]:{width}}")


def coloured(kind: str, text: str) -> str:
    """Return ``text`` in the colour of ``kind``; unchanged without a terminal, or with NO_COLOR."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m"


def section(title: str, lines: list[str]) -> list[str]:
    """Return a heading and the lines below it, which are indented."""
    return [coloured("heading", title), *(f"  {line}" for line in lines)]


class Progress:
    """A bar in the last line of the terminal, on standard error."""

    def __init__(self, total: int) -> None:
        self._shows = sys.stderr.isatty()
        self._total = total
        self.update(0)

    def clear(self) -> None:
        """Remove the line from the terminal. Called before another line is printed."""
        if self._shows:
            sys.stderr.write(_CLEAR)

    def update(self, done: int) -> None:
        """Show, not more often than _STEPS times, how many are ``done``; if all are, clear."""
        if done == self._total:
            self.clear()
        elif self._shows and done * _STEPS // self._total > (done - 1) * _STEPS // self._total:
            bar = "#" * (done * _WIDTH // self._total)
            sys.stderr.write(f"{_CLEAR}[{bar:.<{_WIDTH}}] {done:,} of {self._total:,}")
            sys.stderr.flush()


def describe_tokens(tokens: Sequence[str]) -> str:
    """Return product tokens as text; ``*`` for none, as only groups of ``*`` apply then."""
    return ", ".join(map(printable, tokens)) or "*"


def describe_age(seconds: float) -> str:
    """Return in words approximately how long ago an event was, such as ``3 hours ago``."""
    return "just now" if seconds < 1 else f"{describe_duration(seconds)} ago"


def record_as_dict(record: Record, options: Options, now: float) -> dict[str, Any]:
    """Return a record as values for JSON: times in seconds since the epoch, None for no time."""
    evidence, end = record.last.evidence, options.policy.access(record, now).end
    return {
        "outcome": record.last.kind.value,
        "status": evidence.status,
        "error": evidence.error,
        "hops": list(evidence.hops),
        "size": evidence.size,
        "truncated": evidence.truncated,
        "at": evidence.at,
        "until": None if end == math.inf else end,
        "unreachable_since": record.unreachable_since,
        "unreachable_for": record.unreachable_for,
        "next_try": record.next_try,
    }


def record_summary(record: Record, options: Options, now: float) -> str:
    """Return how the last fetch ended, as one line of text, without the word for the outcome."""
    evidence, since = record.last.evidence, record.unreachable_since
    parts = [printable(evidence.summary)]
    if record.copy is not None:
        parts.append(counted(len(record.copy.body), "byte"))
    parts.append(f"{'fetched' if since is None else 'tried'} {describe_age(now - evidence.at)}")
    left = options.policy.access(record, now).end - now
    if options.policy.is_due(record, now):
        parts.append("fetched again by the next crawl")
    elif left < math.inf:
        parts.append(f"{'valid for' if since is None else 'next try in'} {describe_duration(left)}")
    return ", ".join(parts)


def record_details(record: Record, options: Options, now: float, source: str) -> list[str]:
    """Return lines about a record: outcome, ``source``, and when the file is fetched again."""
    evidence = record.last.evidence
    outcome = f"{record.last.kind.value} ({printable(evidence.summary)})"
    lines = [f"{printable(record.origin.robotstxt_url)}: {outcome}"]
    lines += [f"redirected to {printable(hop)}" for hop in evidence.hops]
    cut = ", truncated" if evidence.truncated else ""
    lines.append(f"{counted(evidence.size, 'byte')}{cut}")
    asked = f"{utc_time_text(evidence.at)}, {describe_age(now - evidence.at)} ({source})"
    lines.append(f"{'fetched' if record.unreachable_since is None else 'tried'} at {asked}")
    end = options.policy.access(record, now).end
    if record.unreachable_since is None:
        due = options.policy.is_due(record, now)
        lines.append(f"{'was valid' if due else 'valid'} until {utc_time_text(end)}")
        return lines
    lines.append(
        f"unreachable since {utc_time_text(record.unreachable_since)}, tries: {record.tries}"
    )
    if record.next_try is not None:
        lines.append(f"next try not before {utc_time_text(record.next_try)}")
    return lines
