"""Back-off: hosts that answered 429 or 503 get no requests during a pause.

A response with 429, or with 503 and Retry-After, is a refusal: a pause of its host begins. The
pause lasts for the Retry-After of the response, else for a time that doubles with each refusal.
After the pause, one request leaves the scheduler: the probe. If it is refused, the next pause
begins; if it gets another response, or none, all requests of the host may leave. Workers that share
a store share the pause by a lease in the store, and only the worker that has the lease sends the
probe.

Requests that were already in the downloader when the pause began don't show what the host would
answer now. So their responses don't end the pause, and extend it only by a longer Retry-After.
"""

from __future__ import annotations

import logging
import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import stats
from scrapy_rep.fetch.route import intermediary_error
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.freshness import retry_after
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.scheduler.pauses import LEASE
from scrapy_rep.signals import Announcer
from scrapy_rep.utils.concurrency import trap_cancelled
from scrapy_rep.utils.download_slots import is_in_slot
from scrapy_rep.utils.downloads import host_of
from scrapy_rep.utils.once import Once
from scrapy_rep.utils.scrapy_internals import downloader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.pauses import Pauses
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock

logger: Final = logging.getLogger(__name__)

_TOO_MANY_REQUESTS: Final = 429
_SERVICE_UNAVAILABLE: Final = 503
_FIRST_PAUSE: Final = 1.0
"""Seconds of the pause after the first 429 without Retry-After."""
_JITTER: Final = 0.25
"""Largest share of a pause that is added to it at random, so that crawlers don't all come back at
once."""
_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks whether a probe may be sent, while another worker may send one."""
_SHORT_CHECK_INTERVAL: Final = 0.05
"""Seconds between two checks whether a probe that left the scheduler reached the downloader."""
_CLOCK_SLACK: Final = 0.02
"""Seconds by which the times of two workers may differ for the same pause."""
_LEASES_TO_WAIT: Final = 3
"""A worker that gets no lease for this many durations of a lease sends the probe without it."""
_MAX_HOSTS: Final = 10_000
"""Number of hosts from which on hosts with neither a pause nor waiting requests are forgotten."""
_IGNORED_RETRY_KEY: Final = "rep_back_off"
"""Key of ``Request.meta``. The value is the begin, by the monotonic clock, of the last pause in
which a retry of the request was not counted."""


@dataclass(eq=False)
class _PausedHost:
    """A host with a pause. Times are in seconds of the monotonic clock."""

    since: float
    """Time of the first refusal."""
    paused_at: float = 0.0
    """Begin of the last pause."""
    until: float = 0.0
    """End of the pause; the first request sent after it is the probe."""
    last_pause: float = 0.0
    """Seconds of the last pause without Retry-After; the next one is twice as long."""
    next_check: float = 0.0
    """When to claim the lease for the probe; infinity while a claim or a probe is under way."""
    under_way: WeakSet[Request] = field(default_factory=WeakSet)
    """Requests that were in the downloader when the pause began."""
    may_probe: bool = False
    """Whether this worker may send the probe."""
    claimed_at: float = -math.inf
    """When the lease was claimed: ``may_probe`` expires with the lease."""
    released_at: float = -math.inf
    """When the last probe left the scheduler."""
    probe: Request | None = None
    """The probe that is in the downloader."""
    given_up: bool = False
    """Whether the pause ends later than REP_DEFER_TIMEOUT after ``since``: until its end, requests
    to the host are dropped."""
    origins: dict[Origin, None] = field(default_factory=dict)
    """The origins of the host whose requests wait."""


class BackOff:
    """Holds the requests of hosts that answered a page with 429, or with 503 and Retry-After.

    If the pause of a host ends later than REP_DEFER_TIMEOUT after its first refusal, the requests
    to the host are dropped until the pause ends.
    """

    def __init__(self, crawler: Crawler, options: Options, pauses: Pauses, clock: Clock) -> None:
        """``pauses`` shares the pauses with the other workers that use the store."""
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self._max = options.back_off_max
        self._timeout = options.defer_timeout
        self._pauses = pauses
        self._clock = clock
        self._hosts: dict[str, _PausedHost] = {}
        self._forget_above = _MAX_HOSTS
        self._listener: Callable[[Origin], None] = lambda _: None
        self._on_given_up: Callable[[], None] = lambda: None
        self._logged = Once()
        self._closing = False

    def start(self) -> None:
        """Connect the signals of the downloader. Called only if a queue can hold requests."""
        connect = self._crawler.signals.connect
        connect(self._request_reached_downloader, signals.request_reached_downloader)
        connect(self._request_left_downloader, signals.request_left_downloader)
        # Not response_received: that is sent for responses of the HTTP cache, too.
        connect(self._response_downloaded, signals.response_downloaded)

    def listen_for_hold_change(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin when the result of ``hold`` for it may have changed."""
        self._listener = call

    def listen_for_dropping(self, call: Callable[[], None]) -> None:
        """Call ``call`` when the requests to a host are to be dropped until its pause ends."""
        self._on_given_up = call

    def has_refused(self, host: str) -> bool:
        """Return whether ``host`` has refused a request, and its pause was not ended since then."""
        return host in self._hosts

    def hold(self, origin: Origin) -> Hold | None:
        """Return why requests of ``origin`` wait, and until when; None if the next may leave.

        None is also returned while requests to the host are dropped. If the pause is over, the
        lease for the probe is claimed, and the listener is called with the origin afterwards.
        """
        paused = self._hosts.get(origin.host) if self._hosts else None
        if paused is None or self.is_dropping(origin.host):
            return None
        now = self._clock.monotonic()
        if paused.may_probe:
            if now < paused.claimed_at + LEASE:
                return None
            # The lease has expired: another worker may have sent a probe and begun a new pause.
            paused.may_probe, paused.next_check = False, now
        paused.origins[origin] = None
        if paused.next_check <= now:
            if now < paused.released_at + _CHECK_INTERVAL and self._active_requests_to(origin.host):
                paused.next_check = now + _SHORT_CHECK_INTERVAL
            else:
                paused.next_check = math.inf
                self._start_task(self._claim_probe(origin.host, paused))
        return Hold(HoldReason.BACK_OFF, paused.next_check)

    def use_probe(self, host: str) -> None:
        """Note that a request to ``host`` leaves the scheduler: no other may leave as the probe."""
        paused = self._hosts.get(host) if self._hosts else None
        if paused is not None and paused.may_probe:
            paused.may_probe = False
            # The request may never be sent, for instance if the HTTP cache has the response.
            paused.released_at = self._clock.monotonic()
            paused.next_check = paused.released_at + _SHORT_CHECK_INTERVAL

    def is_dropping(self, host: str) -> bool:
        """Return whether requests to ``host`` are to be dropped now."""
        paused = self._hosts.get(host)
        if paused is None or not paused.given_up:
            return False
        return self._clock.monotonic() < paused.until

    def drop(self, request: Request) -> IgnoreRequest:
        """Count ``request`` as dropped; return the exception to raise."""
        stats.count(self._crawler, stats.BACK_OFF_DROPPED)
        host = urlparse_cached(request).hostname
        return IgnoreRequest(f"{host!a} has refused all requests for REP_DEFER_TIMEOUT")

    def close(self) -> None:
        """Make no further calls to the store."""
        self._closing = True

    # Signals of the downloader.

    def _request_reached_downloader(self, request: Request) -> None:
        paused = self._paused_host(request)
        if paused and paused.probe is None and paused.until <= self._clock.monotonic():
            paused.probe = request
            paused.next_check = math.inf

    def _request_left_downloader(self, request: Request) -> None:
        paused = self._paused_host(request)
        if paused and paused.probe is request:
            # The host has not responded to the probe, for example because of a timeout. The pause
            # ends: if each waiting request became a probe in turn, the last could wait for hours.
            self._end_pause(host_of(request), paused)

    def _paused_host(self, request: Request) -> _PausedHost | None:
        if not self._hosts or TRANSFER_KEY in request.meta:
            return None
        return self._hosts.get(host_of(request))

    def _active_requests_to(self, host: str) -> list[Request]:
        """Return the requests to ``host`` that the downloader or its middlewares process."""
        return [
            request
            for request in getattr(downloader_of(self._crawler), "active", ())
            if TRANSFER_KEY not in request.meta and host_of(request) == host
        ]

    def _response_downloaded(self, response: Response, request: Request) -> None:
        status = response.status
        may_refuse = status in {_TOO_MANY_REQUESTS, _SERVICE_UNAVAILABLE}
        if not (may_refuse or self._hosts) or TRANSFER_KEY in request.meta:
            return
        if urlparse_cached(request).scheme not in {"http", "https"}:
            return
        if may_refuse and intermediary_error(response, proxied=bool(request.meta.get("proxy"))):
            return
        value = (response.headers.get("Retry-After") or b"").decode("latin-1")
        asked = retry_after(value, self._clock.time())
        origin = origin_of(request.url)
        host = origin.host
        paused = self._hosts.get(host)
        now = self._clock.monotonic()
        under_way = paused is not None and (
            request in paused.under_way
            or now - request.meta.get("download_latency", 0.0) < paused.until
        )
        # A 503 without Retry-After may concern this page only.
        if not may_refuse or (status == _SERVICE_UNAVAILABLE and not asked):
            if paused is not None and not under_way:
                self._end_pause(host, paused)
        elif paused is None or not under_way:
            self._begin_pause(origin, status, asked, now)
        else:
            self._ignore_retry(request, paused)
            if asked:
                self._extend_pause(origin, paused, status, min(asked, self._max))

    @staticmethod
    def _ignore_retry(request: Request, paused: _PausedHost) -> None:
        """Don't count the next retry of ``request``, which was under way when the pause began."""
        # Once per pause: a request that no queue holds would otherwise be retried for ever.
        if request.meta.get(_IGNORED_RETRY_KEY) != paused.paused_at:
            request.meta[_IGNORED_RETRY_KEY] = paused.paused_at
            request.meta["retry_times"] = request.meta.get("retry_times", 0) - 1

    # Begin and end of a pause.

    def _begin_pause(self, origin: Origin, status: int, asked: float | None, now: float) -> None:
        host = origin.host
        paused = self._hosts.get(host)
        if paused is None:
            if len(self._hosts) >= self._forget_above:
                self._hosts = {k: v for k, v in self._hosts.items() if v.origins or v.until > now}
                # If few could be forgotten, don't search all of them again at the next host.
                self._forget_above = max(_MAX_HOSTS, 2 * len(self._hosts))
            paused = self._hosts[host] = _PausedHost(now)
        if not asked:
            paused.last_pause = min(2 * paused.last_pause or _FIRST_PAUSE, self._max)
            asked = paused.last_pause * (1 + _JITTER * random.random())  # noqa: S311
        paused.paused_at = now
        paused.under_way = WeakSet(
            each for each in self._active_requests_to(host) if is_in_slot(self._crawler, each)
        )
        seconds = min(asked, self._max)
        self._report_pause(origin, status, seconds)
        self._pause_for(host, paused, seconds)

    def _extend_pause(
        self, origin: Origin, paused: _PausedHost, status: int, seconds: float
    ) -> None:
        """Let a pause last for ``seconds`` from now, unless it lasts longer already."""
        longer = self._clock.monotonic() + seconds - paused.until
        if longer > 0:
            # After refusals that arrive together, the pause ends at nearly the same time. This is
            # announced only once.
            if longer > _CHECK_INTERVAL:
                self._report_pause(origin, status, seconds)
            self._pause_for(origin.host, paused, seconds)

    def _report_pause(self, origin: Origin, status: int, seconds: float) -> None:
        stats.count(self._crawler, stats.BACK_OFF)
        logger.log(
            logging.INFO if self._logged.add_if_new(origin.host) else logging.DEBUG,
            "%s answered %d: no requests for %.3g s",
            ascii(origin.host)[1:-1],
            status,
            seconds,
            extra={"spider": self._crawler.spider},
        )
        self._announcer.send_back_off(origin, status, seconds)

    def _pause_for(self, host: str, paused: _PausedHost, seconds: float) -> None:
        # A probe under way was sent before this new pause: its response must not end the pause.
        paused.probe, paused.may_probe = None, False
        self._pause_until(host, paused, self._clock.monotonic() + seconds)
        self._start_task(self._share_pause(host, paused, seconds))

    def _pause_until(self, host: str, paused: _PausedHost, until: float) -> None:
        paused.until = paused.next_check = until
        if not paused.given_up and until > paused.since + self._timeout + _CHECK_INTERVAL:
            paused.given_up = True
            logger.warning(
                "%s refuses all requests, and may be asked again only after REP_DEFER_TIMEOUT: "
                "its requests are dropped until then",
                ascii(host)[1:-1],
                extra={"spider": self._crawler.spider},
            )
            self._on_given_up()
        self._notify(paused)

    def _end_pause(self, host: str, paused: _PausedHost) -> None:
        del self._hosts[host]
        self._notify(paused)
        self._start_task(self._pauses.release(host))

    def _notify(self, paused: _PausedHost) -> None:
        origins, paused.origins = paused.origins, {}
        for origin in origins:
            self._listener(origin)

    # The pauses that workers share.

    def _start_task(self, call: Coroutine[object, object, None]) -> None:
        if self._closing:
            call.close()
            return
        deferred_from_coro(call).addErrback(trap_cancelled)

    async def _share_pause(self, host: str, paused: _PausedHost, seconds: float) -> None:
        self._adopt_pause(host, paused, await self._pauses.store(host, seconds))

    async def _claim_probe(self, host: str, paused: _PausedHost) -> None:
        """Claim the lease for the probe. If this worker gets the lease, one request may leave.

        It may also leave if the lease was not available for ``_LEASES_TO_WAIT`` leases. If another
        worker has begun a longer pause, wait for the end of that pause instead.
        """
        is_ours, left = await self._pauses.claim(host)
        if self._hosts.get(host) is not paused or self._clock.monotonic() < paused.until:
            return  # meanwhile a response has ended or extended the pause
        now = paused.claimed_at = self._clock.monotonic()
        paused.next_check = now + (_CHECK_INTERVAL if left is None else max(left, _CLOCK_SLACK))
        paused.may_probe = is_ours or (
            left is None and now > paused.until + _LEASES_TO_WAIT * LEASE
        )
        self._adopt_pause(host, paused, left)
        self._notify(paused)

    def _adopt_pause(self, host: str, paused: _PausedHost, left: float | None) -> None:
        """Adopt the pause of another worker, which ends in ``left`` seconds, if it is longer."""
        until = -math.inf if left is None else self._clock.monotonic() + left
        if until > paused.until + _CLOCK_SLACK and self._hosts.get(host) is paused:
            self._pause_until(host, paused, until)
