"""Downloads in Scrapy: the handler of a scheme, time limits, and the host of a request."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_rep.protocol.origin import origin_of

_CONCURRENT_REQUESTS: Final = 16


def download_handler_of(settings: BaseSettings, scheme: str) -> Any:
    """Return the class of the download handler of ``scheme``; None if none can be loaded.

    No error is raised, as Scrapy reports it with the first request of this scheme.
    """
    try:
        return load_object(settings.getwithbase("DOWNLOAD_HANDLERS")[scheme])
    except Exception:  # noqa: BLE001 - the import of its module may raise any error
        return None


def concurrent_requests(settings: BaseSettings) -> int:
    """Return CONCURRENT_REQUESTS; its default, 16, if it sets no limit (0, since Scrapy 2.19)."""
    limit = settings.getint("CONCURRENT_REQUESTS")
    return limit if limit > 0 else _CONCURRENT_REQUESTS


def default_download_timeout(crawler: Crawler) -> float:
    """Return the time limit of downloads in seconds; 0 means none.

    As in Scrapy's DownloadTimeoutMiddleware, the spider's ``download_timeout`` comes before
    DOWNLOAD_TIMEOUT.
    """
    of_crawl = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
    return _seconds(getattr(crawler.spider, "download_timeout", of_crawl))


def download_timeout_of(request: Request) -> float:
    """Return the ``download_timeout`` of a request in seconds; 0 means none."""
    return _seconds(request.meta.get("download_timeout"))


def _seconds(limit: Any) -> float:
    # An invalid value counts as no limit here: Scrapy's download handlers raise an error for it.
    return float(limit) if isinstance(limit, int | float) and limit > 0 else 0.0


class Route(NamedTuple):
    """The values that a fetch of robots.txt takes from the page request that waits for it."""

    proxy: str
    bindaddress: str
    user_agent: bytes | None


def route_of(request: Request) -> Route:
    """Return the route of a request: its proxy, bind address and User-Agent, as far as set."""
    meta = request.meta
    agent = request.headers.get("User-Agent")
    # As text, because the meta of a request may have a value of any type.
    return Route(repr(meta.get("proxy")), repr(meta.get("bindaddress")), agent)


def first_by_other_route(requests: Iterable[Request], routes: Collection[Route]) -> Request | None:
    """Return the first request with a route that is not in ``routes``; None if there is none."""
    return next((request for request in requests if route_of(request) not in routes), None)


def host_of(request: Request) -> str:
    """Return the host of a request in the form of ``Origin.host``; empty if it has none."""
    try:
        return origin_of(request.url).host
    except ValueError:
        return ""
