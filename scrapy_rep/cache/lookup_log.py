"""Logs the results of lookups: which sites are unreachable, and which are reachable again."""

import logging
from typing import Final

from scrapy.crawler import Crawler

from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import Unavailable, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted, utc_time_text

_DOWN: Final = "robots.txt of %s is unreachable: %s; %s, next try in %.1f s"
_STILL_DOWN: Final = "robots.txt of %s is still unreachable, since %s: %s; %s, next try in %.1f s"
_KNOWN_DOWN: Final = (
    "robots.txt of %s has been unreachable since %s, known from an earlier try: %s; %s, next try "
    "at %s"
)
_BACK: Final = "robots.txt of %s is reachable again, after being unreachable since %s: %s"
_REFUSED: Final = (
    "robots.txt of %s was refused: %s; that means no rules, so all its pages are allowed"
)
_MEANWHILE: Final = {
    None: "its last copy is used",
    False: "its pages are disallowed",
    True: "all its pages are allowed",
}
"""What an unreachable robots.txt means, by whether all pages of the site are allowed; None if its
rules decide."""


class LookupLog:
    """Logs the results of the lookups of a crawl."""

    def __init__(self, policy: Policy, began: float, crawler: Crawler | None) -> None:
        """``began`` is the time at which the crawl began, in seconds since the epoch."""
        self._policy = policy
        self._began = began
        self._logger = LimitedLogger(__name__, crawler)
        self._down: BoundedCache[Origin, float] = BoundedCache(max_entries=MAX_ENTRIES)
        """Origins that were logged as unreachable, and since when they are."""

    def log_fetched(self, record: Record, previous: Record | None, now: float) -> None:
        """Log how a fetch ended; not of an unreachable file that isn't tried again."""
        since = None if previous is None else previous.unreachable_since
        if not isinstance(record.last, Unreachable):
            if not self._log_reachable_again(record, since):
                self._logger.debug("robots.txt of %s: %s", record.origin, _result_of(record))
            self._log_refused(record)
            return
        if record.next_try is None:
            return
        evidence = record.last.evidence
        verdict = self._policy.access(record, now).verdict
        effect = _MEANWHILE[verdict and verdict.allowed]
        what = evidence.summary, effect, record.next_try - evidence.at
        # At DEBUG if the fetch failed on the route to the origin: the fetcher has logged the cause.
        if previous is None or since is None:
            level = logging.WARNING if record.of_origin else logging.DEBUG
            self._log_unreachable(level, _DOWN, record, *what)
        else:
            is_known = previous.last.evidence.at >= self._began or record.origin in self._down
            level = logging.DEBUG if is_known or not record.of_origin else logging.INFO
            self._log_unreachable(level, _STILL_DOWN, record, utc_time_text(since), *what)

    def log_stored(self, record: Record, now: float) -> None:
        """Log a record from the store if its file is unreachable, no longer so, or was refused."""
        self._log_refused(record)
        if record.unreachable_since is None and not self._down:
            return
        verdict = self._policy.access(record, now).verdict
        if verdict is None or verdict.outage is None:
            if record.unreachable_since is None:
                self._log_reachable_again(record, None)
            return
        level = logging.DEBUG if record.origin in self._down else logging.INFO
        cause, since, next_try = verdict.outage
        what = cause, _MEANWHILE[verdict.allowed], utc_time_text(next_try)
        self._log_unreachable(level, _KNOWN_DOWN, record, utc_time_text(since), *what)

    def _log_refused(self, record: Record) -> None:
        last = record.last
        if isinstance(last, Unavailable) and last.is_refused:
            self._logger.info(_REFUSED, record.origin, last.evidence.summary)

    def _log_reachable_again(self, record: Record, since: float | None) -> bool:
        """Log that the file is reachable again, if it was unreachable; return whether it was."""
        since = self._down.get(record.origin) or since
        if since is None:
            return False
        self._down.discard(record.origin)
        self._logger.info(_BACK, record.origin, utc_time_text(since), _result_of(record))
        return True

    def _log_unreachable(self, level: int, line: str, record: Record, *what: object) -> None:
        """Log ``line``; above DEBUG, the file is also remembered as unreachable."""
        self._logger.log(level, line, record.origin, *what)
        if level > logging.DEBUG and record.unreachable_since is not None:
            self._down.put(record.origin, record.unreachable_since)


def _result_of(record: Record) -> str:
    evidence = record.last.evidence
    size, hops = counted(evidence.size, "byte"), len(evidence.hops)
    return f"{record.last.kind.value} ({evidence.summary}, {size}, redirects: {hops})"
