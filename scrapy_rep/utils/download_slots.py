"""All uses of Scrapy's download slots: their names, delays, and when they are free.

Their attributes are private, and another version of Scrapy may lack some of them: see ``missing``.
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
"""The clock by which download slots count: ``monotonic``, in older versions of Scrapy ``time``."""
_LONG_AGO: Final = -1e9
"""Used as the time of the last request of a slot that has sent no request, so that its delay is
over."""

NEEDED: Final = {
    "slots": "tells how busy a download slot is",
    "get_slot_key": "names the download slot of a request",
    "domain_concurrency": "bounds what waits in a slot with a delay",
}
"""Private attributes of Scrapy's downloader that this module needs, and why."""
_NEEDED_OF_SLOT: Final = (
    "active",
    "close",
    "concurrency",
    "delay",
    "free_transfer_slots",
    "lastseen",
    "queue",
    "transferring",
)
"""Attributes of download slots that this module needs."""


def describe_missing_attribute(crawler: Crawler) -> str | None:
    """Return a sentence about a needed attribute that is missing; None if none is missing."""
    # The class of slots is checked first: if Scrapy deprecates slots, reading them from the
    # downloader causes a warning.
    if (name := _missing_slot_attribute()) is not None:
        return f"Scrapy has no {name}, which tells when a download slot is free"
    downloader = downloader_of(crawler)
    for name, reason in NEEDED.items():
        if not hasattr(downloader, name):
            return f"Scrapy's downloader has no {name}, which {reason}"
    return None


@cache
def _missing_slot_attribute() -> str | None:
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        # In older versions of Scrapy only objects have the attributes, not the class.
        slot = downloader_module.Slot(1, 0.0, False)
        names = [name for name in _NEEDED_OF_SLOT if not hasattr(slot, name)]
        if not hasattr(slot, "jitter") and not hasattr(slot, "randomize_delay"):
            names.append("jitter")
        return f"scrapy.core.downloader.Slot.{names[0]}" if names else None
    return "scrapy.core.downloader.Slot"


def slot_name(crawler: Crawler, request: Request) -> str:
    """Return the name of the download slot of ``request``."""
    if describe_missing_attribute(crawler):
        return request.meta.get("download_slot") or urlparse_cached(request).hostname or ""
    name: str = downloader_of(crawler).get_slot_key(request)
    return name


def slot_of(crawler: Crawler, name: str) -> Slot | None:
    """Return the download slot with this name; None if there is none."""
    return None if describe_missing_attribute(crawler) else downloader_of(crawler).slots.get(name)


def is_in_slot(crawler: Crawler, request: Request) -> bool:
    """Return whether ``request`` is in its download slot: waiting there, or being downloaded."""
    slot = slot_of(crawler, slot_name(crawler, request))
    return slot is not None and request in slot.active


@contextmanager
def slot_without_delay(crawler: Crawler, name: str) -> Iterator[None]:
    """Set the delay of the download slot ``name`` to 0 in the ``with`` block, then remove the slot.

    With a delay, the first request of the slot might wait: a new slot counts its delay from the
    start of the machine (0 of the monotonic clock), which may be less than the delay ago.
    """
    if describe_missing_attribute(crawler):
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
    """Return the delay that Scrapy sets for a new download slot, in seconds."""
    # AutoThrottle stores its delay in the downloader, before Scrapy 2.19 in the spider.
    delay = crawler.settings.getfloat("DOWNLOAD_DELAY")
    delay = getattr(crawler.spider, "download_delay", delay)
    return float(getattr(downloader_of(crawler), "_delay", delay))


def configured_delay(crawler: Crawler, name: str, seconds: float | None = None) -> float:
    """Return the delay of the download slot ``name`` in seconds, according to Scrapy's settings.

    It is the delay in DOWNLOAD_SLOTS, else ``seconds``; if ``seconds`` is None, DOWNLOAD_DELAY.
    AutoThrottle may set another delay, which is not included.
    """
    if seconds is None:
        seconds = crawler.settings.getfloat("DOWNLOAD_DELAY")
    own = crawler.settings.getdict("DOWNLOAD_SLOTS").get(name, {})
    return float(own.get("delay", seconds))


def seconds_until_free(slot: Slot) -> float:
    """Return the seconds until the delay of ``slot`` is over.

    This function changes the slot: its delay is no longer randomized. If no request waits in the
    slot, its timer is cancelled, because AutoThrottle may have changed the delay since the timer
    was set.
    """
    if not slot.lastseen:  # the slot has sent no request; see slot_without_delay
        slot.lastseen = _LONG_AGO
    if hasattr(slot, "jitter"):
        slot.jitter = 0.0
    else:  # Scrapy before 2.19
        slot.randomize_delay = False
    if not slot.queue:
        slot.close()  # cancels the timer
    return max(0.0, slot.lastseen + slot.delay - _now()) if slot.delay else 0.0
