"""URLs, numbers and texts of sites for messages: without credentials and control characters."""

import re
from datetime import datetime, timezone
from typing import Final

from scrapy import Request

MAX_SHOWN: Final = 200
"""Maximum number of characters of a rule or another text of a site, in log lines and reports."""
_UNITS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
_CREDENTIALS: Final = re.compile(r"^(?!(?i:mailto):)([^:/?#@]*:[/\\]*)[^/?#]*@")


def without_credentials(url: str) -> str:
    """Return ``url`` without user and password; any number of slashes may precede its authority."""
    return _CREDENTIALS.sub(r"\1", url) if "@" in url else url


def printable_request(request: Request) -> str:
    """Return the method and URL of a request for a log line, without credentials, in ASCII."""
    return f"<{request.method} {ascii(without_credentials(request.url))[1:-1]}>"


def printable(text: str) -> str:
    """Return ``text`` with escapes for characters that are invisible or change the direction."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def short(text: str, width: int = MAX_SHOWN) -> str:
    """Return ``text``, cut to ``width`` characters. A text that was cut ends with an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def counted(number: int, noun: str) -> str:
    """Return ``number`` and ``noun``, with an ``s`` if the number is not 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe_duration(seconds: float) -> str:
    """Return approximately how long a duration is: ``3 hours``; ``9 s`` below 2 minutes."""
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def utc_time_text(seconds: float) -> str:
    """Return seconds since the epoch as date and time in UTC, or ``the end of time``."""
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "the end of time"
