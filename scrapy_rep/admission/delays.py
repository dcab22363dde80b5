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


class DelayLimits:
    """The delays of sites, up to REP_CRAWL_DELAY_MAX, in seconds."""

    def __init__(self, crawler: Crawler, options: Options) -> None:
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
        return 0.0 if delay is None else min(delay.seconds, self.max)

    def before(self, decision: Decision) -> tuple[float, str]:
        """Return the seconds of the delay before the request of ``decision``, and what sets them.

        That is ``robots.txt``, or the setting that limits it. The delay is 0 for a request that is
        not known to be allowed, and for hosts as in ``seconds``: the setting then means nothing.
        """
        origin, entry, verdict = decision.origin, decision.entry, decision.verdict
        if origin is None or entry is None or verdict is None or not verdict.allowed:
            return 0.0, ""
        delay = entry.delay(decision.tokens)
        seconds, asked = self.seconds(origin, delay), 0.0 if delay is None else delay.seconds
        return seconds, "robots.txt" if asked == seconds else "REP_CRAWL_DELAY_MAX"


class DelayReports:
    """Counts, logs and keeps each new delay of an origin."""

    def __init__(self, crawler: Crawler, limits: DelayLimits, *, dry_run: bool) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._limits = limits
        self._is = "would be" if dry_run else "is"
        self.reported: BoundedCache[Origin, tuple[Delay, float | None]] = BoundedCache(
            max_entries=_MAX_REPORTED
        )
        """The delays in robots.txt files, and those that are used; None if DOWNLOAD_SLOTS has one
        for the host."""

    def report(self, origin: Origin, delay: Delay) -> None:
        """Report ``delay``, in the robots.txt of ``origin``, unless it was reported before."""
        known = self.reported.get(origin)
        if known is not None and known[0].seconds == delay.seconds:
            return
        taken: float | None = None
        stats.count(self._crawler, stats.CRAWL_DELAY)
        if origin.host in self._limits.hosts_with_own_delay:
            what = f"the delay in DOWNLOAD_SLOTS[{origin.host!a}] {self._is} used"
        else:
            seconds = self._limits.seconds(origin, delay)
            taken = max(delay_of_slot(self._crawler, origin.host), seconds)
            what = f"the delay {self._is} {taken:g} s"
            if delay.seconds > self._limits.max:
                stats.count(self._crawler, stats.CRAWL_DELAY_CAPPED)
                what += " (REP_CRAWL_DELAY_MAX)" if taken == self._limits.max else ""
        values = (
            origin,
            delay.seconds,
            ascii(delay.field.name)[1:-1],
            ascii(delay.field.value)[1:-1],
            delay.field.line,
            what,
        )
        if taken is None or taken < _LONG:
            self._logger.info(_LINE, *values)
        else:  # a message of its own, so that it is logged after ten of the others, too
            self._logger.warning(_LONG_LINE, *values, 3600 / taken)
        self.reported.put(origin, (delay, taken))
