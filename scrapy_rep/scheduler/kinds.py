"""What the queue classes in the settings say: the order of requests, and how they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy import squeues
from scrapy.utils.misc import load_object

from scrapy_rep.utils.scrapy_internals import missing

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Kind(NamedTuple):
    """One of Scrapy's queue classes."""

    order: int
    """1 where the oldest is first, -1 where the newest is."""
    marshals: bool
    """Whether it writes with marshal; all others on disk use pickle."""


_KINDS: Final = {
    getattr(squeues, f"{writer}{name}{where}Queue"): Kind(order, writer == "Marshal")
    for name, order in (("Fifo", 1), ("Lifo", -1))
    for writer, where in (
        ("", "Memory"),
        *((writer, where) for writer in ("Pickle", "Marshal") for where in ("Disk", "SQLite")),
    )
    # Those on SQLite came with Scrapy 2.17.
    if hasattr(squeues, f"{writer}{name}{where}Queue")
}


def kind_of(queue_class: type[Any] | None) -> Kind:
    """Return what ``queue_class``, one of Scrapy's, does; None is no queue of start requests."""
    return Kind(1, marshals=False) if queue_class is None else _KINDS[queue_class]


def unfit(crawler: Crawler, *queue_classes: type[Any] | None) -> str | None:
    """Return why our queue can't take the place of Scrapy's; None where it can."""
    wheres = ("MEMORY", "DISK") if crawler.settings.get("JOBDIR") else ("MEMORY",)
    names = [f"SCHEDULER_{start}{where}_QUEUE" for where in wheres for start in ("", "START_")]
    configured = [(name, crawler.settings.get(name)) for name in names]
    for name, value in (
        *configured,
        *(("A queue class of the scheduler", cls) for cls in queue_classes),
    ):
        if value and load_object(value) not in _KINDS:
            return f"{name} is {value!r}, which is none of Scrapy's own"
    return missing(crawler)
