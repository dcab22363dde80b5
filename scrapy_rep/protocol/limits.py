"""Every number of the protocol, with its unit and its source."""

from __future__ import annotations

from typing import Final

MAX_BODY_BYTES: Final = 512_000
"""Bytes of robots.txt that count, 500 KiB; what follows is ignored (RFC 9309 §2.5, SPEC F-13)."""

MAX_LINE_BYTES: Final = 16_664
"""Bytes of a line that count, eight times the 2,083 of the longest URL in old browsers (Google)."""

MAX_HOST_LENGTH: Final = 255
"""Characters of a host name, the longest name of the DNS (RFC 1035 §2.3.4)."""

MAX_PORT: Final = 65_535
"""The highest port (RFC 9293 §3.1)."""

ORIGIN_CACHE_SIZE: Final = 1_024
"""Entries of the cache of origins by URL prefix (ours)."""

ORIGIN_CACHE_KEY_LENGTH: Final = 300
"""Characters of the longest URL prefix that is kept in that cache (ours)."""
