"""What the download handler of a scheme can do for a fetch of robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import scrapy
from scrapy.utils.python import global_object_name

from scrapy_rep.utils.downloads import handler_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MAX_TRANSFER: Final = 16_777_216
"""Bytes (16 MiB) that a handler may take which can't be stopped on its way.

More than 500 KiB, so that a larger file is cut there rather than refused; little enough for each of
REP_CONCURRENT_FETCHES to be held in memory. It is for the handler to obey ``download_maxsize``."""

_HANDLERS: Final = "scrapy.core.downloader.handlers."
_STOPPABLE: Final = {_HANDLERS + name for name in ("http11", "_httpx", "_base_streaming")}
if scrapy.version_info >= (2, 18):
    _STOPPABLE.add(_HANDLERS + "http2")


def can_be_stopped(settings: BaseSettings, scheme: str) -> bool:
    """Return whether the handler of a scheme sends ``bytes_received``, and stops when told to.

    Those of Scrapy do, and what is derived from them.
    """
    handler = handler_of(settings, scheme)
    return any(base.__module__ in _STOPPABLE for base in getattr(handler, "__mro__", ()))


def foreign_handler(settings: BaseSettings, scheme: str) -> str | None:
    """Return the name of the handler of a scheme, where it is none of Scrapy's own.

    It may wait for anything, and for the origin last.
    """
    handler = handler_of(settings, scheme)
    if handler is None or handler.__module__.startswith(_HANDLERS):
        return None
    return global_object_name(handler)
