"""The hosts that may be sent one request at a time, and when the next one may be sent.

A host is one of them because its robots.txt asks for a delay, or because it has refused a page: it
answered 429, or 503 with Retry-After.

- The delay counts from when a request has got its response, or has failed: only the site could tell
  when a request that is under way reached it.
- After a refusal a pause begins. It lasts for the Retry-After, else for a time that doubles with
  each refusal. The request after it is the probe: all others wait until it is answered. If it is
  refused, or gets no response, the next pause begins; any other response ends the pause. What was
  sent before the pause does not show what the host would answer now: its response does not end the
  pause, and extends it only by a longer Retry-After.

All origins of a host (http, https, other ports) share its record. Workers that share a store send
with the lease of the host (``host_leases``).
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import stats
from scrapy_rep.admission.delays import Delays
from scrapy_rep.admission.hold_reason import Ask, Hold, HoldReason
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.fetch.download_settings import default_download_timeout
from scrapy_rep.fetch.is_from_origin import intermediary_error
from scrapy_rep.protocol.header_times import retry_after
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options
from scrapy_rep.stores.base import PAUSE, Lease
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.download_slots import delay_of_slot
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import host_of, origin_of_request

_TOO_MANY_REQUESTS: Final = 429
REFUSALS: Final = frozenset({_TOO_MANY_REQUESTS, 503})
"""Status codes that may begin a pause."""
_FIRST_PAUSE: Final = 1.0
"""Seconds of the pause after the first 429 without Retry-After."""
_TIMEOUT: Final = 300.0
"""Used in place of a REP_DEFER_TIMEOUT of 0, which is about unreachable sites alone."""
_JITTER: Final = 0.25
"""Largest share of a pause that is added to it, so that crawlers don't all come back at once."""
_CHECK_INTERVAL: Final = 1.0
"""Seconds until the next request leaves, if the one before has not become the probe."""
_LEASE: Final = 60.0
"""Seconds after which the host of a request without a response is free, unless the delay is longer:
for a host with a delay, and for other workers after a probe."""
_UNANSWERED: Final = 10
"""A pause after a probe without a response lasts so many times as long as the probe took."""
_CLOCK_SLACK: Final = 0.02
"""Seconds by which the times of two workers may differ for the same pause."""
_MAX_HOSTS: Final = 10_000
"""Number of hosts from which on those that nothing waits for are forgotten."""
_IGNORED_RETRY_KEY: Final = "rep_back_off"
"""Key of ``Request.meta``: the begin of the last pause in which a retry was not counted."""

_NOT_CLAIMED: Final = Lease("", 0.0)
"""In place of the lease of a host if the request was cancelled while it was claimed."""

IN_DELAY: Final = HoldReason("the site has a delay")
IN_PAUSE: Final = HoldReason("the site answered 429 or 503")


class Pause(NamedTuple):
    """A pause of a host; times in seconds of the monotonic clock."""

    since: float
    """Time of the first refusal that counts for REP_DEFER_TIMEOUT."""
    began: float
    until: float
    gives_up: bool
    """Whether requests are dropped, as ``until`` is after REP_DEFER_TIMEOUT from ``since`` on."""


@dataclass(eq=False)
class Host:
    """When the next request to a host may be sent; times in seconds of the monotonic clock."""

    name: str
    delay: float = 0.0
    next_to_leave: float = -math.inf
    """When the next request may leave the scheduler."""
    next_to_send: float = -math.inf
    last: Request | None = None
    """The request that was sent last, if it has not ended. After a pause it is the probe."""
    pause: Pause | None = None
    """The last pause; None if the host has answered a request since then."""
    last_seconds: float = 0.0
    """Those of the last pause without Retry-After; the next one is twice as long."""
    waiting: dict[Origin, None] = field(default_factory=dict)

    def next_turn(self, *, on_wire: bool) -> float:
        """Return when the next request may be sent, or may leave."""
        if self.last is not None and self.pause is not None:
            return math.inf  # the probe tells
        return self.next_to_send if on_wire else max(self.next_to_send, self.next_to_leave)

    def is_over(self, now: float) -> bool:
        """Return whether nothing waits for the host any more."""
        return self.last is None and max(self.next_to_leave, self.next_to_send) <= now


