"""Cache-Control, Age and Retry-After: how long an answer may be used, and when to ask again."""

from __future__ import annotations

from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Final

_MAX_DIGITS: Final = 10
"""Digits of delta-seconds; more is beyond 2**31, which RFC 9111 §1.2.2 takes for 'very long'."""
_FOREVER: Final = 2**31


def delta_seconds(value: str) -> int | None:
    """Return a count of seconds as HTTP spells it, or None (RFC 9111 §1.2.2)."""
    value = value.strip()
    if not (value.isascii() and value.isdigit()):
        return None
    return int(value) if len(value) <= _MAX_DIGITS else _FOREVER


def max_age(cache_control: str | None) -> int | None:
    """Return the seconds that Cache-Control gives an answer, or None where it says nothing.

    ``no-cache`` and ``no-store`` count as 0. Of two ``max-age`` the shorter counts, and one that
    is no number counts as 0 (RFC 9111 §4.2.1: such a response is stale).
    """
    if not cache_control:
        return None
    ages = []
    for directive in cache_control.split(","):
        name, equals, value = directive.partition("=")
        name = name.strip().lower()
        if name == "max-age" and equals:
            ages.append(delta_seconds(value.strip().strip('"')) or 0)
        elif name in {"no-cache", "no-store"}:
            ages.append(0)
    return min(ages, default=None)


def fresh_for(
    cache_control: str | None, age: str | None, *, ttl: float, ttl_min: float, ttl_max: float
) -> float:
    """Return for how many seconds an answer may be used from when it was received.

    ``ttl`` is its life without max-age; ``ttl_min`` and ``ttl_max`` bound what max-age says, and
    nothing lives longer than ``ttl_max`` (SPEC F-11, RFC 9309 §2.4). Time spent in caches on the
    way is taken off (RFC 9111 §4.2.3).
    """
    lifetime = max_age(cache_control)
    if lifetime is None:
        return min(ttl, ttl_max)
    return max(ttl_min, min(ttl_max, lifetime - (delta_seconds(age or "") or 0)))


def retry_after(value: str | None, now: float) -> float | None:
    """Return in how many seconds, from ``now``, Retry-After asks to come back (RFC 9110 §10.2.3).

    None where it says nothing that can be read; 0 for a date that has passed.
    """
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
