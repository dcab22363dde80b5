"""Errors in the queue: each is told, counted, and kept to what it came from."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from scrapy import Request

from scrapy_rep import stats
from scrapy_rep.utils.text import show

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

PAUSES: Final = (1, 2, 4, 8, 16, 32)
"""Seconds to the next try to read what can't be read; after the last one it is left on disk."""


def tell(crawler: Crawler, error: BaseException, message: str, of: object) -> None:
    """Log ``message``, with what it is about, and count it."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    of = show(of) if isinstance(of, Request) else of
    logger.error(message, of, exc_info=error, extra={"spider": crawler.spider})


def tell_unreadable(crawler: Crawler, request: str, reason: BaseException | None) -> None:
    """Log that ``request`` can't be read, without a traceback as there may be many; count it."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    stats.count(crawler, stats.QUEUE_UNREADABLE)
    logger.error(
        "Unable to read request: %s - reason: %s",
        request,
        reason,
        extra={"spider": crawler.spider},
    )
