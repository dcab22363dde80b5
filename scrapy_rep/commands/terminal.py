"""Output of the commands: exit status, colours and progress on a terminal."""

from __future__ import annotations

import os
import sys
from typing import Final

from scrapy_rep.protocol.origin import origin_of

EXIT_OK: Final = 0
"""Exit status: allowed, no findings, or done."""
EXIT_NO: Final = 1
"""Exit status: disallowed, findings, or nothing found."""
EXIT_UNKNOWN: Final = 2
"""Exit status: unknown, or wrong usage."""

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
"""Width of the progress bar in characters."""
_UNITS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


def coloured(kind: str, text: str) -> str:
    """Return ``text`` in the colour of ``kind`` if standard output is a terminal."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m"


def section(title: str, lines: list[str]) -> list[str]:
    """Return a heading and the lines below it."""
    return [coloured("heading", title), *(f"  {line}" for line in lines)]


def with_scheme(text: str) -> str:
    """Return a hint to append to a message if the scheme of a URL is missing, else ''."""
    try:
        origin = origin_of(f"https://{text}")
    except ValueError:
        return ""
    # A word without a dot, or the name of a file, is probably not a host.
    if "@" in text or "." not in origin.host or text.endswith(".txt"):
        return ""
    authority = str(origin).partition("://")[2]
    return f"; did you mean https://{authority} or http://{authority}?"


class Progress:
    """A progress bar in the last line of a terminal."""

    def __init__(self, total: int = 0) -> None:
        """``total`` is the number of steps; 0 if ``update`` sets it."""
        # Not for a single step, and not if the output is no terminal.
        self._shows = total != 1 and sys.stderr.isatty()
        self._total = total
        self._done = 0
        self._draw()

    def clear(self) -> None:
        """Remove the bar, before another line is printed."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")

    def step(self) -> None:
        """Count a step."""
        self._done += 1
        self._draw()

    def update(self, done: int, total: int) -> None:
        """Set the number of steps that are done, and their total."""
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
    """Return roughly how long ago something was, in words."""
    return "just now" if seconds < 1 else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    """Return roughly a duration, in words."""
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
