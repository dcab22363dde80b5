"""The delays between two requests to a host that sites ask for in robots.txt."""

from __future__ import annotations

import logging
from typing import Final

from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.cache.entry import Entry
from scrapy_rep.decision.decider import Decision
from scrapy_rep.protocol.crawl_delay import Delay
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options
from scrapy_rep.signals import Announcer
from scrapy_rep.utils.download_slots import delay_of_slot
from scrapy_rep.utils.lru import BoundedCache

logger: Final = logging.getLogger(__name__)

_MAX_LOGGED: Final = 100_000
"""Maximum number of origins whose logged delays are remembered."""
_LONG: Final = 30.0
"""Seconds of a delay above which the log line contains the requests per hour."""


class CrawlDelays:
    """Returns the delay that applies to a request, within the limits of the settings."""

    def __init__(self, crawler: Crawler, options: Options) -> None:
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self._min = options.crawl_delay_min
        self._max = options.crawl_delay_max
        self.has_minimum: bool = options.crawl_delay_min > 0
        """Whether all sites have a delay, also those whose robots.txt sets none."""
        self._logged: BoundedCache[Origin, float] = BoundedCache(max_entries=_MAX_LOGGED)
        self._hosts_with_own_delay = {
            name
            for name, own in crawler.settings.getdict("DOWNLOAD_SLOTS").items()
            if "delay" in own
        }

    @classmethod
    def from_options(cls, crawler: Crawler, options: Options) -> CrawlDelays | None:
        """Return the delays of a crawl, or None if it obeys no delays of sites."""
        if options.dry_run or not (options.crawl_delay_max or options.crawl_delay_min):
            return None
        return cls(crawler, options)

    def may_apply(self, entry: Entry) -> bool:
        """Return whether the requests of an origin may have a delay."""
        return self.has_minimum or (self._max > 0 and entry.asks_for_delay)

    def seconds_before(self, decision: Decision) -> float:
        """Return the delay before the request of ``decision`` in seconds; 0 if it has none.

        A request that is not known to be allowed has none. If DOWNLOAD_SLOTS has a delay for the
        host, only that applies. The name of the slot that the request uses doesn't count: it is
        copied from one request to the next, as by a redirect to another host.
        """
        origin, entry, verdict = decision.origin, decision.entry, decision.verdict
        if origin is None or entry is None or verdict is None or not verdict.allowed:
            return 0.0
        return self.seconds(origin, entry.delay(decision.tokens))

    def seconds(self, origin: Origin, delay: Delay | None) -> float:
        """Return the seconds of ``delay``, within REP_CRAWL_DELAY_MIN and REP_CRAWL_DELAY_MAX."""
        if origin.host in self._hosts_with_own_delay:
            return 0.0
        asked = 0.0 if delay is None else delay.seconds
        return max(self._min, min(asked, self._max))

    def log(self, origin: Origin, delay: Delay | None) -> None:
        """If the robots.txt of ``origin`` sets a new delay, log the delay, and send a signal."""
        if delay is not None and self._max and self._logged.get(origin) != delay.seconds:
            self._logged.put(origin, delay.seconds)
            self._log(origin, delay)

    def _log(self, origin: Origin, delay: Delay) -> None:
        taken: float | None = None
        stats.count(self._crawler, stats.CRAWL_DELAY)
        if origin.host in self._hosts_with_own_delay:
            what = f"the delay in DOWNLOAD_SLOTS[{origin.host!a}] is used"
        else:
            taken = max(delay_of_slot(self._crawler, origin.host), self.seconds(origin, delay))
            what = f"the delay is {taken:g} s"
            if delay.seconds > self._max:
                stats.count(self._crawler, stats.CRAWL_DELAY_CAPPED)
                what += " (REP_CRAWL_DELAY_MAX)" if taken == self._max else ""
            if taken > _LONG:
                what += f", at most {3600 / taken:.0f} requests per hour"
        logger.info(
            "robots.txt of %s asks for %g s between two requests (%s: %s, line %d): %s",
            origin,
            delay.seconds,
            ascii(delay.field.name)[1:-1],
            ascii(delay.field.value)[1:-1],
            delay.field.line,
            what,
            extra={"spider": self._crawler.spider},
        )
        self._announcer.send_crawl_delay(origin, delay, taken)
