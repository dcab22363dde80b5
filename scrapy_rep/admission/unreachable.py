"""An unreachable robots.txt: requests wait for its next try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.admission.reason import Ask, Hold, Reason
from scrapy_rep.admission.ticket import Source
from scrapy_rep.cache.entry import Entry
from scrapy_rep.settings import Options
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.download_facts import default_download_timeout, download_timeout_of

MARGIN: Final = 0.02
"""Seconds added to a wait. Timers use another clock than the entries of origins and Redis; without
these seconds, a wait could end before its time has come by that clock."""


class Unreachable(Reason):
    """Holds requests of origins whose robots.txt is unreachable, until its next try."""

    text = "robots.txt is unreachable"
    end = "its next try; requests for which that is after REP_DEFER_TIMEOUT are dropped at once"
    defers = True

    def __init__(
        self, crawler: Crawler, options: Options, clock: Clock, queues: Sequence[object]
    ) -> None:
        """``queues`` are those that keep deferred requests, as soon as they are known."""
        self._crawler = crawler
        self._clock = clock
        self._queues = queues
        self._would_defer = (
            options.unreachable_action == "defer"
            and options.defer_timeout > 0
            and not options.interactive
        )
        self._is_active = self._would_defer and not options.dry_run

    @property
    def cannot_defer(self) -> bool:
        """Whether the settings require that requests are deferred, but no queue keeps them."""
        return self._is_active and not self._queues

    def hold(self, ask: Ask) -> Hold | None:
        entry = ask.entry
        if not self._is_active or entry is None or not entry.will_be_retried:
            return None
        return Hold(self, self.next_try(entry))

    def next_try(self, entry: Entry) -> float:
        """Return when the robots.txt of ``entry`` is tried again, by the monotonic clock."""
        seconds = max(0.0, entry.end - self._clock.time()) + MARGIN
        return self._clock.monotonic() + seconds

    def is_deferred(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return whether ``request`` is to wait for the next try."""
        return self._is_active and self.would_defer(source, request, entry)

    def would_defer(self, source: Source, request: Request, entry: Entry | None) -> bool:
        """Return whether ``request`` would wait for the next try, if this is no dry run.

        A direct request is one whose response a component awaits. It waits only if the next try
        comes within its download timeout. Other requests wait only if a queue can keep them.
        """
        if not self._would_defer or entry is None or not entry.will_be_retried:
            return False
        if source is not Source.DIRECT:
            return bool(self._queues)
        seconds = download_timeout_of(request) or default_download_timeout(self._crawler)
        return entry.end - self._clock.time() <= seconds
