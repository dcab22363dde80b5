"""What is told while all that is left of a crawl waits for unreachable origins."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.exceptions import CloseSpider, DontCloseSpider

from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.utils.scrapy_internals import has_pending_requests, is_waiting
from scrapy_rep.utils.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outage import Outage

logger = logging.getLogger(__name__)

_HEARTBEAT: Final = 20
"""Looks after which a spider that says it is not done is told again, and a scheduler that had
nothing is asked again: 5 seconds, as the engine's."""
_MAX_NAMED: Final = 3
"""Origins that the log names."""


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
        self._has_failed = False
        """Whether the scheduler could not be asked the last time."""

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

    def check(self) -> None:
        """Look, four times a second, whether the time of the next signal has come."""
        self._looks -= 1
        self._nothing_leaves()

    def _nothing_leaves(self) -> None:
        if self._looks > 0 or not self._only_deferred():
            return
        if not is_waiting(self._crawler, TRANSFER_KEY) or not self._has_requests():
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

    def _has_requests(self) -> bool:
        """Return whether requests are in the scheduler; if not, it is asked again at the heartbeat.

        It may have to ask Redis, which may be down.
        """
        self._looks = _HEARTBEAT
        try:
            found = has_pending_requests(self._crawler)
        except Exception:
            if not self._has_failed:
                logger.exception(
                    "Error while asking the scheduler whether requests wait",
                    extra={"spider": self._crawler.spider},
                )
            self._has_failed = True
            return False
        self._has_failed = False
        return found


def line_about(
    outages: Sequence[tuple[Origin, Outage | None]], now: float, patience: float, left: float
) -> str:
    """Return a line that names the first three origins, why they fail, and when they are tried.

    ``now`` is in seconds since the epoch. A request is dropped when it has waited for ``patience``
    seconds, the first of them in ``left`` seconds.
    """
    soonest = sorted(outages, key=lambda each: each[1].next_try if each[1] else now)
    named = [_named(*each, now) for each in soonest[:_MAX_NAMED]]
    if len(outages) > _MAX_NAMED:
        named.append(f"and {len(outages) - _MAX_NAMED} more")
    origins = counted(len(outages), "unreachable origin")
    return (
        f"Waiting for {origins}: {', '.join(named)}. Requests are dropped "
        f"after {patience:g} s (REP_DEFER_TIMEOUT), the first in {max(0.0, left):.0f} s"
    )


def line_about_others(origins: int, seconds: float) -> str:
    """Return a line about origins whose requests Redis keeps, the first due in ``seconds``."""
    what = counted(origins, "unreachable origin")
    return f"Waiting for {what}: the next try is in {max(0.0, seconds):.0f} s"


def _named(origin: Origin, outage: Outage | None, now: float) -> str:
    if outage is None:  # the memory holds it no more
        return str(origin)
    return f"{origin} ({outage.cause}, next try in {max(0.0, outage.next_try - now):.0f} s)"
