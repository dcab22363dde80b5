"""How URLs, times and sites' texts are shown: nothing secret, nothing that steers a terminal."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request


def without_credentials(url: str) -> str:
    """Return a URL without what stands before an ``@`` in its authority."""
    scheme, slashes, rest = url.partition("://")
    authority = rest[: min((i for i in map(rest.find, "/?#") if i >= 0), default=len(rest))]
    return f"{scheme}{slashes}{rest[authority.rfind('@') + 1 :]}"


def show(request: Request) -> str:
    """Return a request for a log line."""
    return f"<{request.method} {ascii(without_credentials(request.url))[1:-1]}>"


def printable(text: str) -> str:
    """Return a site's text with what can't be seen, or turns the line around, as escapes."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def moment(seconds: float) -> str:
    """Return a time, in UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "the end of time"
