"""An unreachable robots.txt: requests wait in the scheduler for its next try; they are deferred.

If only deferred requests are left, the queues count as empty, so that the engine sends
``spider_idle``: a spider that adds requests then need not wait for unreachable origins. The crawl
is not closed, as DontCloseSpider is raised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from scrapy_rep.admission.hold import UNREACHABLE, Ask, Hold, Queue
from scrapy_rep.admission.ticket import Source
from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.entry import Entry
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.verdict import Outage
from scrapy_rep.settings import INTERACTIVE, Options
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted

MARGIN: Final = 0.02
"""Seconds added to a wait, as timers use another clock than the entries of origins and Redis."""
_PATIENCE: Final = 1.0
"""Seconds in which deferred requests count as requests after a spider that was idle has added one:
else a spider that adds requests of unreachable origins would be called without end."""
_LAST: Final = 30.0
"""Seconds in which a crawl ends that has only deferred requests left. A direct request waits no
longer: meanwhile the crawl can't end."""
_TIMED_OUT: Final = "timed out"
_MAX_NAMED: Final = 3


@dataclass(eq=False, repr=False)
class Deferral:
    """Holds requests of origins whose robots.txt is unreachable, until its next try.

    It keeps a crawl open that has only deferred requests, though the spider counts as idle.
    """

    crawler: Crawler
    cache: Cache
    options: Options
    clock: Clock
    queues: Sequence[Queue]

    def __post_init__(self) -> None:
        self._logger = LimitedLogger(__name__, self.crawler)
        self.timeout: float = self.options.defer_timeout
        self._defers = self.timeout > 0 and not self.crawler.settings.getbool(INTERACTIVE)
        self._empty_from = -math.inf
        """From when on deferred requests don't count as requests."""
        self._ends = math.inf
        """When the last deferred requests are dropped, as nothing else is left to do."""
        self._was_idle = False
        """Whether the spider was idle since a request has left last."""
        self._has_logged = False
        self.crawler.signals.connect(self._spider_idle, signals.spider_idle)

    @property
    def lacks_queue(self) -> bool:
        """Whether the settings require that requests are deferred, but no queue keeps them."""
        return self._defers and not self.options.dry_run and not self.queues

    def hold(self, ask: Ask) -> Hold | None:
        entry = ask.entry
        if self.options.dry_run or not self._defers or entry is None or not entry.is_worth_a_wait:
            return None
        return self.until_next_try(entry)

    def until_next_try(self, entry: Entry) -> Hold:
        seconds = max(0.0, entry.end - self.clock.time()) + MARGIN
        return Hold(UNREACHABLE, self.clock.monotonic() + seconds)

    def would_defer(self, source: Source, entry: Entry | None) -> bool:
        """Return whether a request is to wait for the next try, if this is no dry run.

        A direct request does if that try ends in _LAST seconds. One from a queue of scrapy-rep, or
        from the wire, goes back to the queue. No other does.
        """
        if not self._defers or entry is None or not entry.is_worth_a_wait:
            return False
        if source is not Source.DIRECT:
            return bool(self.queues) and source in {Source.QUEUE, Source.WIRE}
        return entry.end - self.clock.time() + self._seconds_of_try(entry.outage) <= _LAST

    def is_overdue(self, since: float, hold: Hold, origin: Origin, *, is_alone: bool) -> bool:
        """Return whether a request is dropped that is deferred since ``since``, not held again.

        It is if the next try, the end of ``hold``, is after REP_DEFER_TIMEOUT; for a worker that
        ``is_alone`` also if the try ends after the crawl, as nothing else is left to do.
        """
        ends = hold.until + self._seconds_of_try(self._outage(origin))
        return hold.until > since + self.timeout or (is_alone and ends > self._ends)

    def _outage(self, origin: Origin) -> Outage | None:
        entry = self.cache.known_entry(origin)
        return None if entry is None else entry.outage

    def _seconds_of_try(self, outage: Outage | None) -> float:
        """Return how long the next try takes if it ends as the last one: 0 but for a time-out."""
        return self.options.timeout if outage and outage.cause.startswith(_TIMED_OUT) else 0.0

    # A crawl that has only deferred requests left.

    def count_deferred(self) -> int:
        """Return how many origins have deferred requests, as ``Queue.count_deferred`` counts."""
        return sum(queue.count_deferred()[0] for queue in self.queues)

    def counts_as_empty(self, deferred: tuple[int, bool]) -> bool:
        number, only = deferred
        return number > 0 and only and self.clock.monotonic() >= self._empty_from

    def request_pushed(self) -> None:
        if self._was_idle:
            self._empty_from = self.clock.monotonic() + _PATIENCE

    def request_popped(self, source: Source) -> None:
        self._empty_from, self._was_idle = -math.inf, False
        if source is not Source.OVERDUE:
            self._ends = math.inf

    def _spider_idle(self) -> None:
        """Raise DontCloseSpider if requests are deferred; log them the first time.

        From the first time on the crawl ends in _LAST seconds: deferred requests whose next try is
        later leave.
        """
        if not self.count_deferred():
            return
        self._was_idle = True
        if self._ends == math.inf:
            self._ends = self.clock.monotonic() + _LAST
            for queue in self.queues:
                for origin in {origin for origin, hold, _ in queue.holds() if hold.reason.defers}:
                    queue.hold_changed(origin)
        lines = () if self._has_logged else (queue.idle_line() for queue in self.queues)
        if line := "; ".join(filter(None, lines)):
            self._has_logged = True
            self._logger.info("%s", line)
        raise DontCloseSpider

    def describe(self, origins: Iterable[Origin]) -> str:
        """Return a log line about the unreachable origins that are left, with those tried next."""
        now = self.clock.time()
        outages = [(origin, self._outage(origin)) for origin in origins]
        outages.sort(key=lambda each: each[1].next_try if each[1] else now)
        named = [_origin_text(*each, now) for each in outages[:_MAX_NAMED]]
        if len(outages) > _MAX_NAMED:
            named.append(f"and {len(outages) - _MAX_NAMED} more")
        what = counted(len(outages), "unreachable origin")
        left = max(0.0, self._ends - self.clock.monotonic())
        return (
            f"Waiting for {what}: {', '.join(named)}. Nothing else is left to do, so the crawl "
            f"ends within {left:.0f} s: what can't be tried again until then is dropped"
        )


def _origin_text(origin: Origin, outage: Outage | None, now: float) -> str:
    if outage is None:  # the cache has no entry of the origin any more
        return str(origin)
    return f"{origin} ({outage.cause}, next try in {max(0.0, outage.next_try - now):.0f} s)"
