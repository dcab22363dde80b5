"""The download handler of a scheme, and the time limits of downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


def handler_of(settings: BaseSettings, scheme: str) -> Any:
    """Return the class of the download handler of a scheme.

    None if there is none, or if it can't be loaded: Scrapy logs that with the first request.
    """
    try:
        return load_object(settings.getwithbase("DOWNLOAD_HANDLERS")[scheme])
    except Exception:  # noqa: BLE001 - its module may raise anything
        return None


def timeout_of_crawl(crawler: Crawler) -> float:
    """Return the seconds that a download may take, 0 for no limit.

    It is the spider's ``download_timeout``, else ``DOWNLOAD_TIMEOUT``, as for Scrapy's
    DownloadTimeoutMiddleware.
    """
    of_crawl = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
    return _seconds(getattr(crawler.spider, "download_timeout", of_crawl))


def timeout_of(request: Request) -> float:
    """Return the ``download_timeout`` of a request in seconds, 0 if it has none."""
    return _seconds(request.meta.get("download_timeout"))


def _seconds(limit: Any) -> float:
    # Scrapy's download handlers raise for other values.
    return float(limit) if isinstance(limit, int | float) and limit > 0 else 0.0
