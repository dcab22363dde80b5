"""How errors of the queues are logged and counted."""

from __future__ import annotations

import logging
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.utils.text import printable_request

logger: Final = logging.getLogger(__name__)

RETRY_DELAYS: Final = (1, 2, 4, 8, 16, 32)
"""Seconds between the tries to read requests from disk; after the last try they stay on disk."""


def log_error(crawler: Crawler, error: BaseException, message: str, subject: object) -> None:
    """Log ``message``, formatted with ``subject``, and the traceback of ``error``; count it."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    subject = printable_request(subject) if isinstance(subject, Request) else subject
    logger.error(message, subject, exc_info=error, extra={"spider": crawler.spider})


def log_unreadable(crawler: Crawler, request: str, reason: BaseException | None) -> None:
    """Log and count an unreadable request, without a traceback, as there may be many of them."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    stats.count(crawler, stats.QUEUE_UNREADABLE)
    logger.error(
        "Unable to read request: %s - reason: %s",
        request,
        reason,
        extra={"spider": crawler.spider},
    )


def log_left_on_disk(crawler: Crawler, slot: str, requests: int) -> None:
    """Log that the requests of a lane can't be read, and are left on disk; count an error."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    logger.error(
        "The requests of %s can't be read, and are left in JOBDIR: %d",
        slot,
        requests,
        extra={"spider": crawler.spider},
    )
