"""Cache-Control, Age and Retry-After: how long a response may be used, and when to retry."""

from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Final

_MAX_DIGITS: Final = 10
"""Maximum number of digits of delta-seconds; a longer number counts as 2**31 (RFC 9111 §1.2.2)."""


def delta_seconds(value: str) -> int | None:
    """Return the seconds in a header (RFC 9111 §1.2.2), 2**31 if above ten digits; else None."""
    value = value.strip()
    if not (value.isascii() and value.isdigit()):
        return None
    return int(value) if len(value) <= _MAX_DIGITS else 2**31


def max_age(cache_control: str | None) -> int | None:
    """Return the max-age of Cache-Control in seconds; None if there is none.

    ``no-cache`` and ``no-store`` count as 0. Of several values the lowest is used. An invalid
    ``max-age`` counts as 0 (RFC 9111 §4.2.1: such a response is stale).
    """
    ages = []
    for directive in (cache_control or "").split(","):
        name, equals, value = directive.partition("=")
        name = name.strip().lower()
        if name == "max-age" and equals:
            ages.append(delta_seconds(value.strip().strip('"')) or 0)
        elif name in {"no-cache", "no-store"}:
            ages.append(0)
    return min(ages, default=None)


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds from ``now`` to Retry-After (RFC 9110 §10.2.3), 0 if past; else None."""
    if not value:
        return None
    seconds = delta_seconds(value)
    if seconds is not None:
        return float(seconds)
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=timezone.utc)
        return max(0.0, date.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
