"""The delays that sites ask for, as delays of download slots."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy import signals

from scrapy_rep import stats
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.signals import Announcer
from scrapy_rep.stores.registry import outlives_the_process
from scrapy_rep.utils.lru import BoundedCache
from scrapy_rep.utils.pace import (
    delay_of_new_slots,
    keep_apart,
    missing,
    seconds_until_free,
    slot_name,
    slot_of,
)
from scrapy_rep.utils.scrapy_internals import downloader_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader import Slot
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.crawl_delay import Delay
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.settings import Options
    from scrapy_rep.utils.clock import Clock

logger = logging.getLogger(__name__)

_RESERVE: Final = 2
"""Requests that a slot with a long delay may have: one on its way, and one that is next."""
_MAX_SLOTS: Final = 100_000
"""Download slots, and origins, of which it is remembered what was asked for."""
_LOOK: Final = 0.1
"""Seconds between two looks at a slot that sends nothing until a download has ended."""
_UNTIL_ONE_ENDS: Final = Hold(HoldReason.SLOT, math.inf)
"""The engine asks for the next request when a download has ended."""


@dataclass(eq=False)
class _Asked:
    """What is asked of one download slot, and what was made of it."""

    origins: dict[Origin, float] = field(default_factory=dict)
    """Seconds asked for, at most REP_CRAWL_DELAY_MAX, by origin."""
    seconds: float = 0.0
    """The longest of them, with which all of the origins are content."""
    slot: Slot | None = None
    own_delay: float = 0.0
    """The delay that the slot had before."""
    taken: float = 0.0
    """The delay that was set."""

    def ask(self, origin: Origin, seconds: float | None) -> None:
        """Let ``origin`` ask for so many seconds; None where it asks for nothing any more."""
        before = self.origins.pop(origin, None)
        if seconds is not None:
            self.origins[origin] = seconds
            self.seconds = max(self.seconds, seconds)
        if before == self.seconds != seconds:
            self.seconds = max(self.origins.values(), default=0.0)


class Delays:
    """Keeps the requests of a download slot as far apart as its sites ask.

    The delay is set again with every request: Scrapy forgets slots that nothing was asked of for a
    minute, and AutoThrottle adjusts their delays with every response.

    Where turns of requests are reserved, these keep the delay, and the slot only its own: a request
    whose turn has come must not wait behind one of another origin. So none leaves the scheduler
    that the slot would not send at once.
    """

    def __init__(self, crawler: Crawler, options: Options, *, reserved: bool, clock: Clock) -> None:
        """Take the options; ``reserved`` tells whether turns of requests are reserved."""
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self._obeys = options.crawl_delay
        self._min = options.crawl_delay_min
        self._max = options.crawl_delay_max
        self._reserved = reserved
        self._clock = clock
        self._slots: BoundedCache[str, _Asked] = BoundedCache(max_entries=_MAX_SLOTS)
        self._said: BoundedCache[Origin, float] = BoundedCache(max_entries=_MAX_SLOTS)
        self._own = {
            name
            for name, own in crawler.settings.getdict("DOWNLOAD_SLOTS").items()
            if "delay" in own
        }

    @classmethod
    def of(cls, crawler: Crawler, options: Options, clock: Clock) -> Delays | None:
        """Return those of a crawl with these options, None where it obeys no delays of sites."""
        if options.dry_run or not (options.crawl_delay or options.crawl_delay_min):
            return None
        return cls(crawler, options, reserved=outlives_the_process(options.store), clock=clock)

    @property
    def reserved(self) -> bool:
        """Whether turns of requests are reserved, which they are, too, where slots aren't known."""
        return self._reserved or missing(self._crawler) is not None

    @property
    def has_floor(self) -> bool:
        """Whether all sites have a delay, whatever they ask for."""
        return self._min > 0

    def concerns(self, entry: Entry) -> bool:
        """Return whether the requests of an origin may have a delay."""
        return self.has_floor or (self._obeys and entry.asks_for_delay)

    def obey(self, request: Request, origin: Origin, delay: Delay | None) -> None:
        """Remember what ``origin`` asks for, before ``request`` goes to its slot."""
        if not self._obeys:
            delay = None
        if delay is None and not self.has_floor and not len(self._slots):
            return
        name = slot_name(self._crawler, request)
        asked = self._slots.get(name)
        if delay is None and not self.has_floor:
            if asked is not None and origin in asked.origins:
                asked.ask(origin, None)
                self._said.drop(origin)
            return
        asked = self._ask(name, origin, self._bounded(delay))
        if delay is None:
            self._said.drop(origin)
        elif self._said.get(origin) != delay.seconds:
            self._said.put(origin, delay.seconds)
            self._say(name, origin, delay, asked)

    def asked(
        self, request: Request, origin: Origin, entry: Entry, tokens: tuple[str, ...]
    ) -> float:
        """Return the seconds that the fleet leaves between ``request`` and the one before it."""
        seconds = self._bounded(entry.delay(tokens))
        name = slot_name(self._crawler, request)
        if not seconds or name in self._own:
            return 0.0
        self._ask(name, origin, seconds)
        return seconds

    def planned(self, request: Request, delay: Delay | None, own: float) -> float:
        """Return the seconds between two requests of the slot of ``request``, as far as is known.

        ``own`` is the delay that the slot has without ``delay``, which its site asks for.
        """
        if slot_name(self._crawler, request) in self._own:
            return own
        return max(own, self._bounded(delay))

    def seconds_until_free(self, request: Request) -> float:
        """Return for how long the slot of ``request`` keeps it, or when to ask that again."""
        slot = slot_of(self._crawler, slot_name(self._crawler, request))
        if slot is None:
            return 0.0
        if slot.queue or slot.free_transfer_slots() <= 0:
            return _LOOK
        return seconds_until_free(slot)

    def hold(self, name: str) -> Hold | None:
        """Return why no request may leave to slot ``name``, which has enough for its delay."""
        asked = self._slots.get(name)
        if asked is None or not asked.seconds or name in self._own:
            return None
        downloader = downloader_of(self._crawler)
        slot = slot_of(self._crawler, name)
        concurrency = downloader.domain_concurrency if slot is None else slot.concurrency
        most = max(_RESERVE, min(concurrency, math.ceil(concurrency / asked.seconds)))
        if self._reserved:
            most = max(1, min(most, concurrency))
        if slot is not None and len(slot.active) >= most:
            return _UNTIL_ONE_ENDS
        # Not slot.active alone: what has just left the scheduler is not in its slot yet.
        active = sum(downloader.get_slot_key(request) == name for request in downloader.active)
        if active >= most:
            return _UNTIL_ONE_ENDS
        if slot is None or not self._reserved:
            return None
        seconds = seconds_until_free(slot)
        if active > len(slot.transferring):
            seconds = max(seconds, slot.delay)
        return Hold(HoldReason.SLOT, self._clock.monotonic() + seconds) if seconds else None

    def _bounded(self, delay: Delay | None) -> float:
        """Return the seconds that the crawl keeps where a site asks for ``delay``."""
        asked = 0.0 if delay is None or not self._obeys else delay.seconds
        return max(self._min, min(asked, self._max))

    def _ask(self, name: str, origin: Origin, seconds: float) -> _Asked:
        asked = self._slots.get(name)
        if asked is None:
            if not self.reserved and not len(self._slots):
                self._listen()
            asked = _Asked()
            self._slots.put(name, asked)
        asked.ask(origin, seconds)
        return asked

    def _listen(self) -> None:
        # Only from here on, so that crawls of sites that ask for nothing pay nothing.
        for signal in (signals.request_reached_downloader, signals.response_downloaded):
            self._crawler.signals.connect(self._set_delay, signal)

    def _set_delay(self, request: Request) -> None:
        name = request.meta.get("download_slot", "")
        asked = None if name in self._own else self._slots.get(name)
        if asked is None:
            return
        slot = slot_of(self._crawler, name)
        if slot is None:
            return
        seconds = asked.seconds
        if asked.slot is not slot:
            asked.slot, asked.own_delay, asked.taken = slot, slot.delay, 0.0
        if seconds < asked.taken == slot.delay:
            # A site asks for less than it did.
            slot.delay = max(asked.own_delay, seconds)
            asked.taken = slot.delay
        if keep_apart(slot, seconds):
            asked.taken = slot.delay

    def _holds(self, name: str, origin: Origin, asked: _Asked) -> float:
        """Return the delay between two requests to ``origin``, from the next one on."""
        slot = slot_of(self._crawler, name)
        own = delay_of_new_slots(self._crawler) if slot is None else slot.delay
        if asked.slot is slot and own == asked.taken:
            own = asked.own_delay
        return max(own, asked.origins[origin] if self.reserved else asked.seconds)

    def _say(self, name: str, origin: Origin, delay: Delay, asked: _Asked) -> None:
        taken: float | None = None
        stats.count(self._crawler, stats.CRAWL_DELAY)
        if name in self._own:
            what = f"the delay in DOWNLOAD_SLOTS[{name!a}] is used"
        else:
            taken = self._holds(name, origin, asked)
            what = f"the delay is {taken:g} s"
            if delay.seconds > self._max:
                stats.count(self._crawler, stats.CRAWL_DELAY_CAPPED)
                what += " (REP_CRAWL_DELAY_MAX)" if taken == self._max else ""
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
        self._announcer.crawl_delay(origin, delay, taken)
