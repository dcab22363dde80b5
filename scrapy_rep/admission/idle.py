"""``spider_idle`` and a log line, while all requests that are left are deferred.

A request is deferred while it waits in the scheduler for the next try of its unreachable
robots.txt. If only deferred requests are left, the queues count as empty, so that the engine sends
``spider_idle``: a spider that adds requests then need not wait for unreachable origins. ``Idle``
raises DontCloseSpider, so that the crawl is not closed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider

from scrapy_rep.admission.reason import Queue
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.verdict import Outage
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.scrapy_internals import has_only_downloads_with
from scrapy_rep.utils.text import counted

_PATIENCE: Final = 1.0
"""Seconds in which deferred requests count as requests after a spider that was idle has added one.
If it adds requests of unreachable origins, it would be called without end."""
_MAX_NAMED: Final = 3


class Idle:
    """Keeps a crawl open that has only deferred requests, and logs that once."""

    def __init__(self, crawler: Crawler, clock: Clock, queues: Sequence[Queue]) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._monotonic = clock.monotonic
        self._queues = queues
        self._since = -math.inf
        self._was_idle = False
        """Whether the spider was idle since a request has left last."""
        self._has_logged = False
        crawler.signals.connect(self._spider_idle, signals.spider_idle)
        crawler.signals.connect(self._scheduler_empty, signals.scheduler_empty)

    def count_deferred(self) -> tuple[int, bool]:
        """Return the results of ``Queue.count_deferred`` of all queues together."""
        counts = [queue.count_deferred() for queue in self._queues]
        return sum(number for number, _ in counts), all(only for _, only in counts)

    def counts_as_empty(self, deferred: tuple[int, bool]) -> bool:
        """Return whether a queue counts as empty; ``deferred`` is its ``count_deferred``."""
        number, only = deferred
        return number > 0 and only and self._monotonic() >= self._since

    def request_pushed(self) -> None:
        if self._was_idle:
            self._since = self._monotonic() + _PATIENCE

    def request_popped(self) -> None:
        self._since, self._was_idle = -math.inf, False

    def _spider_idle(self) -> None:
        if not self.count_deferred()[0]:
            return
        self._was_idle = True
        if not self._has_logged:
            self._has_logged = True
            lines = filter(None, (queue.idle_line() for queue in self._queues))
            self._logger.info("%s", "; ".join(lines))
        raise DontCloseSpider

    def _scheduler_empty(self) -> None:
        """Send ``spider_idle`` also while robots.txt of a deferred origin is being fetched."""
        if self.counts_as_empty(self.count_deferred()) and has_only_downloads_with(
            self._crawler, TRANSFER_KEY
        ):
            self._crawler.signals.send_catch_log(
                signals.spider_idle,
                spider=self._crawler.spider,
                dont_log=(DontCloseSpider, CloseSpider),
            )


def describe_outages(
    outages: Sequence[tuple[Origin, Outage | None]], now: float, patience: float, left: float
) -> str:
    """Return a log line about unreachable origins.

    It has the three origins whose next try is first, why they are unreachable, and the time until
    this try. ``now`` is in seconds since the epoch. A request is dropped when it has waited for
    ``patience`` seconds, the first in ``left`` seconds; or sooner, if the next try is later.
    """
    soonest = sorted(outages, key=lambda each: each[1].next_try if each[1] else now)
    named = [_origin_text(*each, now) for each in soonest[:_MAX_NAMED]]
    if len(outages) > _MAX_NAMED:
        named.append(f"and {len(outages) - _MAX_NAMED} more")
    origins = counted(len(outages), "unreachable origin")
    return (
        f"Waiting for {origins}: {', '.join(named)}. Requests are dropped "
        f"after at most {patience:g} s (REP_DEFER_TIMEOUT), the first within {max(0.0, left):.0f} s"
    )


def _origin_text(origin: Origin, outage: Outage | None, now: float) -> str:
    if outage is None:  # the cache has no entry of the origin any more
        return str(origin)
    return f"{origin} ({outage.cause}, next try in {max(0.0, outage.next_try - now):.0f} s)"
