"""Every number of the protocol: its value, its unit and where it comes from."""

from __future__ import annotations

from typing import Final

MAX_SIZE: Final = 512_000
"""Bytes of a robots.txt that count (RFC 9309 §2.5: at least 500 KiB; Google: 500 KiB)."""

MAX_REDIRECTS: Final = 5
"""Redirects followed (RFC 9309 §2.3.1.2: at least five, across hosts too)."""

CACHE_TTL: Final = 86_400.0
"""Seconds that an answer without max-age is used (RFC 9309 §2.4: at most 24 hours)."""

CACHE_TTL_MIN: Final = 600.0
"""Seconds that any answer is used, however short its max-age (ours: a max-age of 0 would
mean a robots.txt request before every page)."""

CACHE_TTL_MAX: Final = 86_400.0
"""Seconds that any answer is used at most, however long its max-age (RFC 9309 §2.4)."""

UNREACHABLE_STALE_AFTER: Final = 2_592_000.0
"""Seconds of being unreachable after which the last good copy is used (Google: 30 days)."""

UNREACHABLE_ALLOW_AFTER: Final = 2_592_000.0
"""Seconds of being unreachable after which, without a copy, all is allowed
(RFC 9309 §2.3.1.4: "a reasonably long period of time (for example, 30 days)")."""

RETRY_DELAY: Final = 10.0
"""Seconds to the first retry of an unreachable robots.txt (ours)."""

RETRY_DELAY_MAX: Final = 3_600.0
"""Seconds between retries at most (ours)."""
