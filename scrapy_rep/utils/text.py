"""URLs, numbers and texts of sites for logs: without credentials and control characters."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

MAX_SHOWN: Final = 200
"""Largest length of a rule, or another text of a site, in a log line or report."""
_CREDENTIALS: Final = re.compile(r"^([^:/?#@]*:[/\\]*)[^/?#]*@")


def without_credentials(url: str) -> str:
    """Return a URL without the userinfo in its authority.

    Any number of slashes may come before it, as Scrapy accepts any number.
    """
    return _CREDENTIALS.sub(r"\1", url) if "@" in url else url


def show(request: Request) -> str:
    """Return a request for a log line."""
    return f"<{request.method} {ascii(without_credentials(request.url))[1:-1]}>"


def show_page(response: Response | None) -> str:
    """Return the URL of a page for a log line."""
    return ascii(None if response is None else without_credentials(response.url))


def printable(text: str) -> str:
    """Return a text with escapes for all characters that are not printable."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def short(text: str, width: int = MAX_SHOWN) -> str:
    """Return ``text``, shortened to ``width`` characters with an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun, which gets an s unless the number is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def moment(seconds: float) -> str:
    """Return a time, in UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "the end of time"
