"""The admission: whether a request may leave now; if not, why, and until when.

Before a request leaves, whoever has it calls ``admit``: the queue, and the gate for requests that
come from elsewhere. The result is None, or a ``Hold``. Then ``admit`` is called again at its end,
or when the admission calls ``hold_changed``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from scrapy.crawler import Crawler

from scrapy_rep.admission.deferral import Deferral
from scrapy_rep.admission.hold import Ask, Head, Hold, Queue
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.admission.unknown_origins import UnknownOrigins
from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.decision.decider import Decider
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.per_crawl import get_part


class Admission:
    """Decides whether a request may leave, and whether it may be sent."""

    def __init__(
        self,
        crawler: Crawler,
        lookups: Lookups,
        decider: Decider,
        options: Options,
        clock: Clock,
        leases: HostLeases,
    ) -> None:
        self._lookups = lookups
        self._known = lookups.cache.known_entry
        self.decider: Decider = decider
        self._clock = clock
        self.queues: list[Queue] = []
        self._listeners: list[Callable[[Origin], None]] = []
        self.hosts: Hosts = Hosts(crawler, options, leases, clock, decider, self._hold_changed)
        self.unknown: UnknownOrigins = UnknownOrigins(
            crawler, lookups, decider, self.queues, self.hosts, self._hold_changed
        )
        self.deferral: Deferral = Deferral(crawler, lookups.cache, options, clock, self.queues)
        self._dry_run = options.dry_run

    @classmethod
    def of(cls, crawler: Crawler) -> Admission | None:
        """Return the admission of a crawl, or None if the crawl doesn't obey robots.txt."""
        return get_part(crawler, cls)

    # Whether a request may leave.

    def admit(self, origin: Origin, head: Head, entry: Entry | None = None) -> Hold | None:
        """Let the next request of ``origin`` leave and return None, or return why it has to wait.

        ``head`` and ``entry`` are those of ``Ask``. Raises ValueError as ``Ask.decision`` does.
        """
        if not self.decider.needs_robotstxt(origin):
            return None  # an earlier crawl, without this override, wrote the request to disk
        entry = entry or self._known(origin)
        if entry and not (
            entry.has_delay
            or entry.is_unreachable
            or origin.host in self.hosts.paused
            or origin in self.unknown.uncached
        ):
            return None
        entry = entry or self.unknown.result(origin, self._clock.time())
        if entry is None and self.hosts.is_dropping(origin.host):
            return None  # the middleware drops it
        ask = Ask(origin, head, entry, self.decider, self.hosts.delays)
        hold = self.hosts.hold(ask) or self.unknown.hold(ask) or self.deferral.hold(ask)
        if hold is None:
            self.unknown.uncached.pop(origin, None)  # it is used once
            if not self._dry_run:
                self.hosts.reserve(ask)
        return hold

    # What the queues call.

    def attach(self, queue: Queue) -> None:
        self.queues.append(queue)
        self.on_hold_changed(queue.hold_changed)

    def on_hold_changed(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin whenever the answer of ``admit`` may have changed for it."""
        self._listeners.append(call)

    # For users, and the end of the crawl.

    @property
    def is_closing(self) -> bool:
        """Whether the crawl has begun to close: only what stays is looked up."""
        return self._lookups.closing

    def holds(self) -> Iterator[tuple[Origin, str, float | None, int]]:
        """Yield each origin whose requests wait, why, until when, and the number of requests.

        The end is in seconds since the epoch, or None. An origin comes once for each of its slots.
        """
        offset = self._clock.time() - self._clock.monotonic()
        for queue in self.queues:
            for origin, hold, requests in queue.holds():
                until = None if hold.until == math.inf else hold.until + offset
                yield origin, hold.reason.text, until, requests

    def close(self) -> int:
        """Stop the timers of the queues; return how many requests are deferred."""
        return sum(queue.stop() for queue in self.queues)

    def _hold_changed(self, origin: Origin) -> None:
        for call in self._listeners:
            call(origin)
