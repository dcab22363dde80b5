"""Delays between requests to a host: each request waits for its turn.

The delay is counted from the response to the last request, because only then it is certain that
the request was written to the network: until then it may wait for a connection, or for a busy event
loop. A host that takes longer to respond, at least two seconds, gets the next request one delay
after that time.

The origins of a host (http, https, other ports) share its turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep.admission.reason import Ask, Hold, Reason
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.download_slots import delay_of_slot

_LATEST: Final = 2.0
"""Seconds after which a request counts as written to the network, if the delay is shorter. A new
connection seldom takes longer."""
_MAX_HOSTS: Final = 10_000
"""Number of hosts from which on those whose turns are past are forgotten."""


@dataclass(eq=False)
class _Host:
    """The next turn of a host. Times are in seconds of the monotonic clock."""

    delay: float
    next_to_leave: float = -math.inf
    """When the next request may leave the scheduler."""
    next_to_send: float = -math.inf
    """When the next request may be sent."""
    last: Request | None = None
    """The request that was sent last, if it has not ended."""
    origins: set[Origin] = field(default_factory=set)
    """The origins of the host that have asked for a delay."""


class Turn(Reason):
    """The site asks for a delay between two requests, and it is not over."""

    text = "the site has a delay"
    end = "the delay after the last request to the host is over"
    of_host = True

    def __init__(self, crawler: Crawler, clock: Clock, listener: Callable[[str], None]) -> None:
        """Call ``listener`` with a host whose next turn is sooner than it seemed."""
        self._crawler = crawler
        self._clock = clock
        self._listener = listener
        self._hosts: dict[str, _Host] = {}
        self._forget_above = _MAX_HOSTS

    def hold(self, ask: Ask) -> Hold | None:
        """Return when the next turn of the host of ``ask`` comes; None if it has come."""
        host = self._hosts.get(ask.host)
        if host is None or (ask.on_wire and host.last is ask.head()):
            return None
        until = host.next_to_send if ask.on_wire else max(host.next_to_leave, host.next_to_send)
        if until <= self._clock.monotonic():
            return None
        # If robots.txt has expired, the former delay counts: it is looked up when that is over.
        waits = ask.origin in host.origins if ask.entry is None else ask.delay > 0
        return Hold(self, until) if waits else None

    def take(self, ask: Ask) -> None:
        """Let the next request leave a delay after this one."""
        if ask.delay:
            host = self._host(ask)
            # What the download slot keeps back should wait in the scheduler, too.
            pace = max(ask.delay, delay_of_slot(self._crawler, ask.host))
            host.next_to_leave = self._clock.monotonic() + pace

    def lease(self, ask: Ask) -> float:
        """Return the seconds until the next request may be sent, if this one gets no response."""
        return max(ask.delay, _LATEST) + ask.delay if ask.delay else 0.0

    def sent(self, ask: Ask) -> None:
        """Let the next request wait for the response, but not for ever."""
        if ask.delay:
            host = self._host(ask)
            host.last = ask.head()
            host.next_to_send = self._clock.monotonic() + self.lease(ask)

    def refused(self, ask: Ask, left: float, *, paused: bool) -> None:  # noqa: ARG002 - a pause is another reason
        """Wait until the turn of another worker is over."""
        host = self._hosts.get(ask.host)
        if host is not None and host.last is ask.head():
            # A lease that lasts longer is that of a probe, and ends with its response.
            wait = min(left, self.lease(ask))
            host.last, host.next_to_send = None, self._clock.monotonic() + wait

    def ended(
        self,
        host: str,
        request: Request,
        sent_at: float,  # noqa: ARG002
        response: Response | None,  # noqa: ARG002
    ) -> float:
        """Count the delay from now, if ``request`` was the last to be sent to ``host``."""
        found = self._hosts.get(host)
        if found is None:
            return 0.0
        now = self._clock.monotonic()
        if found.last is request:
            found.last = None
            if now + found.delay < found.next_to_send:
                found.next_to_send = now + found.delay
                self._listener(host)
        return max(0.0, found.next_to_send - now)

    def _host(self, ask: Ask) -> _Host:
        found = self._hosts.get(ask.host)
        if found is None:
            if len(self._hosts) >= self._forget_above:
                now = self._clock.monotonic()
                self._hosts = {
                    name: host
                    for name, host in self._hosts.items()
                    if max(host.next_to_leave, host.next_to_send) > now
                }
                # If few could be forgotten, don't search all of them again at the next host.
                self._forget_above = max(_MAX_HOSTS, 2 * len(self._hosts))
            found = self._hosts[ask.host] = _Host(ask.delay)
        found.delay = ask.delay
        found.origins.add(ask.origin)
        return found
