"""Back-off: hosts that answered 429 or 503 get no requests during a pause.

A response with 429, or with 503 and Retry-After, is a refusal: a pause of its host begins. The
pause lasts for the Retry-After of the response, else for a time that doubles with each refusal.
After the pause, one request is sent: the probe. If it is refused, or gets no response, the next
pause begins; if it gets another response, all requests of the host may leave. Workers that share a
store share the pause and the probe by the lease of the host.

A request that was sent before the pause began doesn't show what the host would answer now. So its
response doesn't end the pause, and extends it only by a longer Retry-After.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import stats
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.admission.reason import Ask, Hold, HoldReason
from scrapy_rep.fetch.route_failures import intermediary_error
from scrapy_rep.protocol.header_times import retry_after
from scrapy_rep.settings import Options
from scrapy_rep.signals import Announcer, robotstxt_back_off
from scrapy_rep.utils.bounded import ExpiringDict, Once
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import Promise
from scrapy_rep.utils.download_settings import default_download_timeout
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import origin_of_request

_TOO_MANY_REQUESTS: Final = 429
_SERVICE_UNAVAILABLE: Final = 503
REFUSALS: Final = frozenset({_TOO_MANY_REQUESTS, _SERVICE_UNAVAILABLE})
"""Status codes that may begin a pause."""
_FIRST_PAUSE: Final = 1.0
"""Seconds of the pause after the first 429 without Retry-After."""
_JITTER: Final = 0.25
"""Largest share of a pause that is added to it at random, so that crawlers don't all come back at
once."""
_CHECK_INTERVAL: Final = 1.0
"""Seconds until the next request leaves, if the one before has not become the probe, or another
worker sends the probe."""
_PROBE_LEASE: Final = 60.0
"""Maximum seconds for which other workers wait for the response to a probe."""
_UNANSWERED: Final = 10
"""A pause after a probe without a response lasts so many times as long as the probe took. A host
that lets requests run into a timeout should not do so with one request after the other."""
_READ_AGE_MAX: Final = 0.1
"""Seconds after which a request waits until the pauses in the store are read again; if the reading
took longer, twice as long, so that not all requests wait for a slow store."""
_READ_INTERVAL: Final = _READ_AGE_MAX / 2
"""Seconds after which a request starts a reading in the background. It does not wait for that, so
requests of a busy crawl seldom wait at all."""
_CLOCK_SLACK: Final = 0.02
"""Seconds by which the times of two workers may differ for the same pause."""
_MAX_HOSTS: Final = 10_000
"""Number of hosts from which on hosts whose pauses are over are forgotten."""
_IGNORED_RETRY_KEY: Final = "rep_back_off"
"""Key of ``Request.meta``. The value is the begin, by the monotonic clock, of the last pause in
which a retry of the request was not counted."""


@dataclass(eq=False)
class PausedHost:
    """A host from its first refusal to its next other response; seconds of the monotonic clock."""

    since: float
    """Time of the first refusal that counts for REP_DEFER_TIMEOUT."""
    paused_at: float
    """Begin of the last pause."""
    until: float = 0.0
    """End of the pause; the first request sent after it is the probe."""
    last_pause: float = 0.0
    """Seconds of the last pause without Retry-After; the next one is twice as long."""
    next_to_leave: float = -math.inf
    """When the next request may leave the scheduler, as the last one has not become the probe."""
    probe: Request | None = None
    given_up: bool = False
    """Whether the pause ends later than REP_DEFER_TIMEOUT after ``since``: until its end, requests
    to the host are dropped."""


class BackOff(HoldReason):
    """Holds requests to hosts that have answered a page with 429, or with 503 and Retry-After.

    If the pause of a host ends later than REP_DEFER_TIMEOUT after its first refusal, the requests
    to the host are dropped until the pause ends.
    """

    text = "the site answered 429 or 503"
    end = "the pause is over, and one request was answered"
    of_host = True

    def __init__(
        self,
        crawler: Crawler,
        options: Options,
        leases: HostLeases,
        clock: Clock,
        listener: Callable[[str], None],
    ) -> None:
        """Call ``listener`` with a host when the hold of its requests may have changed."""
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._is_active = options.back_off_max > 0 and not options.dry_run
        self._announcer = Announcer(crawler)
        self._max = options.back_off_max
        self._timeout = options.defer_timeout
        self._leases = leases
        self._clock = clock
        self._listener = listener
        self.hosts: ExpiringDict[str, PausedHost] = ExpiringDict(
            _MAX_HOSTS, lambda host: host.until <= clock.monotonic() and host.probe is None
        )
        self._read_at = -math.inf
        """When the pauses in the store were read."""
        self._read_age_max = _READ_AGE_MAX
        self._readers: list[Promise[None]] | None = None
        """Requests that wait until they are read; None if they are not being read."""
        self._logged = Once()

    def hold(self, ask: Ask) -> Hold | None:
        """Hold requests in a pause, while its probe is under way, and for a second after one left.

        Not held are the probe itself, and requests that will be dropped.
        """
        paused = self.hosts.get(ask.host)
        if paused is None:
            return None
        now, until = self._clock.monotonic(), paused.until
        is_dropped = not ask.on_wire and paused.given_up
        if until <= now:
            is_dropped = False
            until = -math.inf if ask.on_wire else paused.next_to_leave
            if paused.probe is not None and not (ask.on_wire and paused.probe is ask.head()):
                until = math.inf
        if until <= now or is_dropped or (not ask.on_wire and ask.is_disallowed):
            return None
        return Hold(self, until)

    def take(self, ask: Ask) -> None:
        # No other request leaves for a while: this one may become the probe.
        paused = self.hosts.get(ask.host)
        if paused is not None and not ask.is_disallowed:
            paused.next_to_leave = self._clock.monotonic() + _CHECK_INTERVAL

    def undo_take(self, host: str) -> None:
        paused = self.hosts.get(host)
        if paused is not None:
            paused.next_to_leave = -math.inf
            self._listener(host)

    def sent(self, ask: Ask) -> float:
        """Make the request the probe if its host has a pause; return the seconds of its lease."""
        paused = self.hosts.get(ask.host)
        if paused is None:
            return 0.0
        paused.probe = ask.head()
        return min(_PROBE_LEASE, default_download_timeout(self._crawler) or _PROBE_LEASE)

    def not_sent(self, ask: Ask, left: float, *, paused: bool) -> None:
        """Adopt the pause, if there is one; if the request is the probe, a later one becomes it."""
        if paused and self._is_active:
            self._adopt_pause(ask.host, left)
        found = self.hosts.get(ask.host)
        if found is not None and found.probe is ask.head():
            found.probe = None
            until = self._clock.monotonic() + min(left, _CHECK_INTERVAL)
            found.until = max(found.until, until)
            self._listener(ask.host)

    def ended(
        self, host: str, request: Request, sent_at: float, response: Response | None
    ) -> float:
        """Begin, extend or end the pause of ``host``; return its seconds if it begins or is longer.

        A refusal is 429, or 503 with Retry-After; that of a request sent before the pause ended
        only extends it, and its next retry doesn't count. A probe without a response of the site
        counts as refused. Another response to a request sent after the pause ends it. Else: 0.
        """
        paused = self.hosts.get(host)
        if response is None or not _is_of_site(response, request):
            if paused is None or paused.probe is not request:
                return 0.0
            least = min(_UNANSWERED * (self._clock.monotonic() - sent_at), self._max)
            return self._pause_for(host, paused, max(self._next_pause(paused, None), least))
        value = (response.headers.get("Retry-After") or b"").decode("latin-1")
        asked = retry_after(value, self._clock.time())
        # A 503 without Retry-After may concern this page only.
        refuses = self._is_active and (
            response.status == _TOO_MANY_REQUESTS
            or (response.status == _SERVICE_UNAVAILABLE and bool(asked))
        )
        is_under_way = paused is not None and sent_at < max(paused.paused_at, paused.until)
        if not refuses:
            if paused is not None and not is_under_way:
                del self.hosts[host]
                self._leases.answered(host)
                self._listener(host)
            return 0.0
        if paused is None or not is_under_way:
            paused = paused or self._add_host(host)
            seconds = self._next_pause(paused, asked)
            self._report_pause(request, response.status, seconds)
            return self._pause_for(host, paused, seconds)
        self._ignore_retry(request, paused)
        seconds = min(asked or 0.0, self._max)
        longer = self._clock.monotonic() + seconds - paused.until
        if not seconds or longer <= 0:
            return 0.0
        # After refusals that arrive together, the pause ends at nearly the same time. This is
        # announced only once.
        if longer > _CHECK_INTERVAL:
            self._report_pause(request, response.status, seconds)
        return self._pause_for(host, paused, seconds)

    def read_pauses(self) -> Awaitable[None] | None:
        """Begin to read the pauses in the store, unless they were read just now.

        Return None, or what a request awaits before it is sent. That raises no error of the store.
        """
        if not self._is_active:
            return None
        now = self._clock.monotonic()
        if now - self._read_at < _READ_INTERVAL:
            return None
        if self._readers is None:
            self._readers = []
            self._leases.background.start(self._read())  # without asyncio, it may end at once
        if self._readers is None or now - self._read_at < self._read_age_max:
            return None
        read: Promise[None] = Promise()
        self._readers.append(read)
        return read

    async def _read(self) -> None:
        """Adopt the pauses in the store; end those that others ended; add hosts to be probed."""
        began = self._clock.monotonic()
        try:
            pauses = await self._leases.pauses_left()
            for host, paused in self.hosts.items():
                if host not in pauses and paused.until <= began:
                    paused.until = -math.inf  # another worker got an answer
            for host, left in pauses.items():
                if left > _CLOCK_SLACK:
                    self._adopt_pause(host, left)
                elif host not in self.hosts:
                    self._add_host(host)
        finally:
            self._read_at = self._clock.monotonic()
            self._read_age_max = max(_READ_AGE_MAX, 2 * (self._read_at - began))
            readers, self._readers = self._readers or [], None
            for read in readers:
                read.set_result(None)

    def _adopt_pause(self, host: str, left: float) -> None:
        """Let the pause of ``host`` end in ``left`` seconds, unless it ends later already."""
        paused = self.hosts.get(host) or self._add_host(host)
        if self._clock.monotonic() + left > paused.until + _CLOCK_SLACK:
            self._pause_for(host, paused, left)

    def is_dropping(self, host: str) -> bool:
        """Return whether requests to ``host`` are dropped, until the end of its pause."""
        paused = self.hosts.get(host) if self.hosts else None
        if paused is None or not paused.given_up:
            return False
        return self._clock.monotonic() < paused.until

    def drop(self, request: Request) -> IgnoreRequest:
        """Count ``request`` as dropped; return the exception to raise."""
        stats.count(self._crawler, stats.BACK_OFF_DROPPED)
        host = urlparse_cached(request).hostname
        return IgnoreRequest(f"{host!a} has refused all requests for REP_DEFER_TIMEOUT")

    def _ignore_retry(self, request: Request, paused: PausedHost) -> None:
        """Let the next retry of ``request`` not count in its meta, once in a pause."""
        # A request that no queue holds would otherwise be retried for ever.
        if request.meta.get(_IGNORED_RETRY_KEY) != paused.paused_at:
            request.meta[_IGNORED_RETRY_KEY] = paused.paused_at
            request.meta["retry_times"] = request.meta.get("retry_times", 0) - 1

    # Begin and end of a pause.

    def _add_host(self, host: str) -> PausedHost:
        now = self._clock.monotonic()
        return self.hosts.put(host, PausedHost(now, now))

    def _next_pause(self, paused: PausedHost, asked: float | None) -> float:
        """Return the seconds of a pause: ``asked``, or else twice the last one, with jitter.

        They are at most REP_BACK_OFF_MAX. Without ``asked``, the next pause is twice as long again.
        """
        if not asked:
            paused.last_pause = min(2 * paused.last_pause or _FIRST_PAUSE, self._max)
            asked = paused.last_pause * (1 + _JITTER * random.random())  # noqa: S311
        return min(asked, self._max)

    def _report_pause(self, request: Request, status: int, seconds: float) -> None:
        """Count and log a pause, at INFO only the first of a host, and send its signal."""
        origin = origin_of_request(request)
        stats.count(self._crawler, stats.BACK_OFF)
        self._logger.log(
            logging.INFO if self._logged.add_if_new(origin.host) else logging.DEBUG,
            "%s answered %d: no requests for %.3g s",
            ascii(origin.host)[1:-1],
            status,
            seconds,
        )
        self._announcer.send(robotstxt_back_off, origin=origin, status=status, seconds=seconds)

    def _pause_for(self, host: str, paused: PausedHost, seconds: float) -> float:
        """Let a pause, without a probe, end in ``seconds``; return these, and call the listener.

        Warn and give the host up if that is later than REP_DEFER_TIMEOUT after its first refusal.
        """
        now = self._clock.monotonic()
        until = now + seconds
        if now >= paused.until:
            paused.paused_at = now
        if now > paused.until + self._timeout:  # else a request may have waited since then
            paused.since, paused.given_up = now, False
        paused.probe, paused.until, paused.next_to_leave = None, until, -math.inf
        if not paused.given_up and until > paused.since + self._timeout + _CHECK_INTERVAL:
            paused.given_up = True
            self._logger.warning(
                "%s refuses all requests, and may be asked again only after REP_DEFER_TIMEOUT: "
                "its requests are dropped until then",
                ascii(host)[1:-1],
            )
        self._listener(host)
        return seconds


def _is_of_site(response: Response, request: Request) -> bool:
    """Return whether the site answered over HTTP, not a proxy. Only 429 and 503 are examined."""
    if urlparse_cached(request).scheme not in {"http", "https"}:
        return False
    if response.status not in REFUSALS:
        return True
    return not intermediary_error(response, proxied=bool(request.meta.get("proxy")))
