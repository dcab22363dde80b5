"""Output of the commands: exit status, colours and progress on a terminal."""

from __future__ import annotations

import os
import sys
from typing import Final

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.utils.text import describe_duration

EXIT_OK: Final = 0
"""Exit status if a URL is allowed, if there are no findings, or if the command succeeded."""
EXIT_NO: Final = 1
"""Exit status if a URL is disallowed, if there are findings, or if nothing is stored."""
EXIT_UNKNOWN: Final = 2
"""Exit status if the result is unknown, or if the usage is wrong."""

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


def coloured(kind: str, text: str) -> str:
    """Return ``text`` in the colour of ``kind``, or unchanged if no terminal shows the output."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m"


def section(title: str, lines: list[str]) -> list[str]:
    """Return a heading and the lines below it."""
    return [coloured("heading", title), *(f"  {line}" for line in lines)]


def scheme_hint(text: str) -> str:
    """Return a hint for a message if ``text`` may be a URL without its scheme; else an empty text.

    The hint suggests the URL with a scheme.
    """
    try:
        origin = origin_of(f"https://{text}")
    except ValueError:
        return ""
    # A word without a dot, or the name of a text file, is probably not a host.
    if "@" in text or "." not in origin.host or text.endswith(".txt"):
        return ""
    authority = str(origin).partition("://")[2]
    return f"; did you mean https://{authority} or http://{authority}?"


class Progress:
    """A progress bar in the last line of the terminal, on standard error."""

    def __init__(self, total: int = 0) -> None:
        """``total`` is the number of steps; 0 if it is not known before ``update`` is called."""
        # There is no bar for a single step, and if standard error is not a terminal.
        self._shows = total != 1 and sys.stderr.isatty()
        self._total = total
        self._done = 0
        self._draw()

    def clear(self) -> None:
        """Remove the bar from the terminal. Called before another line is printed."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")

    def step(self) -> None:
        """Count one more step that is done."""
        self._done += 1
        self._draw()

    def update(self, done: int, total: int) -> None:
        """Set the number of steps that are done, and the number of all steps."""
        self.clear()
        self._done, self._total = done, total
        self._draw()

    def _draw(self) -> None:
        if self._shows and self._done < self._total:
            done = self._done * _WIDTH // self._total
            bar = f"{'#' * done}{'.' * (_WIDTH - done)}"
            sys.stderr.write(f"\r[{bar}] {self._done} of {self._total}")
            sys.stderr.flush()


def describe_age(seconds: float) -> str:
    """Return in words approximately how long ago an event was, such as ``3 hours ago``."""
    return "just now" if seconds < 1 else f"{describe_duration(seconds)} ago"
