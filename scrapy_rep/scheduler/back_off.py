"""Back-off: hosts that answered 429 or 503 are left alone for a time."""

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
from scrapy_rep.fetch.route import said_on_the_way
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.freshness import retry_after
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.scheduler.pauses import LEASE
from scrapy_rep.signals import Announcer
from scrapy_rep.utils.concurrency import trap_cancelled
from scrapy_rep.utils.once import Once
from scrapy_rep.utils.pace import is_in_slot
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

logger = logging.getLogger(__name__)

_TOO_MANY_REQUESTS: Final = 429
_SERVICE_UNAVAILABLE: Final = 503
_FIRST: Final = 1.0
"""Seconds after the first 429 without Retry-After."""
_JITTER: Final = 0.25
"""By what part of itself that is made longer at most."""
_LOOK: Final = 1.0
"""Seconds between two looks whether there may be a probe, where another was let out."""
_SHORT_LOOK: Final = 0.05
"""Seconds between two looks whether a request that was let out has come to nothing."""
_SOON: Final = 0.02
"""Seconds by which the clock of the store may be behind."""
_LEASES: Final = 3
"""Leases of others that a worker waits for, before it sends a probe without one."""
_MAX_HOSTS: Final = 10_000
"""Hosts above which those are forgotten that nothing waits for."""
_SPARED_KEY: Final = "rep_back_off"
"""Meta key: when the host closed for which a retry was not counted, by the monotonic clock."""


@dataclass(eq=False)
class _Closed:
    """A host that is left alone. Times are by the monotonic clock."""

    since: float
    """When it refused the first request in a row."""
    closed_at: float = 0.0
    """When it refused the last one that counts."""
    until: float = 0.0
    """What is sent after this is a probe."""
    pause: float = 0.0
    """Seconds of the last pause; without Retry-After the next one is twice as long."""
    next_look: float = 0.0
    """When to ask whether a probe may be sent; infinity: it is told."""
    under_way: WeakSet[Request] = field(default_factory=WeakSet)
    """Requests that were in the downloader when it refused that one: they tell nothing of now."""
    may_probe: bool = False
    asked_at: float = -math.inf
    """When that was asked; a turn of the site may come much later."""
    let_out: float = -math.inf
    """When the last request left that may."""
    probe: Request | None = None
    """The request that is on its way."""
    given_up: bool = False
    origins: dict[Origin, None] = field(default_factory=dict)
    """The origins that wait."""


