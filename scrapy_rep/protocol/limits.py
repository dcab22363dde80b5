"""Limits and defaults of the protocol, with their units and sources.

Where a text says "own choice", no specification has a number: scrapy-rep has chosen it.
"""

from typing import Final

MAX_BODY_BYTES: Final = 512_000
"""Bytes of robots.txt that are parsed: 500 KiB. The bytes after them are ignored (RFC 9309 §2.5,
SPEC F-13)."""
MAX_LINE_BYTES: Final = 16_663
"""Bytes of a line that are parsed, as in Google's parser: 8 times 2,083, the length of the longest
URL in old browsers, less one byte for the NUL at the end of the string."""
MAX_WORK: Final = 2**27
"""Maximum length of all patterns with ``*`` for a crawler, times that of a target (own choice: the
largest of 5,844 real files has 24,861 characters of such patterns). A ``%`` that begins no escape
makes a pattern count more: ``protocol/rules.py``."""
MAX_HOST_LENGTH: Final = 255
"""Characters of a host name, the longest name of the DNS (RFC 1035 §2.3.4)."""
MAX_PORT: Final = 65_535
"""The highest port (RFC 9293 §3.1)."""
MAX_REDIRECTS: Final = 5
"""Number of redirects that are followed (RFC 9309 §2.3.1.2: at least five, also to other hosts)."""
CACHE_TTL: Final = 86_400.0
"""Seconds for which a response without max-age is used (RFC 9309 §2.4: at most 24 hours)."""
CACHE_TTL_MIN: Final = 600.0
"""Minimum number of seconds for which a response with max-age is used (own choice: otherwise, with
a max-age of 0, robots.txt would be requested before every page)."""
CACHE_TTL_MAX: Final = 86_400.0
"""Maximum number of seconds for which a response is used (RFC 9309 §2.4)."""
UNREACHABLE_STALE_AFTER: Final = 2_592_000.0
"""Seconds of an outage after which the last good copy is used: 30 days, as Google documents for its
crawlers."""
UNREACHABLE_ALLOW_AFTER: Final = 2_592_000.0
"""Seconds of an outage after which all URLs are allowed if there is no copy
(RFC 9309 §2.3.1.4: "a reasonably long period of time (for example, 30 days)")."""
UNREACHABLE_GAP_MAX: Final = 604_800.0
"""Maximum number of seconds between two failed tries that count as outage: 7 days (own choice: if
the tries are a year apart, or the clock was wrong, the site may have been reachable in between)."""
RETRY_DELAY: Final = 10.0
"""Seconds from the first failed fetch of a robots.txt to the next try (own choice)."""
RETRY_DELAY_MAX: Final = 3_600.0
"""Maximum number of seconds between two tries (own choice)."""
MAX_CRAWL_DELAY: Final = 86_400.0
"""Maximum of Crawl-delay and Request-rate in seconds; a longer delay is ignored as a mistake (own
choice)."""
MAX_DELAY_DIGITS: Final = 10
"""Maximum number of digits on each side of the decimal point, in Crawl-delay and Request-rate (own
choice)."""
MAX_META_ELEMENTS: Final = 20_000
"""Number of ``meta`` elements of a page that are read (own choice: long lists with microdata have
some thousands)."""
MAX_TAG_TEXT: Final = 8_192
"""Characters that are read of the X-Robots-Tag headers of a page, and of its robots meta elements
for one crawler (own choice: real pages have some tens)."""
MAX_USAGE_BYTES: Final = 32_768
"""Bytes that are read of the usage lines for one crawler (own choice). If they have more, all uses
are disallowed."""
MAX_USAGE_RAW: Final = 500
"""Maximum length of the text that is kept of a usage preference, in characters (own choice)."""
MAX_USAGE_URIS: Final = 16
"""Maximum number of license and policy URIs that are kept for a page (own choice)."""
