"""The hosts that may be sent one request at a time, and when the next one may be sent.

A host is one of them because its robots.txt asks for a delay, or because it has refused a page: it
answered 429, or 503 with Retry-After.

The delay counts from when a request has got its response, or has failed: only the site could tell
when a request that is under way reached it. ``pauses`` tells when a pause begins and ends.

All origins of a host (http, https, other ports) share its record. Workers that share a store send
with the lease of the host (``host_leases``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import stats
from scrapy_rep.admission.delays import Delays
from scrapy_rep.admission.hold import IN_DELAY, IN_PAUSE, Ask, Hold
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.admission.pauses import CHECK_INTERVAL, PAUSE_STATUSES, Pause, Pauses
from scrapy_rep.decision.decider import Decider
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options, default_download_timeout
from scrapy_rep.stores.base import PAUSE
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.download_slots import delay_of_slot
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import host_of

_LEASE: Final = 60.0
"""Seconds, at most DOWNLOAD_TIMEOUT, for which a request without a response blocks its host, unless
the delay is longer: for a host with a delay, and for other workers after a probe."""
_MAX_HOSTS: Final = 10_000
"""Number of hosts from which on those that nothing waits for are forgotten."""

_GIVES_UP: Final = (
    "%s refuses all requests, and may be asked again only after REP_DEFER_TIMEOUT: its requests "
    "are dropped until then"
)


@dataclass(eq=False)
class Host:
    """When the next request to a host may be sent; times in seconds of the monotonic clock.

    Without a pause, it is sent at ``next_to_send``: after the delay, or when the lease of the one
    ``under_way`` ends. In a pause none is sent; the first one after it, the probe, is ``under_way``
    alone, and its end tells whether the pause is over, or another begins.
    """

    name: str
    delay: float = 0.0
    next_to_leave: float = -math.inf
    """When the next request may leave the scheduler."""
    next_to_send: float = -math.inf
    under_way: Request | None = None
    """The request that was sent last, until it has ended."""
    pause: Pause | None = None
    """The last pause; None if the host has answered a request since then."""
    waiting: dict[Origin, None] = field(default_factory=dict)

    def begin(self, request: Request, lease_until: float) -> None:
        """Note that ``request`` is under way, with the lease of the host."""
        self.under_way, self.next_to_send = request, lease_until

    def end(self, next_to_send: float) -> None:
        """Note that nothing is under way, or that its end does not count any more."""
        self.under_way, self.next_to_send = None, next_to_send

    def hold_until(self, until: float, now: float) -> Hold | None:
        """Return the hold of a request that may leave, or be sent, at ``until``; None if it may."""
        if self.under_way is not None and self.pause is not None:
            until = math.inf  # the probe tells
        return Hold(IN_PAUSE if self.pause else IN_DELAY, until) if until > now else None

    def is_over(self, now: float) -> bool:
        """Return whether nothing waits for the host or is under way, and the next may leave."""
        is_later = max(self.next_to_leave, self.next_to_send) > now
        return not (is_later or self.waiting or self.under_way)


@dataclass(eq=False, repr=False)
class Hosts:
    """Holds requests to hosts that have a delay, or have refused one, until it is their turn.

    To a host with a delay or a pause one request is under way, until it ends, or its lease does. A
    pause begins, or becomes longer, with none under way: so the next one is the probe. Nothing that
    was sent before can end the pause.
    """

    crawler: Crawler
    options: Options
    leases: HostLeases
    clock: Clock
    decider: Decider
    hold_changed: Callable[[Origin], None]
    """Called with an origin when the hold of its requests may have changed."""

    def __post_init__(self) -> None:
        self._logger = LimitedLogger(__name__, self.crawler)
        self.delays: Delays = Delays(self.crawler, self.options)
        self.pauses: Pauses = Pauses(self.crawler, self.options, self.clock)
        self._hosts: dict[str, Host] = {}
        self._forget_at = _MAX_HOSTS
        """Number of hosts at which those that are over are searched for."""
        self.paused: dict[str, Host] = {}
        """The hosts with a pause, by name."""
        self._leased: dict[str, Request] = {}
        """The request to each host that was sent with its lease last, and has not ended. A pause,
        which ends the ``under_way`` of a host, changes nothing here."""

    # Whether a request may leave, and be sent.

    def hold(self, ask: Ask) -> Hold | None:
        """Return why a request may not leave yet, unless it will be dropped."""
        host, now = self._hosts.get(ask.origin.host), self.clock.monotonic()
        if host is None:
            return None
        hold = host.hold_until(max(host.next_to_send, host.next_to_leave), now)
        if hold is None or (not host.pause and not ask.delay):
            return None
        if host.pause and (self.is_dropping(host.name) or ask.is_disallowed):
            return None
        host.waiting[ask.origin] = None
        return hold

    def hold_in_pause(self, origin: Origin, request: Request) -> Hold | None:
        """Return the hold in a pause of the host; None for its probe, and what will be dropped."""
        host = self.paused.get(origin.host)
        if host is None or host.under_way is request:
            return None
        return self.hold(Ask(origin, lambda: request, None, self.decider, self.delays))

    def _hold_on_wire(self, origin: Origin, request: Request, delay: float) -> Hold | None:
        host = self._hosts.get(origin.host)
        if host is None or host.under_way is request or not (host.pause or delay):
            return None
        if hold := host.hold_until(host.next_to_send, self.clock.monotonic()):
            host.waiting[origin] = None
        return hold

    def reserve(self, ask: Ask) -> None:
        """Let the next request leave after the delay; after a pause, in CHECK_INTERVAL at least."""
        host, seconds = self._host_of(ask.origin.host, ask.delay), 0.0
        if host is None or (host.pause and ask.is_disallowed):
            return
        if ask.delay:
            # What the download slot keeps back should wait in the scheduler, too.
            seconds = max(ask.delay, delay_of_slot(self.crawler, ask.origin.host))
        if host.pause:
            seconds = max(seconds, CHECK_INTERVAL)
        if seconds:
            host.next_to_leave = self.clock.monotonic() + seconds

    def undo_reserve(self, host: str) -> None:
        if (found := self._hosts.get(host)) is not None:
            found.next_to_leave = -math.inf
            self._wake(found)

    async def acquire(self, origin: Origin, request: Request, delay: float) -> Hold | None:
        """Return why ``request`` may not be sent now, or None: then it has the lease it needs."""
        if (hold := self._hold_on_wire(origin, request, delay)) is not None:
            return hold
        host = self._host_of(origin.host, delay)
        if host is None or not (host.pause or delay):
            return None
        seconds = max(delay, min(_LEASE, default_download_timeout(self.crawler) or _LEASE))
        host.begin(request, self.clock.monotonic() + seconds)  # before the others ask
        try:
            other = await self.leases.claim(host.name, seconds)
        except BaseException:  # cancelled
            self._not_sent(host, request, 0.0)
            raise
        if other is not None:
            # The lease of another worker may be shortened, when it gets its response.
            self._not_sent(host, request, min(other.left, max(CHECK_INTERVAL, delay)))
            if other.holder == PAUSE:
                self._adopt_pause(host, other.left)
        # That may have taken long, and a pause may have begun.
        if (hold := self._hold_on_wire(origin, request, delay)) is not None:
            return hold
        if other is not None:
            return Hold(IN_DELAY, self.clock.monotonic() + other.left)
        stats.count(self.crawler, stats.TURNS)
        self._leased[host.name] = request
        return None

    def _not_sent(self, host: Host, request: Request, seconds: float) -> None:
        """Let the next request be sent in ``seconds``, unless another has taken the turn."""
        if host.under_way is request:
            host.end(self.clock.monotonic() + seconds)
            self._wake(host)

    def ended(self, request: Request, sent_at: float | None, response: Response | None) -> None:
        """Note how ``request`` ended: without ``sent_at`` if it was not sent.

        Only a request with the lease of its host counts, and any response with 429 or 503. The
        response is None after an error.
        """
        may_refuse = response is not None and response.status in PAUSE_STATUSES
        if not self._leased and not may_refuse:
            return
        name, now = host_of(request), self.clock.monotonic()
        is_leased = self._leased.get(name) is request
        if not (is_leased or (may_refuse and name)):  # a URL may have no clear host
            return
        host = self._record(name)
        if is_last := host.under_way is request:
            host.end(now + host.delay)
        left = None
        if is_leased:
            del self._leased[name]
            left = max(0.0, host.next_to_send - now)
        is_probe = is_last and host.pause is not None
        pause = self.pauses.after(host.pause, request, sent_at, response, is_probe=is_probe)
        seconds = self._set_pause(host, pause)
        if is_last:
            self._wake(host)
        self.leases.ended(name, left, seconds)

    # Pauses.

    def pause_under_way(self, name: str) -> Pause | None:
        """Return the pause of a host if it lasts now."""
        pause = self.paused[name].pause if name in self.paused else None
        return pause if pause is not None and self.clock.monotonic() < pause.until else None

    def is_dropping(self, name: str) -> bool:
        """Return whether requests to a host are dropped now: see ``Pause.gives_up``."""
        pause = self.pause_under_way(name)
        return pause is not None and pause.gives_up

    async def read_pauses(self) -> None:
        """Adopt the pauses of other workers."""
        began = self.clock.monotonic()
        pauses = await self.leases.pauses_left() if self.pauses.is_enabled else {}
        late = self.clock.monotonic() - began
        for name, left in pauses.items():
            if left > late:  # else it may be over, and the probe be under way
                self._adopt_pause(self._record(name), left - late)

    def _adopt_pause(self, host: Host, left: float) -> None:
        self._set_pause(host, self.pauses.of_other_worker(host.pause, left, host.delay))

    def _set_pause(self, host: Host, pause: Pause | None) -> float:
        """Set or end a pause; return the seconds of a new one, else 0."""
        before = host.pause
        if pause is before:
            return 0.0
        host.pause, host.next_to_leave = pause, -math.inf
        if pause is None:
            del self.paused[host.name]
            self._wake(host)
            return 0.0
        if pause.gives_up and not (before and before.gives_up and before.since == pause.since):
            self._logger.warning(_GIVES_UP, ascii(host.name)[1:-1])  # once for these refusals
        self.paused[host.name] = host
        now = self.clock.monotonic()
        if host.under_way is not None:
            host.end(now + host.delay)
        host.next_to_send = max(host.next_to_send, pause.until)
        self._wake(host)
        return pause.until - now

    # Records.

    def _host_of(self, name: str, delay: float) -> Host | None:
        """Return the host with its ``delay``; it is added if there is one."""
        if not delay:
            return self._hosts.get(name)
        host = self._record(name)
        host.delay = delay
        return host

    def _record(self, name: str) -> Host:
        if name in self._hosts:
            return self._hosts[name]
        if len(self._hosts) >= self._forget_at:
            now = self.clock.monotonic()
            for over in [each for each, host in self._hosts.items() if host.is_over(now)]:
                del self._hosts[over]
                self.paused.pop(over, None)
            self._forget_at = max(_MAX_HOSTS, 2 * len(self._hosts))
        host = self._hosts[name] = Host(name)
        return host

    def _wake(self, host: Host) -> None:
        waiting, host.waiting = host.waiting, {}
        for origin in waiting:
            self.hold_changed(origin)
