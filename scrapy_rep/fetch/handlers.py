"""What the fetcher has to know about the download handler of a scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import scrapy
from scrapy.utils.python import global_object_name

from scrapy_rep.utils.downloads import handler_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MAX_TRANSFER: Final = 16_777_216
"""``download_maxsize`` (16 MiB) for handlers that can't be stopped during a download.

It is larger than the size limit of 500 KiB, so that larger files are cut and not refused, and small
enough to hold REP_CONCURRENT_FETCHES such responses in memory."""

_HANDLERS: Final = "scrapy.core.downloader.handlers."
_STOPPABLE: Final = {_HANDLERS + name for name in ("http11", "_httpx", "_base_streaming")}
if scrapy.version_info >= (2, 18):
    _STOPPABLE.add(_HANDLERS + "http2")


def can_be_stopped(settings: BaseSettings, scheme: str) -> bool:
    """Return whether the handler of a scheme sends ``bytes_received`` and obeys StopDownload.

    Scrapy's handlers and classes derived from them do.
    """
    handler = handler_of(settings, scheme)
    return any(base.__module__ in _STOPPABLE for base in getattr(handler, "__mro__", ()))


def foreign_handler(settings: BaseSettings, scheme: str) -> str | None:
    """Return the name of the handler of a scheme if it is not one of Scrapy's.

    Its timeouts say nothing about the origin, as it may wait for a browser or an API.
    """
    handler = handler_of(settings, scheme)
    if handler is None or handler.__module__.startswith(_HANDLERS):
        return None
    return global_object_name(handler)