class BackOff:
    """Holds the requests of hosts that answered a page with 429, or with 503 and Retry-After.

    When the time is over, one request leaves, the probe; the others follow when it is answered.
    Workers of a fleet agree by a lease in the store on who sends it. When a host has refused all
    requests for REP_DEFER_TIMEOUT, those that wait are dropped.
    """

    def __init__(self, crawler: Crawler, options: Options, pauses: Pauses, clock: Clock) -> None:
        """Take the parts of a crawl."""
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self._max = options.back_off_max
        self._timeout = options.defer_timeout
        self._pauses = pauses
        self._clock = clock
        self._hosts: dict[str, _Closed] = {}
        self._most = _MAX_HOSTS
        self._told: Callable[[Origin], None] = lambda _: None
        self._gives_up: Callable[[], None] = lambda: None
        self._said = Once()
        self._closing = False

    def start(self) -> None:
        """Listen to the downloader: there is a queue that holds requests."""
        connect = self._crawler.signals.connect
        connect(self._reached, signals.request_reached_downloader)
        connect(self._left, signals.request_left_downloader)
        # A response from the HTTP cache sends no such signal.
        connect(self._downloaded, signals.response_downloaded)

    def listen(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin when there is something new to be asked about it."""
        self._told = call

    def when_given_up(self, call: Callable[[], None]) -> None:
        """Call ``call`` when requests to some host are to be dropped."""
        self._gives_up = call

    def leaves_alone(self, host: str) -> bool:
        """Return whether ``host`` has refused requests, and has answered none since."""
        return host in self._hosts

    def hold(self, origin: Origin) -> Hold | None:
        """Return until when the requests of ``origin`` wait; None if the next one may leave."""
        closed = self._hosts.get(origin.host) if self._hosts else None
        if closed is None or self.has_given_up(origin.host):
            return None
        now = self._clock.monotonic()
        if closed.may_probe:
            if now < closed.asked_at + LEASE:
                return None
            # Another worker may have sent a probe since, and tell to wait.
            closed.may_probe, closed.next_look = False, now
        closed.origins[origin] = None
        if closed.next_look <= now:
            if now < closed.let_out + _LOOK and self._under_way(origin.host):
                closed.next_look = now + _SHORT_LOOK
            else:
                closed.next_look = math.inf
                self._begin(self._ask_for_probe(origin.host, closed))
        return Hold(HoldReason.BACK_OFF, closed.next_look)

    def went(self, host: str) -> None:
        """Take note that a request to ``host`` leaves."""
        closed = self._hosts.get(host) if self._hosts else None
        if closed is not None and closed.may_probe:
            closed.may_probe = False
            # It may come to nothing before it reaches the downloader, as one that is in the cache.
            closed.let_out = self._clock.monotonic()
            closed.next_look = closed.let_out + _SHORT_LOOK

    def has_given_up(self, host: str) -> bool:
        """Return whether requests to ``host`` are to be dropped."""
        closed = self._hosts.get(host)
        if closed is None or not closed.given_up:
            return False
        return self._clock.monotonic() < closed.until

    def dropped(self, request: Request) -> IgnoreRequest:
        """Count ``request``, which is dropped; return what is to be raised."""
        stats.count(self._crawler, stats.BACK_OFF_DROPPED)
        host = urlparse_cached(request).hostname
        return IgnoreRequest(f"{host!a} has refused all requests for REP_DEFER_TIMEOUT")

    def close(self) -> None:
        """Ask the store no more."""
        self._closing = True

    # What the downloader tells.

    def _reached(self, request: Request) -> None:
        closed = self._closed(request)
        if closed and closed.probe is None and closed.until <= self._clock.monotonic():
            closed.probe = request
            closed.next_look = math.inf

    def _left(self, request: Request) -> None:
        closed = self._closed(request)
        if closed and closed.probe is request:
            # There was no answer. What becomes of the request is Scrapy's, and another is sent.
            closed.probe = None
            closed.next_look = self._clock.monotonic()
            self._tell(closed)

    def _closed(self, request: Request) -> _Closed | None:
        if not self._hosts or TRANSFER_KEY in request.meta:
            return None
        return self._hosts.get(urlparse_cached(request).hostname or "")

    def _under_way(self, host: str) -> list[Request]:
        """Return the requests to ``host`` that have left the scheduler, and are not answered."""
        return [
            request
            for request in getattr(downloader_of(self._crawler), "active", ())
            if TRANSFER_KEY not in request.meta and urlparse_cached(request).hostname == host
        ]

    def _downloaded(self, response: Response, request: Request) -> None:
        status = response.status
        may_refuse = status in {_TOO_MANY_REQUESTS, _SERVICE_UNAVAILABLE}
        if not (may_refuse or self._hosts) or TRANSFER_KEY in request.meta:
            return
        if urlparse_cached(request).scheme not in {"http", "https"}:
            return
        if may_refuse and said_on_the_way(response, proxied=bool(request.meta.get("proxy"))):
            return
        value = (response.headers.get("Retry-After") or b"").decode("latin-1")
        asked = retry_after(value, self._clock.time())
        origin = origin_of(request.url)
        host = origin.host
        closed = self._hosts.get(host)
        now = self._clock.monotonic()
        under_way = closed is not None and (
            request in closed.under_way
            or now - request.meta.get("download_latency", 0.0) < closed.until
        )
        # A 503 alone may be of that page.
        if not may_refuse or (status == _SERVICE_UNAVAILABLE and not asked):
            if closed is not None and not under_way:
                self._open(host, closed)
        elif closed is None or not under_way:
            self._close(origin, status, asked, now)
        else:
            self._spare(request, closed)
            if asked and now + min(asked, self._max) > closed.until:
                closed.until = closed.next_look = now + min(asked, self._max)

    @staticmethod
    def _spare(request: Request, closed: _Closed) -> None:
        """Don't count a retry of a request that was under way when its host closed."""
        # Once for each time, as requests come back at once where nothing holds them.
        if request.meta.get(_SPARED_KEY) != closed.closed_at:
            request.meta[_SPARED_KEY] = closed.closed_at
            request.meta["retry_times"] = request.meta.get("retry_times", 0) - 1

    # What becomes of a host.

    def _close(self, origin: Origin, status: int, asked: float | None, now: float) -> None:
        host = origin.host
        closed = self._hosts.get(host)
        if closed is None:
            if len(self._hosts) >= self._most:
                self._hosts = {k: v for k, v in self._hosts.items() if v.origins or v.until > now}
                # Where they all stay, not again for each.
                self._most = max(_MAX_HOSTS, 2 * len(self._hosts))
            closed = self._hosts[host] = _Closed(now)
        if not asked:
            closed.pause = min(2 * closed.pause or _FIRST, self._max)
            asked = closed.pause * (1 + _JITTER * random.random())  # noqa: S311
        seconds = min(asked, self._max)
        closed.closed_at, closed.probe = now, None
        closed.under_way = WeakSet(
            each for each in self._under_way(host) if is_in_slot(self._crawler, each)
        )
        stats.count(self._crawler, stats.BACK_OFF)
        logger.log(
            logging.INFO if self._said.is_first(host) else logging.DEBUG,
            "%s answered %d: no requests for %.3g s",
            ascii(host)[1:-1],
            status,
            seconds,
            extra={"spider": self._crawler.spider},
        )
        self._announcer.send_back_off(origin, status, seconds)
        self._wait(host, closed, now + seconds)
        self._begin(self._tell_fleet(host, closed, seconds))

    def _wait(self, host: str, closed: _Closed, until: float) -> None:
        closed.until = closed.next_look = until
        if not closed.given_up and until > closed.since + self._timeout + _LOOK:
            closed.given_up = True
            logger.warning(
                "%s refuses all requests, and may be asked again only after REP_DEFER_TIMEOUT: "
                "its requests are dropped until then",
                ascii(host)[1:-1],
                extra={"spider": self._crawler.spider},
            )
            self._gives_up()
        self._tell(closed)

    def _open(self, host: str, closed: _Closed) -> None:
        del self._hosts[host]
        self._tell(closed)
        self._begin(self._pauses.end(host))

    def _tell(self, closed: _Closed) -> None:
        origins, closed.origins = closed.origins, {}
        for origin in origins:
            self._told(origin)

    # What the fleet shares.

    def _begin(self, call: Coroutine[object, object, None]) -> None:
        if self._closing:
            call.close()
            return
        deferred_from_coro(call).addErrback(trap_cancelled)

    async def _tell_fleet(self, host: str, closed: _Closed, seconds: float) -> None:
        self._follow(host, closed, await self._pauses.begin(host, seconds))

    async def _ask_for_probe(self, host: str, closed: _Closed) -> None:
        """Let one request leave, if no other worker of the fleet does, and none tells to wait."""
        is_ours, left = await self._pauses.claim(host)
        if self._hosts.get(host) is not closed:
            return
        now = closed.asked_at = self._clock.monotonic()
        closed.next_look = now + (_LOOK if left is None else max(left, _SOON))
        closed.may_probe = is_ours or (left is None and now > closed.until + _LEASES * LEASE)
        self._follow(host, closed, left)
        self._tell(closed)

    def _follow(self, host: str, closed: _Closed, left: float | None) -> None:
        """Wait as long as another worker says."""
        until = -math.inf if left is None else self._clock.monotonic() + left
        if until > closed.until + _SOON and self._hosts.get(host) is closed:
            self._wait(host, closed, until)
