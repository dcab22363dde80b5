"""The delay between two requests that a crawl keeps for a robots.txt, and how it is logged."""

from __future__ import annotations

from typing import Final

from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.decision.decider import Decision
from scrapy_rep.protocol.crawl_delay import Delay
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.download_slots import delay_of_slot
from scrapy_rep.utils.log import LimitedLogger

_MAX_REPORTED: Final = 100_000
_LONG: Final = 30.0
"""Seconds from which on a delay is logged as a warning, with the requests per hour."""
_LINE: Final = "robots.txt of %s asks for %g s between two requests (%s: %s, line %d): %s"
_LONG_LINE: Final = f"{_LINE}, at most %.0f requests per hour"


class Delays:
    """The delays of sites, up to REP_CRAWL_DELAY_MAX. A host in DOWNLOAD_SLOTS may have its own."""

    def __init__(self, crawler: Crawler, options: Options) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self.max: float = options.crawl_delay_max
        self._is = "would be" if options.dry_run else "is"
        self.hosts_with_own_delay: set[str] = {
            name
            for name, own in crawler.settings.getdict("DOWNLOAD_SLOTS").items()
            if "delay" in own
        }
        """Hosts with a delay in DOWNLOAD_SLOTS. Only that applies to them. The name of the slot
        that a request uses doesn't count: it is copied from one request to the next, as by a
        redirect to another host."""
        self.reported: BoundedCache[Origin, tuple[Delay, float | None]] = BoundedCache(
            max_entries=_MAX_REPORTED
        )
        """The delays in robots.txt files, and those that are used; None if DOWNLOAD_SLOTS has one
        for the host."""

    def delay_for(self, decision: Decision) -> tuple[float, Delay | None]:
        """Return the seconds of the delay for the request of ``decision``; what asks for it.

        0 for a host with a delay in DOWNLOAD_SLOTS, and if the request is not known to be allowed.
        """
        origin, entry, verdict = decision.origin, decision.entry, decision.verdict
        if origin is None or entry is None or verdict is None or not verdict.allowed:
            return 0.0, None
        asked = entry.delay(decision.tokens)
        if asked is None or origin.host in self.hosts_with_own_delay:
            return 0.0, asked
        return min(asked.seconds, self.max), asked

    def kept(self, decision: Decision) -> float:
        """Return the seconds of the delay for the request of ``decision``; report a new one."""
        seconds, asked = self.delay_for(decision)
        if asked is not None and self.max and decision.origin is not None:
            known = self.reported.get(decision.origin)
            if known is None or known[0].seconds != asked.seconds:
                self._report(decision.origin, asked, seconds)
        return seconds

    def _report(self, origin: Origin, asked: Delay, seconds: float) -> None:
        taken: float | None = None
        if origin not in self.reported:
            stats.count(self._crawler, stats.CRAWL_DELAY)
        if origin.host in self.hosts_with_own_delay:
            what = f"the delay in DOWNLOAD_SLOTS[{origin.host!a}] {self._is} used"
        else:
            taken = max(delay_of_slot(self._crawler, origin.host), seconds)
            what = f"the delay {self._is} {taken:g} s"
            if asked.seconds > self.max:
                stats.count(self._crawler, stats.CRAWL_DELAY_CAPPED)
                what += " (REP_CRAWL_DELAY_MAX)" if taken == self.max else ""
        field = asked.field
        name, value = ascii(field.name)[1:-1], ascii(field.value)[1:-1]
        values = (origin, asked.seconds, name, value, field.line, what)
        if taken is None or taken < _LONG:
            self._logger.info(_LINE, *values)
        else:  # a message of its own, so that it is logged after ten of the others, too
            self._logger.warning(_LONG_LINE, *values, 3600 / taken)
        self.reported.put(origin, (asked, taken))
