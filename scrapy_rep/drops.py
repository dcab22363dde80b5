"""What a crawl drops because of robots.txt: in the log, in the stats, and a summary at its end."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Final

from scrapy_rep import stats
from scrapy_rep.exceptions import explain
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.signals import META_KEY, as_meta
from scrapy_rep.utils.per_crawl import PerCrawl
from scrapy_rep.utils.text import show, without_credentials

if TYPE_CHECKING:
    from collections.abc import Hashable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.verdict import Verdict
    from scrapy_rep.signals import Announcer

logger = logging.getLogger(__name__)

_REASON_COUNTS: Final = {
    reason: stats.FORBIDDEN_REASON_COUNT.format(reason=reason.value) for reason in Reason
}
_MAX_SHOWN: Final = 10
"""Rules and origins whose first drop is logged at INFO, and lines of the summary."""
_MAX_TOLD_APART: Final = 10_000
"""Rules and origins that are told apart."""
_DROPS: Final[PerCrawl[Drops]] = PerCrawl()


class Drops:
    """Tells of requests that are dropped."""

    def __init__(self, crawler: Crawler, announcer: Announcer, *, is_interactive: bool) -> None:
        self._crawler = crawler
        self._is_interactive = is_interactive
        self._announcer = announcer
        self._by_cause: dict[Hashable, int] = {}
        self._told: dict[Hashable, str] = {}
        """What is told of each cause; a rule is cut, as sites may have thousands of long ones."""
        self._dropped = 0
        self._exempt = 0
        _DROPS.put(crawler, self)

    @classmethod
    def of(cls, crawler: Crawler) -> Drops | None:
        """Return that of a crawl; None where it doesn't obey robots.txt."""
        return _DROPS.get(crawler)

    def add(self, request: Request, verdict: Verdict, page: str | None = None) -> None:
        """Tell that ``request`` is dropped: the first of each rule and origin at INFO.

        ``page`` is the URL of the page that forbids to follow its links, where that is why.
        """
        request.meta[META_KEY] = as_meta(verdict)
        stats.count(self._crawler, stats.FORBIDDEN)
        stats.count(self._crawler, _REASON_COUNTS[verdict.reason])
        level, more = self._level(verdict)
        if logger.isEnabledFor(level):
            logger.log(
                level,
                "Forbidden by robots.txt: %(request)s: %(verdict)s%(more)s",
                {
                    "request": show(request),
                    "verdict": explain(verdict) + (f" ({_shown(page)})" if page else ""),
                    "more": more,
                },
                extra={"spider": self._crawler.spider},
            )
        if self._is_interactive:
            # Shown without a log, too (--nolog).
            sys.stderr.write(
                f"Forbidden by robots.txt: {show(request)}: {explain(verdict)}. To ignore "
                "robots.txt: -s ROBOTSTXT_OBEY=False\n"
            )
        self._announcer.forbidden(request, verdict, dropped=True)

    def exempt(self) -> None:
        """Count a request with ``dont_obey_robotstxt``."""
        self._exempt += 1
        stats.count(self._crawler, stats.EXEMPT)

    def summarise(self) -> None:
        """Log which rules and origins dropped most, if any did, and how many were not asked."""
        if self._exempt:
            logger.info(
                "Requests sent regardless of robots.txt (dont_obey_robotstxt): %d",
                self._exempt,
                extra={"spider": self._crawler.spider},
            )
        if not self._dropped:
            return
        most = sorted(self._by_cause.items(), key=lambda item: -item[1])[:_MAX_SHOWN]
        lines = [f"{count:>8}  {self._told[cause]}" for cause, count in most]
        others = self._dropped - sum(count for _, count in most)
        if others:
            lines.append(f"{others:>8}  others")
        logger.info(
            "Requests dropped because of robots.txt: %(count)d\n%(lines)s",
            {"count": self._dropped, "lines": "\n".join(lines)},
            extra={"spider": self._crawler.spider},
        )

    def _level(self, verdict: Verdict) -> tuple[int, str]:
        """Count a drop; return the level of its line in the log, and what that ends with."""
        self._dropped += 1
        cause = _cause_of(verdict)
        count = self._by_cause.get(cause, 0)
        if not count and len(self._by_cause) >= _MAX_TOLD_APART:
            return logging.DEBUG, ""
        self._by_cause[cause] = count + 1
        if not count or verdict.rule is None:  # a state changes, a rule does not
            self._told[cause] = explain(verdict)
        if count or len(self._by_cause) > _MAX_SHOWN:
            return logging.DEBUG, ""
        is_last = len(self._by_cause) == _MAX_SHOWN
        return logging.INFO, " - further drops are logged at DEBUG level" if is_last else ""


def _shown(url: str) -> str:
    return ascii(without_credentials(url))[1:-1]


def _cause_of(verdict: Verdict) -> tuple[Any, ...]:
    """Return what is the same for drops by one rule, or in one state of an origin."""
    return verdict.robotstxt_url, verdict.reason, verdict.line
