"""The time limits of downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


def timeout_of_crawl(crawler: Crawler) -> float:
    """Return the seconds that a download may take, 0 where there is no limit.

    It is the spider's ``download_timeout``, else ``DOWNLOAD_TIMEOUT``, as for Scrapy's
    DownloadTimeoutMiddleware.
    """
    of_crawl = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
    return _seconds(getattr(crawler.spider, "download_timeout", of_crawl))


def timeout_of(request: Request) -> float:
    """Return the ``download_timeout`` of a request in seconds, 0 where it has none."""
    return _seconds(request.meta.get("download_timeout"))


def _seconds(limit: Any) -> float:
    # What is no time is for Scrapy to refuse: its download handlers raise.
    return float(limit) if isinstance(limit, int | float) and limit > 0 else 0.0
