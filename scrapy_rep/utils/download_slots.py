"""All uses of Scrapy's download slots; their attributes are private, and some may be missing."""

import math
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Final

from scrapy import Request
from scrapy.core import downloader as downloader_module
from scrapy.crawler import Crawler
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.utils.scrapy_internals import downloader_of

NEEDED: Final = {
    "slots": "tells how busy a download slot is",
    "get_slot_key": "names the download slot of a request",
}
"""Private attributes of Scrapy's downloader that this module needs, and why."""
SLOT_KEY: Final = "download_slot"
"""Key of ``Request.meta`` with the name of the download slot."""
SUCCESSOR_KEY: Final = "throttling_scopes"
"""The same in the throttler that is to replace download slots in Scrapy."""
_NEEDED_OF_SLOT: Final = {
    "active": "tells how busy a download slot is",
    "delay": "tells how fast it sends",
}


def describe_missing_attribute(crawler: Crawler) -> str | None:
    """Return a sentence about a needed attribute that is missing, or None."""
    # The class of slots is checked first: if Scrapy deprecates slots, reading them from the
    # downloader causes a warning.
    if (missing := _missing_slot_attribute()) is not None:
        return f"Scrapy has no {missing}"
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
        for name, reason in _NEEDED_OF_SLOT.items():
            if not hasattr(slot, name):
                return f"scrapy.core.downloader.Slot.{name}, which {reason}"
        return None
    return "scrapy.core.downloader.Slot, which counts the requests of a download slot"


def slot_name(crawler: Crawler, request: Request) -> str:
    """Return the name of the download slot of ``request``: as Scrapy has it, or meta or host."""
    if describe_missing_attribute(crawler):
        return request.meta.get(SLOT_KEY) or urlparse_cached(request).hostname or ""
    name: str = downloader_of(crawler).get_slot_key(request)
    return name


def delay_of_slot(crawler: Crawler, name: str) -> float:
    """Return the delay of the download slot in seconds; that of the crawl if it doesn't exist."""
    downloader = downloader_of(crawler)
    slots = {} if describe_missing_attribute(crawler) else downloader.slots
    if name in slots:
        return float(slots[name].delay)
    # AutoThrottle stores its delay in the downloader, before Scrapy 2.19 in the spider.
    delay = crawler.settings.getfloat("DOWNLOAD_DELAY")
    delay = getattr(crawler.spider, "download_delay", delay)
    return float(getattr(downloader, "_delay", delay))


def busy_slots(crawler: Crawler, names: Iterable[str]) -> dict[str, int]:
    """Return how many requests are in each slot that has some. No attribute may be missing."""
    slots = downloader_of(crawler).slots
    return {name: len(slot.active) for name in names if (slot := slots.get(name)) and slot.active}


def concurrency_of_slot(crawler: Crawler, name: str) -> float:
    """Return how many requests of the download slot may be sent at the same time."""
    slots = {} if describe_missing_attribute(crawler) else downloader_of(crawler).slots
    return getattr(slots.get(name), "concurrency", math.inf)
