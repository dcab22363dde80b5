"""Limits and defaults: every number of the protocol, with its unit and its source."""

from __future__ import annotations

from typing import Final

MAX_BODY_BYTES: Final = 512_000
"""Bytes of robots.txt that count, 500 KiB; what follows is ignored (RFC 9309 §2.5, SPEC F-13)."""

MAX_LINE_BYTES: Final = 16_663
"""Bytes of a line that count: 8 times the 2,083 of the longest URL in old browsers, less the end
of the string (Google)."""

MAX_EFFORT: Final = 50_000
"""Steps of about a microsecond that an answer about all forms of a URL may take (ours: real URLs
and real rules take some hundred at most)."""

MAX_LINT_LINES: Final = 50_000
"""Lines of a file that lint shows, a second's work at most (ours: 500 KiB of real rules have half
as many)."""

MAX_HOST_LENGTH: Final = 255
"""Characters of a host name, the longest name of the DNS (RFC 1035 §2.3.4)."""

MAX_PORT: Final = 65_535
"""The highest port (RFC 9293 §3.1)."""

ORIGIN_CACHE_SIZE: Final = 1_024
"""Entries of the cache of origins by URL prefix (ours)."""

ORIGIN_CACHE_KEY_LENGTH: Final = 300
"""Characters of the longest URL prefix that is kept in that cache (ours)."""

MAX_REDIRECTS: Final = 5
"""Redirects followed (RFC 9309 §2.3.1.2: at least five, across hosts too)."""

CACHE_TTL: Final = 86_400.0
"""Seconds that an answer without max-age is used (RFC 9309 §2.4: at most 24 hours)."""

CACHE_TTL_MIN: Final = 600.0
"""Seconds that any answer is used, however short its max-age (ours: a max-age of 0 would mean a
robots.txt request before every page)."""

CACHE_TTL_MAX: Final = 86_400.0
"""Seconds that any answer is used at most, however long its max-age (RFC 9309 §2.4)."""

UNREACHABLE_STALE_AFTER: Final = 2_592_000.0
"""Seconds of being unreachable after which the last good copy is used (Google: 30 days)."""

UNREACHABLE_ALLOW_AFTER: Final = 2_592_000.0
"""Seconds of being unreachable after which, without a copy, all is allowed
(RFC 9309 §2.3.1.4: "a reasonably long period of time (for example, 30 days)")."""

UNREACHABLE_GAP_MAX: Final = 604_800.0
"""Seconds between two tries that count as being unreachable at most (ours: 7 days; a clock set
wrong, or two tries a year apart, tell little of the time between)."""

RETRY_DELAY: Final = 10.0
"""Seconds to the first retry of an unreachable robots.txt (ours)."""

RETRY_DELAY_MAX: Final = 3_600.0
"""Seconds between retries at most (ours)."""

MAX_CRAWL_DELAY: Final = 86_400.0
"""Seconds of the longest Crawl-delay that is taken for one: more than a day is a mistake (ours)."""

MAX_DELAY_DIGITS: Final = 10
"""Digits of a number in Crawl-delay and Request-rate, on each side of its point (ours)."""

MAX_META_ELEMENTS: Final = 20_000
"""``meta`` elements of a page that are looked at (ours: long lists with microdata have some
thousands)."""

MAX_TAG_TEXT: Final = 8_192
"""Characters of the robots tags for one crawler, on one page and in its headers, that are read
(ours: real ones have tens)."""

MAX_USAGE_BYTES: Final = 32_768
"""Bytes of the lines about use that are read for one crawler; with more, all that they speak of is
taken to be disallowed (ours)."""

MAX_USAGE_RAW: Final = 500
"""Characters of a statement about use that are kept as written (ours)."""

MAX_USAGE_URIS: Final = 16
"""URIs of licenses and policies that are told of a page (ours)."""
