"""Back-off: hosts that answered 429 or 503 are left alone for a time."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy import signals
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import stats
from scrapy_rep.fetch.route import said_on_the_way
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.freshness import retry_after
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock

logger = logging.getLogger(__name__)

_TOO_MANY_REQUESTS: Final = 429
_SERVICE_UNAVAILABLE: Final = 503
_FIRST: Final = 1.0
"""Seconds after the first 429 without Retry-After."""
_JITTER: Final = 0.25
"""By what part of itself that is made longer at most, so that workers don't return together."""
_FORGOTTEN: Final = 60.0
"""Seconds without a 429 after which the next one counts as the first."""

_SPARED_KEY: Final = "rep_back_off"
"""Meta key: when the host closed for which a retry was not counted, by the monotonic clock."""


class _Closed(NamedTuple):
    began: float
    until: float
    seconds: float
    """What the next 429 without Retry-After doubles; 0: it is the first."""


class BackOff:
    """Holds the requests of hosts that answered a page with 429, or with 503 and Retry-After."""

    def __init__(self, crawler: Crawler, options: Options, clock: Clock) -> None:
        """Listen to the responses of a crawl."""
        self._crawler = crawler
        self._max = options.back_off_max
        self._clock = clock
        self._hosts: BoundedCache[str, _Closed] = BoundedCache(options.memory_max_origins, 1)
        crawler.signals.connect(self._downloaded, signals.response_downloaded)

    def hold(self, host: str) -> Hold | None:
        """Return until when the requests of ``host`` wait; None if they may leave."""
        closed = self._hosts.get(host) if len(self._hosts) else None
        if closed is None or closed.until <= self._clock.monotonic():
            return None
        return Hold(HoldReason.BACK_OFF, closed.until)

    # A response from the HTTP cache sends no such signal.
    def _downloaded(self, response: Response, request: Request) -> None:
        status = response.status
        if status not in {_TOO_MANY_REQUESTS, _SERVICE_UNAVAILABLE}:
            return
        if TRANSFER_KEY in request.meta:
            return
        if said_on_the_way(response, proxied=bool(request.meta.get("proxy"))) is not None:
            return
        value = (response.headers.get("Retry-After") or b"").decode("latin-1")
        asked = retry_after(value, self._clock.time())
        if status == _SERVICE_UNAVAILABLE and not asked:
            return  # it may be of that page alone
        host = urlparse_cached(request).hostname or ""
        now = self._clock.monotonic()
        closed = self._hosts.get(host)
        sent = now - request.meta.get("download_latency", 0.0)
        if closed is not None and sent < closed.until:
            # It was under way when the host closed: this is to cost it none of RETRY_TIMES. Once
            # for each time, as requests come back at once where nothing holds them.
            if request.meta.get(_SPARED_KEY) != closed.began:
                request.meta[_SPARED_KEY] = closed.began
                request.meta["retry_times"] = request.meta.get("retry_times", 0) - 1
            if asked:
                until = max(closed.until, now + min(asked, self._max))
                self._hosts.put(host, closed._replace(until=until), 0)
            return
        self._close(host, status, asked, closed, now)

    def _close(
        self, host: str, status: int, asked: float | None, closed: _Closed | None, now: float
    ) -> None:
        recent = closed is not None and now < closed.until + _FORGOTTEN
        last = closed.seconds if closed is not None and recent else 0.0
        if asked:
            seconds = min(asked, self._max)
        else:
            last = min(2 * last or _FIRST, self._max)
            seconds = min(last * (1 + _JITTER * random.random()), self._max)  # noqa: S311
        self._hosts.put(host, _Closed(now, now + seconds, last), 0)
        stats.count(self._crawler, stats.BACK_OFF)
        if closed is None:
            logger.info(
                "%s answered %d: no requests for %.3g s",
                ascii(host)[1:-1],
                status,
                seconds,
                extra={"spider": self._crawler.spider},
            )
