"""How URLs, numbers and sites' texts are shown: nothing secret, nothing that steers a terminal."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

MAX_SHOWN: Final = 200
"""Characters of a rule, or of another text that a site writes, in a log line or a report."""
_CREDENTIALS: Final = re.compile(r"^([^:/?#@]*:[/\\]*)[^/?#]*@")


def without_credentials(url: str) -> str:
    """Return a URL without what stands before an ``@`` in its authority.

    Whatever the number of slashes before that: Scrapy takes each.
    """
    return _CREDENTIALS.sub(r"\1", url) if "@" in url else url


def show(request: Request) -> str:
    """Return a request for a log line."""
    return f"<{request.method} {ascii(without_credentials(request.url))[1:-1]}>"


def show_page(response: Response | None) -> str:
    """Return the URL of a page for a log line."""
    return ascii(None if response is None else without_credentials(response.url))


def printable(text: str) -> str:
    """Return a site's text with what can't be seen, or turns the line around, as escapes."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def short(text: str, width: int = MAX_SHOWN) -> str:
    """Return ``text`` in at most so many characters, the last an ellipsis where it was longer."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def moment(seconds: float) -> str:
    """Return a time, in UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "the end of time"
