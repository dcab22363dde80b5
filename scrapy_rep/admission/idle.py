"""``spider_idle`` and a log line, while all requests that are left are deferred.

A request is deferred while it waits in the scheduler for the next try of its unreachable
robots.txt. The engine sends ``spider_idle`` when the scheduler is empty. With deferred requests it
is not empty, so a spider that adds requests when it is idle would get no signal until all these
requests have left. ``Idle`` sends the signal in the engine's place.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider

from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.verdict import Outage
from scrapy_rep.utils.scrapy_internals import (
    has_only_waiting_requests,
    has_pending_requests,
)
from scrapy_rep.utils.text import counted

logger: Final = logging.getLogger(__name__)

_HEARTBEAT: Final = 20
"""Number of checks between two signals to a spider that raises DontCloseSpider, and between two
calls of an empty scheduler: 5 seconds at four checks per second, as the engine's heartbeat."""
_MAX_NAMED: Final = 3
"""Maximum number of origins in the log line."""


class Idle:
    """Sends ``spider_idle`` each time that only deferred requests are left.

    The signal is sent once, and again in three cases: if a request has left the scheduler since; at
    the next check, if requests were added but can't leave; and after 5 seconds, if the spider
    raises DontCloseSpider.

    ``only_deferred`` returns whether the queue has only deferred requests; ``line`` returns the log
    line about them, which is logged once.
    """

    def __init__(
        self, crawler: Crawler, only_deferred: Callable[[], bool], line: Callable[[], str]
    ) -> None:
        self._crawler = crawler
        self._only_deferred = only_deferred
        self._line = line
        self._checks_left = 0.0
        """Number of checks until the next signal; at 0 the signal is sent as soon as only deferred
        requests are left."""
        self._is_listening = False
        self._has_logged = False
        self._has_failed = False
        """Whether the last call of the scheduler has raised an error."""

    def start(self) -> None:
        """From now on, send the signal, if due, whenever the engine gets no request to send."""
        if not self._is_listening:
            self._is_listening = True
            self._crawler.signals.connect(self._send_if_due, signals.scheduler_empty)

    def shorten_delay(self) -> None:
        """Send the signal at the next check, as a request was added to the scheduler."""
        self._checks_left = min(self._checks_left, 1)

    def end_delay(self) -> None:
        """Send the signal as soon as it is due, as a request left the scheduler."""
        self._checks_left = 0

    def check(self) -> None:
        """Send the signal if it is due; called four times a second."""
        self._checks_left -= 1
        self._send_if_due()

    def _send_if_due(self) -> None:
        if self._checks_left > 0 or not self._only_deferred():
            return
        if not has_only_waiting_requests(self._crawler, TRANSFER_KEY) or not self._has_requests():
            return
        if not self._has_logged:
            self._has_logged = True
            logger.info("%s", self._line(), extra={"spider": self._crawler.spider})
        self._checks_left = math.inf
        answers = self._crawler.signals.send_catch_log(
            signals.spider_idle,
            spider=self._crawler.spider,
            dont_log=(DontCloseSpider, CloseSpider),
        )
        if any(
            isinstance(getattr(answer, "value", None), DontCloseSpider) for _, answer in answers
        ):
            self._checks_left = min(self._checks_left, _HEARTBEAT)

    def _has_requests(self) -> bool:
        """Return whether the scheduler has requests; if not, don't call it again for 5 seconds.

        The scheduler may call Redis, which may be down: an error is logged.
        """
        self._checks_left = _HEARTBEAT
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


def describe_outages(
    outages: Sequence[tuple[Origin, Outage | None]], now: float, patience: float, left: float
) -> str:
    """Return a log line about unreachable origins.

    It has the three origins whose next try is first, why they are unreachable, and the time until
    this try. ``now`` is in seconds since the epoch. A request is dropped when it has waited for
    ``patience`` seconds; the first request is dropped in ``left`` seconds.
    """
    soonest = sorted(outages, key=lambda each: each[1].next_try if each[1] else now)
    named = [_origin_text(*each, now) for each in soonest[:_MAX_NAMED]]
    if len(outages) > _MAX_NAMED:
        named.append(f"and {len(outages) - _MAX_NAMED} more")
    origins = counted(len(outages), "unreachable origin")
    return (
        f"Waiting for {origins}: {', '.join(named)}. Requests are dropped "
        f"after {patience:g} s (REP_DEFER_TIMEOUT), the first in {max(0.0, left):.0f} s"
    )


def describe_deferred(origins: int, seconds: float) -> str:
    """Return a log line about origins with deferred requests in Redis.

    ``origins`` is their number, ``seconds`` the time until the next try of a robots.txt.
    """
    what = counted(origins, "unreachable origin")
    return f"Waiting for {what}: the next try is in {max(0.0, seconds):.0f} s"


def _origin_text(origin: Origin, outage: Outage | None, now: float) -> str:
    if outage is None:  # the cache has no entry of the origin any more
        return str(origin)
    return f"{origin} ({outage.cause}, next try in {max(0.0, outage.next_try - now):.0f} s)"
