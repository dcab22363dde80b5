"""Properties of the download handler of a URL scheme on which the fetcher depends."""

from __future__ import annotations

from typing import Final

import scrapy
from scrapy.settings import BaseSettings
from scrapy.utils.python import global_object_name

from scrapy_rep.utils.downloads import download_handler_of

MAX_TRANSFER: Final = 16_777_216
"""``download_maxsize`` (16 MiB) for handlers that can't be stopped during a download.

It is larger than the size limit of robots.txt (500 KiB), because a file above that limit is cut,
but one above ``download_maxsize`` is an error. It is small enough that REP_CONCURRENT_FETCHES
responses of this size fit into memory."""

_HANDLERS: Final = "scrapy.core.downloader.handlers."
_STOPPABLE: Final = {_HANDLERS + name for name in ("http11", "_httpx", "_base_streaming")}
if scrapy.version_info >= (2, 18):
    _STOPPABLE.add(_HANDLERS + "http2")


def can_be_stopped(settings: BaseSettings, scheme: str) -> bool:
    """Return whether the download handler of ``scheme`` can be stopped during a download.

    Such a handler sends the signal ``bytes_received`` and stops if a receiver raises StopDownload.
    Scrapy's handlers for HTTP/1.1 and classes derived from them do so, and since Scrapy 2.18 its
    handler for HTTP/2.
    """
    handler = download_handler_of(settings, scheme)
    return any(base.__module__ in _STOPPABLE for base in getattr(handler, "__mro__", ()))


def foreign_handler_name(settings: BaseSettings, scheme: str) -> str | None:
    """Return the name of the download handler of ``scheme``; None if it is one of Scrapy's.

    If another handler times out, the origin may be reachable: the handler may have waited for a
    browser or an API.
    """
    handler = download_handler_of(settings, scheme)
    if handler is None or handler.__module__.startswith(_HANDLERS):
        return None
    return global_object_name(handler)
