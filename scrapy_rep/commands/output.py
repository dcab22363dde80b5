"""What the commands return and show: exit status, colours, progress on a terminal, records."""

import math
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from time import time
from typing import Any, Final

from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import UNKNOWN_RULES, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.utils.text import counted, describe_duration, printable, utc_time_text


class Exit(IntEnum):
    """The exit status of a command."""

    OK = 0
    NO = 1
    UNKNOWN = 2


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
_WORDS: Final = {Exit.OK: "allowed", Exit.NO: "disallowed", Exit.UNKNOWN: "can't tell"}
_CLEAR: Final = "\r\x1b[K"
_WIDTH: Final = 30
_STEPS: Final = 1_000


def exit_status_of(verdict: Verdict | ValueError) -> Exit:
    """Return the exit status for a verdict, or for the error of a URL without a verdict."""
    if isinstance(verdict, ValueError) or verdict.reason in UNKNOWN_RULES:
        return Exit.UNKNOWN
    return Exit.OK if verdict.allowed else Exit.NO


def word_of(status: Exit, width: int = 0) -> str:
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


class RecordView:
    """Shows a record as values for JSON, as one line of text or as several lines."""

    def __init__(self, record: Record, options: Options) -> None:
        self._record = record
        self._evidence = record.last.evidence
        self._now = time()
        self._end = options.policy.access(record, self._now).end
        self._is_due = options.policy.is_due(record, self._now)
        self._was_asked = "fetched" if record.unreachable_since is None else "tried"
        self._age = describe_age(self._now - self._evidence.at)
        self.outcome: str = record.last.kind.value

    def as_dict(self) -> dict[str, Any]:
        """Return the values: times in seconds since the epoch, None for no time."""
        return {
            "outcome": self.outcome,
            "status": self._evidence.status,
            "error": self._evidence.error,
            "hops": list(self._evidence.hops),
            "size": self._evidence.size,
            "truncated": self._evidence.truncated,
            "at": self._evidence.at,
            "until": None if self._end == math.inf else self._end,
            "unreachable_since": self._record.unreachable_since,
            "unreachable_for": self._record.unreachable_for,
            "next_try": self._record.next_try,
        }

    def summary(self) -> str:
        """Return how the last fetch ended, as one line, without the word for the outcome."""
        parts = [printable(self._evidence.summary)]
        if self._record.copy is not None:
            parts.append(counted(len(self._record.copy.body), "byte"))
        parts.append(f"{self._was_asked} {self._age}")
        if self._is_due:
            parts.append("fetched again by the next crawl")
        elif self._end < math.inf:
            what = "valid for" if self._record.unreachable_since is None else "next try in"
            parts.append(f"{what} {describe_duration(self._end - self._now)}")
        return ", ".join(parts)

    def details(self, source: str) -> list[str]:
        """Return lines: outcome, ``source``, and when the file is fetched again."""
        record, evidence = self._record, self._evidence
        where = printable(record.origin.robotstxt_url)
        asked = f"{utc_time_text(evidence.at)}, {self._age} ({source})"
        lines = [
            f"{where}: {self.outcome} ({printable(evidence.summary)})",
            *(f"redirected to {printable(hop)}" for hop in evidence.hops),
            f"{counted(evidence.size, 'byte')}{', truncated' if evidence.truncated else ''}",
            f"{self._was_asked} at {asked}",
        ]
        if record.unreachable_since is None:
            valid = "was valid" if self._is_due else "valid"
            return [*lines, f"{valid} until {utc_time_text(self._end)}"]
        since = utc_time_text(record.unreachable_since)
        lines.append(f"unreachable since {since}, tries: {record.tries}")
        if record.next_try is not None:
            lines.append(f"next try not before {utc_time_text(record.next_try)}")
        return lines