class Hosts:
    """Holds requests to hosts that have a delay, or have refused one, until it is their turn.

    ``listener`` is called with an origin when the hold of its requests may have changed.
    """

    def __init__(
        self,
        crawler: Crawler,
        options: Options,
        leases: HostLeases,
        clock: Clock,
        listener: Callable[[Origin], None],
    ) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self.delays: Delays = Delays(crawler, options)
        self.pauses: BoundedCache[Origin, tuple[int, float]] = BoundedCache(max_entries=MAX_ENTRIES)
        """The number of pauses that responses of an origin have begun, and their seconds."""
        self.keeps_delays: bool = self.delays.max > 0
        self._backs_off = options.back_off_max > 0 and not options.dry_run
        self._max = options.back_off_max
        self._timeout = options.defer_timeout or _TIMEOUT
        self._clock = clock
        self._listener = listener
        self.leases: HostLeases = leases
        self._is_reading = False
        self._hosts: dict[str, Host] = {}
        self._forget_at = _MAX_HOSTS
        """Number of hosts at which those that are over are searched for."""
        self.refused: dict[str, Host] = {}
        """The hosts with a pause, by name."""
        self._leased: dict[str, Request] = {}
        """The request to each host that was sent with its lease last, and has not ended."""

    # Whether a request may leave, and be sent.

    def is_free(self, delay: float) -> bool:
        """Return whether nothing can hold a request with this delay: ``hold`` need not be asked."""
        return not (self.refused or (delay and self.keeps_delays))

    def hold(self, ask: Ask) -> Hold | None:
        """Return the hold of a request whose turn has not come, unless it will be dropped."""
        host, now = self._hosts.get(ask.origin.host), self._clock.monotonic()
        if host is None:
            return None
        until = host.next_turn(on_wire=ask.on_wire)
        if until <= now or not self._concerns(host, ask):
            return None
        host.waiting[ask.origin] = None
        return Hold(IN_PAUSE if host.pause else IN_DELAY, until)

    def _concerns(self, host: Host, ask: Ask) -> bool:
        """Return whether the delay or the pause of ``host`` is one for the request of ``ask``."""
        if ask.on_wire and host.last is ask.head():
            return False  # it is its turn
        if host.pause:
            return ask.on_wire or not (self.is_dropping(host.name) or ask.is_disallowed)
        return bool(ask.delay)

    def reserve(self, ask: Ask) -> None:
        """Let the next request leave after the delay; in a pause, when this one is no probe."""
        host, seconds = self._host_of(ask), 0.0
        if host is None or (host.pause and ask.is_disallowed):
            return
        if ask.delay:
            # What the download slot keeps back should wait in the scheduler, too.
            seconds = max(host.delay, delay_of_slot(self._crawler, ask.origin.host))
        if host.pause:
            seconds = max(seconds, _CHECK_INTERVAL)
        if seconds:
            host.next_to_leave = self._clock.monotonic() + seconds

    def undo_reserve(self, host: str) -> None:
        found = self._hosts.get(host)
        if found is not None:
            found.next_to_leave = -math.inf
            self._notify(found)

    async def acquire(self, ask: Ask) -> Hold | None:
        """Return why a request may not be sent now, or None: then it has the lease it needs."""
        if (hold := self.hold(ask)) is not None:
            return hold
        host, request = self._host_of(ask), ask.head()
        if request is None or host is None or not (host.pause or ask.delay):
            return None
        host.last = request
        seconds = max(ask.delay, min(_LEASE, default_download_timeout(self._crawler) or _LEASE))
        host.next_to_send = self._clock.monotonic() + seconds
        lease: Lease | None = _NOT_CLAIMED
        try:
            lease = await self.leases.claim(ask.origin.host, seconds)
        finally:
            if lease is not None:
                self._not_acquired(host, ask, lease)
        # That may have taken long, and a pause may have begun.
        if (hold := self.hold(ask)) is not None:
            return hold
        if lease is not None:
            return Hold(IN_DELAY, self._clock.monotonic() + lease.left)
        stats.count(self._crawler, stats.TURNS)
        self._leased[host.name] = request
        return None

    def _not_acquired(self, host: Host, ask: Ask, lease: Lease) -> None:
        """Let the next request be sent when the lease of another worker ends; adopt its pause."""
        is_last = host.last is ask.head()
        if is_last:
            host.last = None
            # The lease of another worker may be shortened, when it gets its response.
            wait = min(lease.left, max(_CHECK_INTERVAL, ask.delay))
            host.next_to_send = self._clock.monotonic() + wait
        if lease.holder == PAUSE and self._backs_off:
            self._adopt_pause(host, lease.left)
        if is_last:
            self._notify(host)

    def ended(self, request: Request, sent_at: float, response: Response | None) -> None:
        """Note that ``request`` got a response; None: an error, or ``sent_at`` infinity: unsent.

        Only a request with the lease of its host counts, and any response with 429 or 503.
        """
        may_refuse = response is not None and response.status in REFUSALS
        if not self._leased and not may_refuse:
            return
        name, now = host_of(request), self._clock.monotonic()
        is_leased = self._leased.get(name) is request
        if not (is_leased or may_refuse):
            return
        host = self._record(name)
        if is_last := host.last is request:
            host.last = None
            host.next_to_send = now + host.delay
        left = None
        if is_leased:
            del self._leased[name]
            left = max(0.0, host.next_to_send - now)
        is_probe = is_last and host.pause is not None
        pause = self._pause_after(host, request, sent_at, response, is_probe=is_probe)
        if is_last:
            self._notify(host)
        self.leases.ended(name, left, pause)

    def _host_of(self, ask: Ask) -> Host | None:
        """Return the host of ``ask`` with its delay; it is added if it has one."""
        host, delay = self._hosts.get(ask.origin.host), ask.delay
        if delay:
            host = self._record(ask.origin.host)
            host.delay = delay
        return host

    def _record(self, name: str) -> Host:
        if name in self._hosts:
            return self._hosts[name]
        if len(self._hosts) >= self._forget_at:
            now = self._clock.monotonic()
            for over in [each for each, host in self._hosts.items() if host.is_over(now)]:
                del self._hosts[over]
                self.refused.pop(over, None)
            self._forget_at = max(_MAX_HOSTS, 2 * len(self._hosts))
        host = self._hosts[name] = Host(name)
        return host

    def _notify(self, host: Host) -> None:
        waiting, host.waiting = host.waiting, {}
        for origin in waiting:
            self._listener(origin)

    # Pauses.

    async def read_pauses(self) -> None:
        """Adopt the pauses of other workers. No effect while the last reading still goes on."""
        if self._is_reading or not self._backs_off:
            return
        self._is_reading = True
        try:
            for name, left in (await self.leases.pauses_left()).items():
                self._adopt_pause(self._record(name), left)
        finally:
            self._is_reading = False

    def _pause_after(
        self,
        host: Host,
        request: Request,
        sent_at: float,
        response: Response | None,
        *,
        is_probe: bool,
    ) -> float:
        """Begin, extend or end a pause; return its seconds if it begins or is longer, else 0."""
        if response is None or not _is_of_site(response, request):
            if not is_probe or sent_at == math.inf:  # the next request is the probe
                return 0.0
            # A host must not let one request after the other run into a timeout.
            least = min(_UNANSWERED * (self._clock.monotonic() - sent_at), self._max)
            return self._back_off(host, max(self._next_pause(host, 0.0), least))
        asked, pause = self._refusal(response), host.pause
        if pause is not None and sent_at < pause.until:
            return 0.0 if asked is None else self._extend(host, pause, request, response, asked)
        if asked is None:
            if pause is not None:
                host.pause, host.last_seconds, host.next_to_leave = None, 0.0, -math.inf
                del self.refused[host.name]
                self._notify(host)
            return 0.0
        seconds = self._next_pause(host, asked)
        self._report_pause(request, response.status, seconds)
        return self._back_off(host, seconds)

    def _refusal(self, response: Response) -> float | None:
        """Return the seconds that a refusal asks to wait, 0 if it asks for none; else None.

        A refusal is 429, or 503 with Retry-After: a 503 alone may concern this page only.
        """
        if not self._backs_off or response.status not in REFUSALS:
            return None
        value = (response.headers.get("Retry-After") or b"").decode("latin-1")
        asked = retry_after(value, self._clock.time()) or 0.0
        return asked if asked or response.status == _TOO_MANY_REQUESTS else None

    def _extend(
        self, host: Host, pause: Pause, request: Request, response: Response, asked: float
    ) -> float:
        """Note a refusal of what was sent before the pause."""
        # Its retry does not count, once in a pause.
        if request.meta.get(_IGNORED_RETRY_KEY) != pause.began:
            request.meta[_IGNORED_RETRY_KEY] = pause.began
            request.meta["retry_times"] = request.meta.get("retry_times", 0) - 1
        seconds = min(asked, self._max)
        longer = self._clock.monotonic() + seconds - pause.until
        if not seconds or longer <= 0:
            return 0.0
        # Refusals that arrive together are logged once.
        if longer > _CHECK_INTERVAL:
            self._report_pause(request, response.status, seconds)
        return self._back_off(host, seconds)

    def _next_pause(self, host: Host, asked: float) -> float:
        """Return ``asked``, or else twice the last pause, with jitter."""
        if not asked:
            host.last_seconds = min(2 * host.last_seconds or _FIRST_PAUSE, self._max)
            asked = host.last_seconds * (1 + _JITTER * random.random())  # noqa: S311 - no secret
        return min(asked, self._max)

    def _back_off(self, host: Host, seconds: float) -> float:
        """Let a pause, without a probe, end in ``seconds``; return these.

        Give the host up if that is later than REP_DEFER_TIMEOUT after its first refusal.
        """
        now, before = self._clock.monotonic(), host.pause
        until = now + seconds
        if before and now > before.until + self._timeout:  # else a request may have waited since
            before = None
        since = before.since if before else now
        began = before.began if before and now < before.until else now
        gives_up = until > since + self._timeout + _CHECK_INTERVAL
        host.pause = Pause(since, began, until, gives_up)
        self.refused[host.name] = host
        if host.last is not None:  # its response does not count any more
            host.last, host.next_to_send = None, now + host.delay
        host.next_to_leave = -math.inf
        host.next_to_send = max(host.next_to_send, until)
        if gives_up and not (before and before.gives_up):
            self._logger.warning(
                "%s refuses all requests, and may be asked again only after REP_DEFER_TIMEOUT: "
                "its requests are dropped until then",
                ascii(host.name)[1:-1],
            )
        self._notify(host)
        return seconds

    def _adopt_pause(self, host: Host, left: float) -> None:
        """Let the pause of a host end in ``left`` seconds, unless it ends later already."""
        until = self._clock.monotonic() + left
        if host.pause is None or until > host.pause.until + _CLOCK_SLACK:
            self._back_off(host, left)

    def is_dropping(self, name: str) -> bool:
        """Return whether requests to a host are dropped now: see ``Pause.gives_up``."""
        pause = self.refused[name].pause if name in self.refused else None
        return pause is not None and pause.gives_up and self._clock.monotonic() < pause.until

    def _report_pause(self, request: Request, status: int, seconds: float) -> None:
        """Count and log a pause, at INFO only the first of an origin."""
        origin = origin_of_request(request)
        stats.count(self._crawler, stats.BACK_OFF)
        times, before = self.pauses.get(origin) or (0, 0.0)
        self.pauses.put(origin, (times + 1, before + seconds))
        level, host = logging.DEBUG if times else logging.INFO, ascii(origin.host)[1:-1]
        self._logger.log(level, "%s answered %d: no requests for %.3g s", host, status, seconds)


def _is_of_site(response: Response, request: Request) -> bool:
    """Return whether the site answered over HTTP, not a proxy. Only 429 and 503 are examined."""
    if urlparse_cached(request).scheme not in {"http", "https"}:
        return False
    if response.status not in REFUSALS:
        return True
    return not intermediary_error(response, proxied=bool(request.meta.get("proxy")))
