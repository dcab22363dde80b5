"""Limits and defaults of the protocol, with their units and sources."""

from __future__ import annotations

from typing import Final

MAX_BODY_BYTES: Final = 512_000
"""Bytes of robots.txt that are parsed, 500 KiB; the rest is ignored (RFC 9309 §2.5, SPEC F-13)."""

MAX_LINE_BYTES: Final = 16_663
"""Bytes of a line that are parsed: 8 times the 2,083 of the longest URL in old browsers, without
the end of the string (Google)."""

MAX_EFFORT: Final = 50_000
"""Steps of about a microsecond for a verdict on all spellings of a URL (ours: real URLs and rules
take some hundred at most)."""

MAX_LINT_LINES: Final = 50_000
"""Lines of a file that lint checks, about a second of work (ours: 500 KiB of real rules have half
as many)."""

MAX_HOST_LENGTH: Final = 255
"""Characters of a host name, the longest name of the DNS (RFC 1035 §2.3.4)."""

MAX_PORT: Final = 65_535
"""The highest port (RFC 9293 §3.1)."""

ORIGIN_CACHE_SIZE: Final = 1_024
"""Entries of the cache of origins by URL prefix (ours)."""

ORIGIN_CACHE_KEY_LENGTH: Final = 300
"""Characters of the longest URL prefix in that cache (ours)."""

MAX_REDIRECTS: Final = 5
"""Redirects followed (RFC 9309 §2.3.1.2: at least five, across hosts too)."""

CACHE_TTL: Final = 86_400.0
"""Seconds for which a response without max-age is used (RFC 9309 §2.4: at most 24 hours)."""

CACHE_TTL_MIN: Final = 600.0
"""Seconds for which a response is used at least (ours: a max-age of 0 would mean a request for
robots.txt before every page)."""

CACHE_TTL_MAX: Final = 86_400.0
"""Seconds for which a response is used at most (RFC 9309 §2.4)."""

UNREACHABLE_STALE_AFTER: Final = 2_592_000.0
"""Seconds of an outage after which the last good copy is used (Google: 30 days)."""

UNREACHABLE_ALLOW_AFTER: Final = 2_592_000.0
"""Seconds of an outage after which all is allowed if there is no copy
(RFC 9309 §2.3.1.4: "a reasonably long period of time (for example, 30 days)")."""

UNREACHABLE_GAP_MAX: Final = 604_800.0
"""Maximum time between two tries that counts as outage, in seconds (ours: 7 days; two tries a year
apart, or a wrong clock, say little about the time between)."""

RETRY_DELAY: Final = 10.0
"""Seconds to the first retry of an unreachable robots.txt (ours)."""

RETRY_DELAY_MAX: Final = 3_600.0
"""Maximum number of seconds between retries (ours)."""

MAX_CRAWL_DELAY: Final = 86_400.0
"""Longest Crawl-delay in seconds; one above a day is ignored as a mistake (ours)."""

MAX_DELAY_DIGITS: Final = 10
"""Digits of a number in Crawl-delay and Request-rate on each side of the point (ours)."""

MAX_META_ELEMENTS: Final = 20_000
"""``meta`` elements of a page that are read (ours: long lists with microdata have some
thousands)."""

MAX_TAG_TEXT: Final = 8_192
"""Characters of the robots tags of a page for one crawler that are read, with its headers (ours:
real ones have tens)."""

MAX_USAGE_BYTES: Final = 32_768
"""Bytes of the usage lines that are read for one crawler; if there are more, all uses are
disallowed (ours)."""

MAX_USAGE_RAW: Final = 500
"""Maximum length of the text of a usage preference, in characters (ours)."""

MAX_USAGE_URIS: Final = 16
"""Maximum number of license and policy URIs of a page (ours)."""
