"""``spider_idle`` while all that is left of a crawl waits for unreachable origins."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.exceptions import CloseSpider, DontCloseSpider

from scrapy_rep.fetch.transfer import META_KEY
from scrapy_rep.utils.scrapy_internals import is_waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_HEARTBEAT: Final = 20
"""Looks after which a spider that says it is not done is told again: 5 seconds, as the engine's."""


class Idle:
    """Sends ``spider_idle`` as the engine does of a crawl of which nothing is left.

    That is each time that the crawl has nothing else to do again; where the spider was fed with
    nothing that could leave, at the next look; where it says that it is not done, at the heartbeat.

    ``only_deferred`` tells whether all that the queue holds is of unreachable origins; ``line`` is
    what the log says of them, once.
    """

    def __init__(
        self, crawler: Crawler, only_deferred: Callable[[], bool], line: Callable[[], str]
    ) -> None:
        self._crawler = crawler
        self._only_deferred = only_deferred
        self._line = line
        self._looks = 0.0
        """Looks to the next signal; with 0 it is sent as soon as the crawl is idle."""
        self._listens = False
        self._has_said = False

    def begin(self) -> None:
        """Look whenever nothing can leave the scheduler."""
        if not self._listens:
            self._listens = True
            self._crawler.signals.connect(self._nothing_leaves, signals.scheduler_empty)

    def came(self) -> None:
        """Note that a request came to the scheduler."""
        self._looks = min(self._looks, 1)

    def went(self) -> None:
        """Note that a request left the scheduler."""
        self._looks = 0

    def look(self) -> None:
        """Look, four times a second, whether the time of the next signal has come."""
        self._looks -= 1
        self._nothing_leaves()

    def _nothing_leaves(self) -> None:
        if self._looks > 0 or not self._only_deferred():
            return
        if not is_waiting(self._crawler, META_KEY):
            return
        if not self._has_said:
            self._has_said = True
            logger.info("%s", self._line(), extra={"spider": self._crawler.spider})
        self._looks = math.inf
        answers = self._crawler.signals.send_catch_log(
            signals.spider_idle,
            spider=self._crawler.spider,
            dont_log=(DontCloseSpider, CloseSpider),
        )
        if any(
            isinstance(getattr(answer, "value", None), DontCloseSpider) for _, answer in answers
        ):
            self._looks = min(self._looks, _HEARTBEAT)
