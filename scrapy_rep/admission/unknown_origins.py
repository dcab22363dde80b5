"""Lookups of robots.txt for requests in the scheduler, a bounded number at a time.

A crawl may have requests to many thousands of unknown origins, and a lookup (of the record in the
store, else by a fetch) for all of them at once would need too much memory. So when there is room,
the queue is asked for the next unknown origin, and its lookup begins, with a request that waits for
it in the queue. A fetch takes its route from that: proxy, bind address and User-Agent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from scrapy.crawler import Crawler

from scrapy_rep.admission.hold import UNKNOWN, Ask, Head, Hold, Queue
from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.cache.cache import LookupResult
from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.decision.decider import Decider
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.scrapy_internals import wake_engine


@dataclass(eq=False, repr=False)
class UnknownOrigins:
    """Holds requests of origins whose robots.txt is not known, and looks it up."""

    crawler: Crawler
    lookups: Lookups
    decider: Decider
    queues: Sequence[Queue]
    hosts: Hosts
    hold_changed: Callable[[Origin], None]
    """Called with each origin whose lookup has ended, or did not begin."""

    def __post_init__(self) -> None:
        self.lookups.on_room = self._room_has_come
        self._under_way: set[Origin] = set()
        self.uncached: dict[Origin, Entry | None] = {}
        """Results of lookups that the cache doesn't have, by origin; None after an error."""

    def hold(self, ask: Ask) -> Hold | None:
        """Return that the robots.txt of ``ask`` must be looked up first.

        After a lookup that failed, the request may leave: the middleware repeats the lookup.
        """
        if ask.origin in self.uncached or ask.entry is not None:
            return None
        return Hold(UNKNOWN, math.inf)

    def result(self, origin: Origin, now: float) -> Entry | None:
        """Return a result that the cache doesn't have, and that is valid ``now``; else None."""
        entry = self.uncached.get(origin)
        if entry is None or entry.is_valid(now):
            return entry
        del self.uncached[origin]
        return None

    def begin_lookups(self) -> None:
        """Begin as many lookups as there is room for; none while the engine is paused."""
        engine = self.crawler.engine
        if engine is None or engine.paused:
            return
        while self.lookups.has_room:
            unknown = (queue.next_unknown() for queue in self.queues)
            if (found := next(filter(None, unknown), None)) is None:
                return
            self._look_up(*found)

    def _room_has_come(self) -> None:
        self.begin_lookups()
        wake_engine(self.crawler)  # a queue of scrapy-redis may take more

    def _look_up(self, origin: Origin, head: Head) -> None:
        if origin in self._under_way:
            return
        self._under_way.add(origin)
        try:
            request = head()
            if request is not None and self.hosts.hold_in_pause(origin, request) is None:
                self.decider.start_lookup(request, partial(self._lookup_done, origin))
                return
        except Exception as error:  # noqa: BLE001 - logged
            # The request leaves; the middleware gets the same error, and drops the request.
            if not isinstance(error, CrawlClosingError):
                line = "Error while looking up robots.txt of %s"
                LimitedLogger(__name__, self.crawler).error(line, origin, exc_info=error)
            self.uncached[origin] = None
        self._under_way.discard(origin)
        self.hold_changed(origin)

    def _lookup_done(self, origin: Origin, found: LookupResult | None) -> None:
        self._under_way.discard(origin)
        if self.lookups.closing:
            return
        if found is None or self.lookups.cache.known_entry(origin) is None:
            self.uncached[origin] = found and found.entry
        self.hold_changed(origin)
