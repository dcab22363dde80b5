"""Settings of downloads in Scrapy: the handler of a scheme, concurrency and time limits."""

from typing import Final

import scrapy
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

MAX_TRANSFER: Final = 16_777_216
"""``download_maxsize`` (16 MiB) for handlers that can't be stopped during a download: a file above
500 KiB is cut, but one above ``download_maxsize`` is an error."""
_HANDLERS: Final = "scrapy.core.downloader.handlers."
_STOPPABLE: Final = {_HANDLERS + name for name in ("http11", "_httpx", "_base_streaming")}
if scrapy.version_info >= (2, 18):
    _STOPPABLE.add(_HANDLERS + "http2")
_CONCURRENT_REQUESTS: Final = 16


def can_be_stopped(settings: BaseSettings, scheme: str) -> bool:
    """Return whether the download handler of ``scheme`` stops a download on StopDownload."""
    try:
        handler = load_object(settings.getwithbase("DOWNLOAD_HANDLERS")[scheme])
    except Exception:  # noqa: BLE001 - the import of its module may raise any error
        return False
    return any(base.__module__ in _STOPPABLE for base in getattr(handler, "__mro__", ()))


def concurrent_requests(settings: BaseSettings) -> int:
    """Return CONCURRENT_REQUESTS; its default, 16, if it sets no limit (0, since Scrapy 2.19)."""
    limit = settings.getint("CONCURRENT_REQUESTS")
    return limit if limit > 0 else _CONCURRENT_REQUESTS


def retry_times(settings: BaseSettings) -> int:
    """Return how often Scrapy tries a page again: RETRY_TIMES, or 0 without RETRY_ENABLED."""
    return settings.getint("RETRY_TIMES") if settings.getbool("RETRY_ENABLED") else 0


def default_download_timeout(crawler: Crawler) -> float:
    """Return the spider's ``download_timeout``, else DOWNLOAD_TIMEOUT, in seconds; 0: no limit."""
    of_crawl = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
    limit = getattr(crawler.spider, "download_timeout", of_crawl)
    # An invalid value counts as no limit here: Scrapy's download handlers raise an error for it.
    return float(limit) if isinstance(limit, int | float) and limit > 0 else 0.0
