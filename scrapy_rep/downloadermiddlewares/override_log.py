"""Log lines, stats and the signal about overrides."""

from __future__ import annotations

from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.overrides import Override, Overrides
from scrapy_rep.signals import Announcer, robotstxt_overridden
from scrapy_rep.utils.log import LimitedLogger

logger: Final = LimitedLogger(__name__)


class OverrideLog:
    """Logs and counts the overrides that apply, and sends the signal about them."""

    def __init__(self, crawler: Crawler, announcer: Announcer, overrides: Overrides) -> None:
        self._crawler = crawler
        self._announcer = announcer
        self._overrides = overrides
        self._overrides_used: set[Override] = set()

    def count(self, request: Request, override: Override | None, *, again: bool) -> None:
        """Count that ``override`` applies to ``request``, and send the signal; log its first use.

        ``again`` is true if the request was given back to the scheduler before: an override with
        product tokens has been counted then. Overrides that have expired are logged first.
        """
        self.log_expired()
        if override is None or (again and override.tokens):
            return
        stats.count(self._crawler, stats.OVERRIDE_COUNT.format(policy=override.policy))
        if override not in self._overrides_used:
            self._overrides_used.add(override)
            logger.info(
                "Override in use: %a", str(override), extra={"spider": self._crawler.spider}
            )
        self._announcer.send(robotstxt_overridden, request=request, override=override)

    def log_expired(self) -> None:
        """Warn once about each override that has expired."""
        while self._overrides.expired:
            override = self._overrides.expired.pop()
            logger.warning(
                "Override expired at %s, robots.txt is obeyed again: %a",
                override.until_text,
                str(override),
                extra={"spider": self._crawler.spider},
            )
