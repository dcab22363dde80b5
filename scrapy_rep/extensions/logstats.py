"""A periodic log line with the numbers of origins and requests."""

from __future__ import annotations

import logging
from typing import Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from scrapy_rep import stats
from scrapy_rep.robots import Robots
from scrapy_rep.utils.text import counted

logger: Final = logging.getLogger(__name__)


class RobotsLogStats:
    """Logs the numbers of known and unreachable origins and of deferred and dropped requests.

    It runs beside Scrapy's LogStats, at the same interval (LOGSTATS_INTERVAL).
    """

    def __init__(self, crawler: Crawler) -> None:
        self._interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if not self._interval or not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsLogStats:
        """Return the extension, which runs beside Scrapy's LogStats, and replaces nothing.

        Raises NotConfigured if LOGSTATS_INTERVAL is 0, or ROBOTSTXT_OBEY is false.
        """
        return cls(crawler)

    def _spider_opened(self) -> None:
        self._loop = create_looping_call(self._log_census)
        self._loop.start(self._interval, now=False)

    def _spider_closed(self) -> None:
        if self._loop is not None and self._loop.running:
            self._loop.stop()

    def _log_census(self) -> None:
        try:
            census = Robots.of(self._crawler).census()
        except LookupError:
            return
        logger.info(
            "robots.txt: %s known (%d unreachable), %d being looked up; "
            "requests: %d deferred, %d dropped",
            counted(census.known, "origin"),
            census.unreachable,
            census.waiting,
            stats.value(self._crawler, stats.DEFERRED),
            stats.value(self._crawler, stats.FORBIDDEN),
            extra={"spider": self._crawler.spider},
        )
