"""The delay between two requests to a host that its robots.txt asks for.

It counts from when a request has got its response: only the site could tell when a request that is
under way reached it. If there is no response for long, the request counts as written to the network
some time after it was sent, and the delay counts from then.

Workers that share a store keep the delay together: each request has the lease of its host in the
store until the delay is over. All origins of a host (http, https, other ports) share its delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import stats
from scrapy_rep.admission.reason import Ask, Hold, HoldReason
from scrapy_rep.decision.decider import Decision
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, Delay, delay_in
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.settings import Options
from scrapy_rep.signals import Announcer, robotstxt_crawl_delay
from scrapy_rep.utils.bounded import BoundedCache, ExpiringDict
from scrapy_rep.utils.clock import Clock, Timer
from scrapy_rep.utils.download_slots import delay_of_slot
from scrapy_rep.utils.log import LimitedLogger

_KEY: Final = "delay"
_LATEST: Final = 2.0
"""Seconds after which a request counts as written to the network, if the delay is shorter. A new
connection seldom takes longer."""
_LATE: Final = 0.1
"""Seconds after which a timer shows that the event loop was blocked."""
_MAX_HOSTS: Final = 10_000
"""Number of hosts from which on those whose delay is over are forgotten."""
_MAX_LOGGED: Final = 100_000
_LONG: Final = 30.0
"""Seconds of a delay above which the log line contains the requests per hour."""


class DelayLimits:
    """The delays of sites, within REP_CRAWL_DELAY_MIN and REP_CRAWL_DELAY_MAX, in seconds."""

    def __init__(self, crawler: Crawler, options: Options) -> None:
        self.min: float = options.crawl_delay_min
        self.max: float = options.crawl_delay_max
        self.hosts_with_own_delay: set[str] = {
            name
            for name, own in crawler.settings.getdict("DOWNLOAD_SLOTS").items()
            if "delay" in own
        }
        """Hosts with a delay in DOWNLOAD_SLOTS. Only that applies to them. The name of the slot
        that a request uses doesn't count: it is copied from one request to the next, as by a
        redirect to another host."""

    def seconds(self, origin: Origin, delay: Delay | None) -> float:
        """Return the delay that the crawl keeps; 0 for a host with a delay in DOWNLOAD_SLOTS."""
        if origin.host in self.hosts_with_own_delay:
            return 0.0
        return max(self.min, min(0.0 if delay is None else delay.seconds, self.max))

    def before(self, decision: Decision) -> tuple[float, str]:
        """Return the seconds of the delay before the request of ``decision``, and what sets them.

        That is ``robots.txt``, or the setting that limits it. The delay is 0 for a request that is
        not known to be allowed, and for hosts as in ``seconds``: the setting then means nothing.
        """
        origin, entry, verdict = decision.origin, decision.entry, decision.verdict
        if origin is None or entry is None or verdict is None or not verdict.allowed:
            return 0.0, ""
        delay: Delay | None = entry.term(decision.tokens, _KEY)
        seconds, asked = self.seconds(origin, delay), 0.0 if delay is None else delay.seconds
        if asked < seconds:
            return seconds, "REP_CRAWL_DELAY_MIN"
        return seconds, "robots.txt" if asked == seconds else "REP_CRAWL_DELAY_MAX"


def _delay_of(ask: Ask) -> float:
    delay: float = ask.terms.get(_KEY, 0.0)
    return delay


def _longest_wait(ask: Ask) -> float:
    """Return the seconds until the next may be sent if this one gets no response; 0: no delay."""
    delay = _delay_of(ask)
    return max(delay, _LATEST) + delay if delay else 0.0


@dataclass(eq=False)
class _Host:
    """The next request to a host. Times are in seconds of the monotonic clock."""

    delay: float = 0.0
    next_to_leave: float = -math.inf
    """When the next request may leave the scheduler."""
    next_to_send: float = -math.inf
    last: Request | None = None
    """The request that was sent last, if it has not ended."""
    origins: set[Origin] = field(default_factory=set)
    """The origins of the host that have asked for a delay."""
    timer: Timer | None = None
    """Comes when ``last`` counts as written to the network."""

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class CrawlDelay(HoldReason):
    """Keeps the delays of all hosts: requests wait until the delay of their host is over."""

    text = "the site has a delay"
    end = "the delay after the last request to the host is over"
    of_host = True
    key = _KEY

    def __init__(
        self, crawler: Crawler, options: Options, clock: Clock, listener: Callable[[str], None]
    ) -> None:
        """Call ``listener`` with a host whose delay ends sooner than it seemed."""
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._announcer = Announcer(crawler)
        self._limits = DelayLimits(crawler, options)
        self._dry_run = options.dry_run
        self.keeps_terms = self._limits.max > 0
        self.for_all = self._limits.min > 0
        self._logged: BoundedCache[Origin, float] = BoundedCache(max_entries=_MAX_LOGGED)
        self._clock = clock
        self._listener = listener
        self._hosts: ExpiringDict[str, _Host] = ExpiringDict(
            _MAX_HOSTS,
            lambda host: max(host.next_to_leave, host.next_to_send) <= clock.monotonic(),
        )

    @staticmethod
    def read(robots: RobotsTxt, tokens: Tokens) -> Delay | None:
        return delay_in(robots.fields_for(*tokens, names=DELAY_FIELDS))

    def term(self, origin: Origin, asked: Any) -> float:
        """Return the delay in seconds; count, log and announce it, if it is new for ``origin``."""
        if asked is not None and self._limits.max and self._logged.get(origin) != asked.seconds:
            self._logged.put(origin, asked.seconds)
            self._report_delay(origin, asked)
        return self._limits.seconds(origin, asked)

    def hold(self, ask: Ask) -> Hold | None:
        """Hold a request with a delay, or with no entry any more, until its host's is over."""
        host = self._hosts.get(ask.host)
        if host is None or (ask.on_wire and host.last is ask.head()):
            return None
        until = host.next_to_send if ask.on_wire else max(host.next_to_leave, host.next_to_send)
        if until <= self._clock.monotonic():
            return None
        # If robots.txt has expired, the former delay counts: it is looked up when that is over.
        if not _delay_of(ask) and not (ask.entry is None and ask.origin in host.origins):
            return None
        return Hold(self, until)

    def take(self, ask: Ask) -> None:
        """Let the next request to the host leave only after the delay, or that of its slot."""
        if _delay_of(ask):
            host = self._update_host(ask)
            # What the download slot keeps back should wait in the scheduler, too.
            pace = max(host.delay, delay_of_slot(self._crawler, ask.host))
            host.next_to_leave = self._clock.monotonic() + pace

    def undo_take(self, host: str) -> None:
        found = self._hosts.get(host)
        if found is not None:
            found.next_to_leave = -math.inf
            self._listener(host)

    def sent(self, ask: Ask) -> float:
        """Make the request the last of its host; return the longest wait after it, 0 for none."""
        if seconds := _longest_wait(ask):
            host = self._update_host(ask)
            host.last = ask.head()
            host.next_to_send = self._clock.monotonic() + seconds
            written = seconds - host.delay
            due = self._clock.monotonic() + written
            host.stop_timer()
            host.timer = self._clock.call_later(written, self._correct_after_stall, host, due)
        return seconds

    def not_sent(self, ask: Ask, left: float, *, paused: bool) -> None:  # noqa: ARG002 - a pause is another reason
        """If the request is the last one, let the next be sent when the lease has ended."""
        host = self._hosts.get(ask.host)
        if host is not None and host.last is ask.head():
            # A lease that lasts longer is that of a probe, and ends with its response.
            wait = min(left, _longest_wait(ask))
            host.last, host.next_to_send = None, self._clock.monotonic() + wait
            host.stop_timer()

    def ended(
        self,
        host: str,
        request: Request,
        sent_at: float,  # noqa: ARG002
        response: Response | None,  # noqa: ARG002
    ) -> float:
        """Let the delay count from now if ``request`` is the last one; return the seconds left."""
        found = self._hosts.get(host)
        if found is None:
            return 0.0
        now = self._clock.monotonic()
        if found.last is request:
            found.last = None
            found.stop_timer()
            if now + found.delay < found.next_to_send:
                found.next_to_send = now + found.delay
                self._listener(host)
        return max(0.0, found.next_to_send - now)

    def _correct_after_stall(self, host: _Host, due: float) -> None:
        """Let the delay count from now if the event loop was blocked at ``due``.

        What was handed over before that may be written to the network only now.
        """
        now = self._clock.monotonic()
        if host.last is not None and now - due > _LATE:
            host.next_to_send = max(host.next_to_send, now + host.delay)

    def _update_host(self, ask: Ask) -> _Host:
        """Return the host of ``ask``, with its origin and its delay; add it if it is new."""
        host = self._hosts.get(ask.host) or self._hosts.put(ask.host, _Host())
        host.delay = _delay_of(ask)
        host.origins.add(ask.origin)
        return host

    def _report_delay(self, origin: Origin, delay: Delay) -> None:
        """Count and log ``delay``, and send its signal."""
        taken: float | None = None
        word = "would be" if self._dry_run else "is"
        stats.count(self._crawler, stats.CRAWL_DELAY)
        if origin.host in self._limits.hosts_with_own_delay:
            what = f"the delay in DOWNLOAD_SLOTS[{origin.host!a}] {word} used"
        else:
            seconds = self._limits.seconds(origin, delay)
            taken = max(delay_of_slot(self._crawler, origin.host), seconds)
            what = f"the delay {word} {taken:g} s"
            if delay.seconds > self._limits.max:
                stats.count(self._crawler, stats.CRAWL_DELAY_CAPPED)
                what += " (REP_CRAWL_DELAY_MAX)" if taken == self._limits.max else ""
            if taken > _LONG:
                what += f", at most {3600 / taken:.0f} requests per hour"
        self._logger.info(
            "robots.txt of %s asks for %g s between two requests (%s: %s, line %d): %s",
            origin,
            delay.seconds,
            ascii(delay.field.name)[1:-1],
            ascii(delay.field.value)[1:-1],
            delay.field.line,
            what,
        )
        self._announcer.send(robotstxt_crawl_delay, origin=origin, delay=delay, taken=taken)
