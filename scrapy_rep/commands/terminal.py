"""What commands print: for people, with colours on a terminal alone."""

from __future__ import annotations

import os
import sys
from typing import Final

from scrapy_rep.protocol.origin import origin_of

FINE: Final = 0
FOUND: Final = 1
"""Exit status: disallowed, findings, or nothing there of what was asked for."""
UNKNOWN: Final = 2
"""Exit status: nobody can tell, or the command was not understood."""

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
_WIDTH: Final = 30
"""Characters of a bar."""
_UNITS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


def coloured(kind: str, text: str) -> str:
    """Return ``text`` in the colour of ``kind``, where standard output is a terminal."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m"


def section(title: str, lines: list[str]) -> list[str]:
    """Return a heading and the lines below it."""
    return [coloured("heading", title), *(f"  {line}" for line in lines)]


def with_scheme(text: str) -> str:
    """Return a hint for who left out the scheme, to be put behind a message; else nothing."""
    try:
        origin = origin_of(f"https://{text}")
    except ValueError:
        return ""
    # A word without a dot is hardly a host, nor is the name of a file one.
    if "@" in text or "." not in origin.host or text.endswith(".txt"):
        return ""
    authority = str(origin).partition("://")[2]
    return f"; did you mean https://{authority} or http://{authority}?"


class Progress:
    """How many of several sites have answered, in the last line of a terminal."""

    def __init__(self, total: int = 0) -> None:
        """Take how many there are; 0 where ``at`` will tell."""
        # One answer needs none; what is no terminal keeps its lines.
        self._shows = total != 1 and sys.stderr.isatty()
        self._total = total
        self._done = 0
        self._draw()

    def clear(self) -> None:
        """Take the line away, as another is to be printed."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")

    def step(self) -> None:
        """Tell that another has answered."""
        self._done += 1
        self._draw()

    def at(self, done: int, total: int) -> None:
        """Tell how many have answered, of so many."""
        self.clear()
        self._done, self._total = done, total
        self._draw()

    def _draw(self) -> None:
        if self._shows and self._done < self._total:
            done = self._done * _WIDTH // self._total
            bar = f"{'#' * done}{'.' * (_WIDTH - done)}"
            sys.stderr.write(f"\r[{bar}] {self._done} of {self._total}")
            sys.stderr.flush()


def ago(seconds: float) -> str:
    """Return how long ago something was, roughly."""
    return "just now" if seconds < 1 else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    """Return a length of time, roughly."""
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
