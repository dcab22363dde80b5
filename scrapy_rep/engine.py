"""The one place that looks at what Scrapy keeps to itself of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.utils.asyncio import create_looping_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.task import LoopingCall

_INTERVAL: Final = 0.25
"""Seconds between two looks at the engine."""


def is_closing(crawler: Crawler) -> bool:
    """Return whether the engine has begun to close the spider.

    No signal tells: ``spider_closed`` is sent only when every request in progress has ended, and
    those that wait for a robots.txt that hangs are in progress.
    """
    slot = getattr(crawler.engine, "_slot", None)
    return slot is not None and slot.closing is not None


class ClosingWatch:
    """Calls ``closing`` once, when the engine begins to close the spider."""

    def __init__(self, crawler: Crawler, closing: Callable[[], None]) -> None:
        self._crawler = crawler
        self._closing = closing
        self._loop: AsyncioLoopingCall | LoopingCall | None = None

    def start(self) -> None:
        """Begin to look."""
        self._loop = create_looping_call(self._look)
        self._loop.start(_INTERVAL, now=False)

    def stop(self) -> None:
        """Look no more."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        self._loop = None

    def _look(self) -> None:
        if is_closing(self._crawler):
            self.stop()
            self._closing()
