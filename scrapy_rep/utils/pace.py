"""What Scrapy's downloader does about delays: is a slot busy, when is it free, let it wait so long.

The one place that looks at download slots, which Scrapy keeps to itself.
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
"""The clock of download slots, which was another one in older versions of Scrapy."""
_LONG_AGO: Final = -1e9
"""When a slot that has sent nothing has sent something last: no delay is as long."""

NEEDED: Final = {
    "slots": "tells how busy a download slot is",
    "get_slot_key": "names the download slot of a request",
    "domain_concurrency": "bounds what waits in a slot with a delay",
}
"""What is needed of Scrapy's downloader that has no public API, and why."""
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
"""What is needed of each slot."""


def missing(crawler: Crawler) -> str | None:
    """Return what is needed of download slots and is not there, and what for; None if all is."""
    # The slots first: to look at the downloader is deprecated where they are to go.
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
        # Older versions of Scrapy know what a slot has only when it is made.
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
    """Return the download slot ``name``; None where there is none."""
    return None if missing(crawler) else downloader_of(crawler).slots.get(name)


def is_in_slot(crawler: Crawler, request: Request) -> bool:
    """Return whether ``request`` is in its download slot: being sent, or waiting there."""
    slot = slot_of(crawler, slot_name(crawler, request))
    return slot is not None and request in slot.active


@contextmanager
def slot_without_delay(crawler: Crawler, name: str) -> Iterator[None]:
    """Let the download slot ``name`` have no delay, and remove it when this ends.

    A new slot counts its delay from moment 0 of the clock, when the machine was started. Until the
    machine has been up for DOWNLOAD_DELAY, the first request of a slot has to wait.
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
    """Return the delay that a download slot has when it is made, in seconds."""
    # AutoThrottle sets it: in the downloader, before Scrapy 2.19 in the spider.
    delay = crawler.settings.getfloat("DOWNLOAD_DELAY")
    delay = getattr(crawler.spider, "download_delay", delay)
    return float(getattr(downloader_of(crawler), "_delay", delay))


def own_delay_of(crawler: Crawler, name: str, seconds: float | None = None) -> float:
    """Return the shortest delay that the download slot ``name`` has by the settings of Scrapy.

    ``seconds`` stands in for DOWNLOAD_DELAY. AutoThrottle sets longer ones.
    """
    if seconds is None:
        seconds = crawler.settings.getfloat("DOWNLOAD_DELAY")
    own = crawler.settings.getdict("DOWNLOAD_SLOTS").get(name, {})
    return float(own.get("delay", seconds))


def seconds_until_free(slot: Slot) -> float:
    """Return how long the delay of ``slot`` still keeps a request.

    From now on by its delay alone: without the random part, which is switched off, and without the
    timer that the slot has set when it sent the last request, for the delay of that moment
    (AutoThrottle has changed it since).
    """
    if not slot.lastseen:  # as in slot_without_delay: nothing was sent yet
        slot.lastseen = _LONG_AGO
    if hasattr(slot, "jitter"):
        slot.jitter = 0.0
    else:  # Scrapy before 2.19
        slot.randomize_delay = False
    if not slot.queue:
        slot.close()  # cancels the timer
    return max(0.0, slot.lastseen + slot.delay - _now()) if slot.delay else 0.0
