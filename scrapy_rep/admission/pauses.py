"""The pause of a host that has refused a page: it answered 429, or 503 with Retry-After.

It lasts for the Retry-After, else for a time that doubles with each refusal. The request after it
is the probe: all others wait until it is answered. If it is refused, or gets no response, the next
pause begins; any other response of the site ends it. What was sent before the pause does not show
what the host would answer now: its response does not end the pause, and extends it only by a longer
Retry-After.
"""

from __future__ import annotations

import logging
import random
from typing import Final, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import stats
from scrapy_rep.fetch.is_from_origin import intermediary_error
from scrapy_rep.protocol.header_times import retry_after
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import origin_of_request

CHECK_INTERVAL: Final = 1.0
"""Seconds between two candidates for the probe."""
PAUSE_STATUSES: Final = frozenset({429, 503})
"""Status codes that may begin a pause."""
_TOO_MANY_REQUESTS: Final = 429
_FIRST_PAUSE: Final = 1.0
"""Seconds of the pause after the first 429 without Retry-After."""
_TIMEOUT: Final = 300.0
"""Used in place of a REP_DEFER_TIMEOUT of 0, which is about unreachable sites alone."""
_JITTER: Final = 0.25
"""Largest share of a pause that is added to it, so that crawlers don't all come back at once."""
_UNANSWERED: Final = 10
"""A pause after a probe without a response lasts at least so many times as long as the probe."""
_CLOCK_SLACK: Final = 0.02
"""Seconds by which the times of two workers may differ for the same pause."""
_IGNORED_RETRY_KEY: Final = "rep_back_off"
"""Key of ``Request.meta``: the begin of the last pause in which a retry was not counted."""


class Pause(NamedTuple):
    """A pause of a host; times in seconds of the monotonic clock."""

    since: float
    """Time of the first refusal that counts for REP_DEFER_TIMEOUT."""
    began: float
    until: float
    gives_up: bool
    """Whether requests are dropped, as ``until`` is after REP_DEFER_TIMEOUT from ``since`` on."""
    doubled: float
    """Seconds of the last pause without Retry-After; the next one is twice as long."""


class Pauses:
    """Tells which pause follows from the end of a request. It keeps none."""

    def __init__(self, crawler: Crawler, options: Options, clock: Clock) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._clock = clock
        self._max = options.back_off_max
        self._timeout = options.defer_timeout or _TIMEOUT
        self.is_enabled: bool = options.back_off_max > 0 and not options.dry_run
        self.reported: BoundedCache[Origin, tuple[int, float]] = BoundedCache(
            max_entries=MAX_ENTRIES
        )
        """The number of pauses that responses of an origin have begun, and their seconds."""

    def after(
        self,
        before: Pause | None,
        request: Request,
        sent_at: float | None,
        response: Response | None,
        *,
        is_probe: bool,
    ) -> Pause | None:
        """Return the pause after ``request`` has ended, as for ``Hosts.ended``, or ``before``."""
        if sent_at is None:  # the next request is the probe
            return before
        if response is None or not _is_of_site(response, request):
            return self._after_no_answer(before, sent_at) if is_probe else before
        asked = self._seconds_asked(response)
        if before is not None and sent_at < before.until:
            return before if asked is None else self._extended(before, request, response, asked)
        return None if asked is None else self._after_refusal(before, request, response, asked)

    def of_other_worker(self, before: Pause | None, left: float, delay: float) -> Pause | None:
        """Return a pause that ends in ``left`` seconds, unless ``before`` is later.

        In the store a pause lasts at least as long as the ``delay`` of its host.
        """
        until = self._clock.monotonic() + left
        if not self.is_enabled or (before and until <= before.until + _CLOCK_SLACK):
            return before
        return self._pause(before, left, delay=delay)

    def _seconds_asked(self, response: Response) -> float | None:
        """Return the seconds that a refusal asks to wait, 0 if it asks for none; else None.

        A refusal is 429, or 503 with Retry-After: a 503 alone may concern this page only.
        """
        if not self.is_enabled or response.status not in PAUSE_STATUSES:
            return None
        value = (response.headers.get("Retry-After") or b"").decode("latin-1")
        asked = retry_after(value, self._clock.time()) or 0.0
        return asked if asked or response.status == _TOO_MANY_REQUESTS else None

    def _after_refusal(
        self, before: Pause | None, request: Request, response: Response, asked: float
    ) -> Pause:
        doubled = None
        if not asked:
            doubled, asked = self._doubled(before)
        seconds = min(asked, self._max)
        self._report(request, response.status, seconds)
        return self._pause(before, seconds, doubled)

    def _after_no_answer(self, before: Pause | None, sent_at: float) -> Pause:
        # A host must not let one request after the other run into a timeout.
        least = _UNANSWERED * (self._clock.monotonic() - sent_at)
        doubled, seconds = self._doubled(before)
        seconds = min(max(seconds, least), self._max)
        return self._pause(before, seconds, doubled)

    def _extended(self, before: Pause, request: Request, response: Response, asked: float) -> Pause:
        """Return the pause after a refusal of what was sent before it."""
        # Its retry does not count, once in a pause.
        if request.meta.get(_IGNORED_RETRY_KEY) != before.began:
            request.meta[_IGNORED_RETRY_KEY] = before.began
            request.meta["retry_times"] = request.meta.get("retry_times", 0) - 1
        seconds = min(asked, self._max)
        longer = self._clock.monotonic() + seconds - before.until
        if not seconds or longer <= 0:
            return before
        # Refusals that arrive together are logged once.
        if longer > CHECK_INTERVAL:
            self._report(request, response.status, seconds)
        return self._pause(before, seconds)

    def _doubled(self, before: Pause | None) -> tuple[float, float]:
        """Return twice the seconds of the last pause, without and with jitter."""
        last = 0.0 if before is None else before.doubled
        doubled = min(2 * last or _FIRST_PAUSE, self._max)
        return doubled, doubled * (1 + _JITTER * random.random())  # noqa: S311 - no secret

    def _pause(
        self, before: Pause | None, seconds: float, doubled: float | None = None, delay: float = 0.0
    ) -> Pause:
        """Return a pause that ends in ``seconds``; ``doubled`` is that of ``before`` if None.

        If it ends over REP_DEFER_TIMEOUT + CHECK_INTERVAL + ``delay`` after ``since``, it gives up.
        """
        if doubled is None:
            doubled = 0.0 if before is None else before.doubled
        now = self._clock.monotonic()
        until = now + seconds
        if before and now > before.until + self._timeout:  # else a request may have waited since
            before = None
        since = before.since if before else now
        began = before.began if before and now < before.until else now
        gives_up = until > since + self._timeout + CHECK_INTERVAL + delay
        return Pause(since, began, until, gives_up, doubled)

    def _report(self, request: Request, status: int, seconds: float) -> None:
        """Count and log a pause, at INFO only the first of an origin."""
        origin = origin_of_request(request)
        stats.count(self._crawler, stats.BACK_OFF)
        times, before = self.reported.get(origin) or (0, 0.0)
        self.reported.put(origin, (times + 1, before + seconds))
        level, host = logging.DEBUG if times else logging.INFO, ascii(origin.host)[1:-1]
        self._logger.log(level, "%s answered %d: no requests for %.3g s", host, status, seconds)


def _is_of_site(response: Response, request: Request) -> bool:
    """Return whether the site answered, not a proxy. Only 429 and 503 are examined."""
    if response.status not in PAUSE_STATUSES:
        return True
    is_http = urlparse_cached(request).scheme in {"http", "https"}
    return is_http and not intermediary_error(response, proxied=bool(request.meta.get("proxy")))
