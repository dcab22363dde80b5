"""The time limit of a crawl's downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def download_timeout(crawler: Crawler) -> float:
    """Return the seconds that a download may take, 0 where there is no limit.

    It is the spider's ``download_timeout``, else ``DOWNLOAD_TIMEOUT``, as for Scrapy's
    DownloadTimeoutMiddleware.
    """
    of_crawl = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
    return float(getattr(crawler.spider, "download_timeout", of_crawl))
