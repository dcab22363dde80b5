"""Scrapy's queue classes: the order of requests, and their serialization."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from scrapy import squeues
from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from scrapy_rep.utils import download_slots, scrapy_internals


class QueueClass(NamedTuple):
    """One of Scrapy's queue classes."""

    order: int
    """1 for first in, first out; -1 for last in, first out."""
    marshals: bool
    """Whether it serializes with marshal; other disk queues use pickle."""


_NAME: Final = re.compile("(Pickle|Marshal|)(Fifo|Lifo)(Memory|Disk|SQLite)Queue")
QUEUE_CLASSES: Final = {
    queue_class: QueueClass(1 if "Fifo" in name else -1, name.startswith("Marshal"))
    for name, queue_class in vars(squeues).items()
    if _NAME.fullmatch(name)
}
"""The queue classes of this version of Scrapy."""


class UnfitError(Exception):
    """RobotsAwarePriorityQueue can't replace Scrapy's queue; the message has the reason."""


def check_fits(crawler: Crawler, *queue_classes: type[Any] | None) -> None:
    """Raise UnfitError if RobotsAwarePriorityQueue can't replace Scrapy's queue in this crawl.

    Raises ValueError, as Scrapy's queue does, if CONCURRENT_REQUESTS_PER_IP is set.
    """
    if crawler.settings.getint("CONCURRENT_REQUESTS_PER_IP"):
        raise ValueError("The priority queue does not support CONCURRENT_REQUESTS_PER_IP")
    wheres = ("MEMORY", "DISK") if crawler.settings.get("JOBDIR") else ("MEMORY",)
    names = [f"SCHEDULER_{start}{where}_QUEUE" for where in wheres for start in ("", "START_")]
    configured = [(name, crawler.settings.get(name)) for name in names]
    for name, value in (
        *configured,
        *(("A queue class of the scheduler", cls) for cls in queue_classes),
    ):
        if value and load_object(value) not in QUEUE_CLASSES:
            raise UnfitError(f"{name} is {value!r}, which is none of Scrapy's own")
    if what := download_slots.describe_missing_attribute(
        crawler
    ) or scrapy_internals.describe_missing_attribute(crawler):
        raise UnfitError(what)
