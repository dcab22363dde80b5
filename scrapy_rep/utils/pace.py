"""Download slots: their names, their delays, and when they are free.

All access to private parts of Scrapy's downloader is here.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from functools import cache
from time import time
from typing import TYPE_CHECKING, Final

from scrapy.core import downloader as downloader_module
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.utils.scrapy_internals import downloader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.core.downloader import Slot
    from scrapy.crawler import Crawler

_now: Final[Callable[[], float]] = getattr(downloader_module, "monotonic", time)
"""The clock of download slots; older versions of Scrapy use another one."""
_LONG_AGO: Final = -1e9
"""Time of the last request of an unused slot, further back than any delay."""

NEEDED: Final = {
    "slots": "tells how busy a download slot is",
    "get_slot_key": "names the download slot of a request",
    "domain_concurrency": "bounds what waits in a slot with a delay",
}
"""The private attributes of Scrapy's downloader that are used, and why."""
_OF_SLOT: Final = (
    "active",
    "close",
    "concurrency",
    "delay",
    "free_transfer_slots",
    "lastseen",
    "queue",
    "transferring",
)
"""The attributes of download slots that are used."""


def missing(crawler: Crawler) -> str | None:
    """Return a message about the first missing attribute; None if there is none."""
    # The slots first: if they are deprecated, so is the access to the downloader.
    if (name := _missing_of_slot()) is not None:
        return f"Scrapy has no {name}, which tells when a download slot is free"
    downloader = downloader_of(crawler)
    for name, reason in NEEDED.items():
        if not hasattr(downloader, name):
            return f"Scrapy's downloader has no {name}, which {reason}"
    return None


@cache
def _missing_of_slot() -> str | None:
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        # In older versions of Scrapy the class doesn't have the attributes, only its objects.
        slot = downloader_module.Slot(1, 0.0, False)
        names = [name for name in _OF_SLOT if not hasattr(slot, name)]
        if not hasattr(slot, "jitter") and not hasattr(slot, "randomize_delay"):
            names.append("jitter")
        return f"scrapy.core.downloader.Slot.{names[0]}" if names else None
    return "scrapy.core.downloader.Slot"


def slot_name(crawler: Crawler, request: Request) -> str:
    """Return the name of the download slot of ``request``."""
    if missing(crawler):
        return request.meta.get("download_slot") or urlparse_cached(request).hostname or ""
    name: str = downloader_of(crawler).get_slot_key(request)
    return name


def slot_of(crawler: Crawler, name: str) -> Slot | None:
    """Return the download slot ``name``, if it exists."""
    return None if missing(crawler) else downloader_of(crawler).slots.get(name)


def is_in_slot(crawler: Crawler, request: Request) -> bool:
    """Return whether ``request`` is in its download slot, sent or waiting."""
    slot = slot_of(crawler, slot_name(crawler, request))
    return slot is not None and request in slot.active


@contextmanager
def slot_without_delay(crawler: Crawler, name: str) -> Iterator[None]:
    """Give the download slot ``name`` no delay, and remove it at the end.

    With a delay, a new slot would wait until the monotonic clock, which begins when the machine is
    started, has reached DOWNLOAD_DELAY.
    """
    if missing(crawler):
        yield
        return
    downloader = downloader_of(crawler)
    slot_settings = getattr(downloader, "per_slot_settings", {})
    slot_settings[name] = {"delay": 0}
    try:
        yield
    finally:
        del slot_settings[name]
        slot = downloader.slots.pop(name, None)
        if slot is not None:
            slot.close()


def delay_of_new_slots(crawler: Crawler) -> float:
    """Return the delay of a new download slot, in seconds."""
    # AutoThrottle sets it: in the downloader, before Scrapy 2.19 in the spider.
    delay = crawler.settings.getfloat("DOWNLOAD_DELAY")
    delay = getattr(crawler.spider, "download_delay", delay)
    return float(getattr(downloader_of(crawler), "_delay", delay))


def own_delay_of(crawler: Crawler, name: str, seconds: float | None = None) -> float:
    """Return the delay of the download slot ``name`` by DOWNLOAD_SLOTS, else DOWNLOAD_DELAY.

    ``seconds`` replaces DOWNLOAD_DELAY. AutoThrottle may set a longer delay.
    """
    if seconds is None:
        seconds = crawler.settings.getfloat("DOWNLOAD_DELAY")
    own = crawler.settings.getdict("DOWNLOAD_SLOTS").get(name, {})
    return float(own.get("delay", seconds))


def seconds_until_free(slot: Slot) -> float:
    """Return the seconds until the delay of ``slot`` is over.

    Switches off RANDOMIZE_DOWNLOAD_DELAY for the slot, and cancels the timer that it has set with
    its last request: AutoThrottle may have changed the delay since.
    """
    if not slot.lastseen:  # nothing was sent yet; see slot_without_delay
        slot.lastseen = _LONG_AGO
    if hasattr(slot, "jitter"):
        slot.jitter = 0.0
    else:  # Scrapy before 2.19
        slot.randomize_delay = False
    if not slot.queue:
        slot.close()  # cancels the timer
    return max(0.0, slot.lastseen + slot.delay - _now()) if slot.delay else 0.0
