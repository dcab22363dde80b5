"""``spider_idle`` while all that is left of a crawl waits for unreachable origins."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, NamedTuple

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


class Left(NamedTuple):
    """What is left of a crawl that has nothing else to do."""

    origins: int
    """Unreachable origins whose requests wait."""
    seconds: float
    """From now to the next try."""


class Idle:
    """Sends ``spider_idle`` as the engine does of a crawl of which nothing is left.

    That is each time that the crawl has nothing else to do again; where the spider was fed with
    nothing that could leave, at the next look; where it says that it is not done, at the heartbeat.

    ``left`` tells what is left, None where there is something else to do. ``timeout`` is
    REP_DEFER_TIMEOUT, in seconds.
    """

    def __init__(self, crawler: Crawler, left: Callable[[], Left | None], timeout: float) -> None:
        self._crawler = crawler
        self._left = left
        self._timeout = timeout
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
        if self._looks > 0:
            return
        left = self._left()
        if left is None or not is_waiting(self._crawler, META_KEY):
            return
        if not self._has_said:
            self._has_said = True
            logger.info(
                "Nothing is left to do but to wait for %d unreachable origins: the next try of a "
                "robots.txt is in %.0f s, and requests that have waited for REP_DEFER_TIMEOUT, "
                "%g s, are dropped",
                *left,
                self._timeout,
                extra={"spider": self._crawler.spider},
            )
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
