"""What the commands return and show: exit status, colours, and progress on a terminal."""

import math
import os
import sys
from collections.abc import Sequence
from time import monotonic
from typing import Final

from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.text import describe_duration, printable

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
_UNKNOWN_REASONS: Final = {Reason.UNREACHABLE, Reason.ERROR, Reason.CLOSING}
_CLEAR: Final = "\r\x1b[K"
_WIDTH: Final = 30
_INTERVAL: Final = 0.1


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
        self._drawn = -math.inf
        self.update(0)

    def clear(self) -> None:
        """Remove the line from the terminal. Called before another line is printed."""
        if self._shows:
            sys.stderr.write(_CLEAR)
            self._drawn = -math.inf

    def update(self, done: int) -> None:
        """Show, not more often than every _INTERVAL, how many are ``done``; if all are, clear."""
        if done == self._total:
            self.clear()
        elif self._shows and monotonic() - self._drawn >= _INTERVAL:
            self._drawn = monotonic()
            bar = "#" * (done * _WIDTH // self._total)
            sys.stderr.write(f"{_CLEAR}[{bar:.<{_WIDTH}}] {done:,} of {self._total:,}")
            sys.stderr.flush()


def describe_tokens(tokens: Sequence[str]) -> str:
    """Return product tokens as text; ``*`` for none, as only groups of ``*`` apply then."""
    return ", ".join(map(printable, tokens)) or "*"


def describe_age(seconds: float) -> str:
    """Return in words approximately how long ago an event was, such as ``3 hours ago``."""
    return "just now" if seconds < 1 else f"{describe_duration(seconds)} ago"
