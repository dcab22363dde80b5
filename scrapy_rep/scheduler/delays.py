"""The delays that sites set in robots.txt, and the download slots that must be free for requests.

A site's delay is kept by turns, which are times reserved for one request each (``turns.py``). The
requests wait in the scheduler, where they don't count for CONCURRENT_REQUESTS. A request whose turn
has come must be sent at once, so it leaves only if its download slot is free. Otherwise it would
wait there for a request to another origin, or for the slot's own delay, and be sent later than its
turn.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from scrapy_rep import stats
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.signals import Announcer
from scrapy_rep.utils.download_slots import (
    delay_of_new_slots,
    seconds_until_free,
    slot_name,
    slot_of,
)
from scrapy_rep.utils.lru import BoundedCache
from scrapy_rep.utils.scrapy_internals import downloader_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.crawl_delay import Delay
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock

logger: Final = logging.getLogger(__name__)

_MAX_SLOTS: Final = 100_000
"""Maximum number of download slots, and of origins, whose delays are remembered."""
_LONG: Final = 30.0
"""Seconds of a delay above which the log line contains the requests per hour."""
_CHECK_INTERVAL: Final = 0.1
"""Seconds between two checks of a slot that sends nothing until a download has ended."""
_UNTIL_ONE_ENDS: Final = Hold(HoldReason.SLOT, math.inf)
"""The hold of a slot with the maximum number of downloads. It has no end, because the engine pops
the next request when a download has ended."""


class Delays:
    """Returns the delay of a site, and whether its download slot would send a request at once."""

    def __init__(self, crawler: Crawler, options: Options, clock: Clock) -> None:
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self._min = options.crawl_delay_min
        self._max = options.crawl_delay_max
        self._clock = clock
        self._slots: BoundedCache[str, None] = BoundedCache(max_entries=_MAX_SLOTS)
        self._logged: BoundedCache[Origin, float] = BoundedCache(max_entries=_MAX_SLOTS)
        self._slots_with_own_delay = {
            name
            for name, own in crawler.settings.getdict("DOWNLOAD_SLOTS").items()
            if "delay" in own
        }

    @classmethod
    def from_options(cls, crawler: Crawler, options: Options, clock: Clock) -> Delays | None:
        """Return the delays of a crawl, or None if it obeys no delays of sites."""
        if options.dry_run or not (options.crawl_delay_max or options.crawl_delay_min):
            return None
        return cls(crawler, options, clock)

    @property
    def has_minimum_delay(self) -> bool:
        """Whether all sites have a delay, also those whose robots.txt sets none."""
        return self._min > 0

    def may_have_delay(self, entry: Entry) -> bool:
        """Return whether the requests of an origin may have a delay."""
        return self.has_minimum_delay or (self._max > 0 and entry.asks_for_delay)

    def apply_delay(self, request: Request, delay: Delay | None) -> float:
        """Return the delay in seconds before ``request``, whose robots.txt sets ``delay``.

        The result is 0 if only the delay of its download slot applies. Otherwise ``hold`` applies
        to this slot from now on.
        """
        name = slot_name(self._crawler, request)
        seconds = 0.0 if name in self._slots_with_own_delay else self._limited_seconds(delay)
        if seconds:
            self._slots.put(name, None)
        return seconds

    def log_delay(self, request: Request, origin: Origin, delay: Delay | None) -> None:
        """If the robots.txt of ``origin`` sets a new delay, log the delay, and send a signal."""
        if delay is None or not self._max:
            if len(self._logged):
                self._logged.discard(origin)
        elif self._logged.get(origin) != delay.seconds:
            self._logged.put(origin, delay.seconds)
            self._log(slot_name(self._crawler, request), origin, delay)

    def seconds_until_free(self, request: Request) -> float:
        """Return the seconds until the download slot of ``request`` is free; 0 if it is.

        If the slot is free only after a download, the seconds until the next check are returned.
        """
        slot = slot_of(self._crawler, slot_name(self._crawler, request))
        if slot is None:
            return 0.0
        if slot.queue or slot.free_transfer_slots() <= 0:
            return _CHECK_INTERVAL
        return seconds_until_free(slot)

    def hold(self, name: str) -> Hold | None:
        """Return why no request may leave to the download slot ``name`` yet; None if one may.

        Only slots for which ``apply_delay`` has returned a delay are held.
        """
        slot = slot_of(self._crawler, name) if name in self._slots else None
        if slot is None:
            return None
        downloader = downloader_of(self._crawler)
        # Not slot.active alone: a request that has just left the scheduler isn't in its slot yet.
        active = sum(downloader.get_slot_key(request) == name for request in downloader.active)
        if max(active, len(slot.active)) >= max(1, slot.concurrency):
            return _UNTIL_ONE_ENDS
        seconds = seconds_until_free(slot)
        if active > len(slot.transferring):
            seconds = max(seconds, slot.delay)
        return Hold(HoldReason.SLOT, self._clock.monotonic() + seconds) if seconds else None

    def _limited_seconds(self, delay: Delay | None) -> float:
        """Return the seconds of ``delay``, within REP_CRAWL_DELAY_MIN and REP_CRAWL_DELAY_MAX."""
        asked = 0.0 if delay is None else delay.seconds
        return max(self._min, min(asked, self._max))

    def _log(self, name: str, origin: Origin, delay: Delay) -> None:
        taken: float | None = None
        stats.count(self._crawler, stats.CRAWL_DELAY)
        if name in self._slots_with_own_delay:
            what = f"the delay in DOWNLOAD_SLOTS[{name!a}] is used"
        else:
            slot = slot_of(self._crawler, name)
            own = delay_of_new_slots(self._crawler) if slot is None else slot.delay
            taken = max(own, self._limited_seconds(delay))
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
