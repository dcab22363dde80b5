"""The parts of a crawl: objects that exist once per crawl, and are found by crawler and class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

T = TypeVar("T")

_ATTRIBUTE: Final = "_scrapy_rep"
"""Attribute of a crawler with the parts of its crawl; they are freed with the crawler."""
_crawlers: Final[WeakSet[Crawler]] = WeakSet()
"""All crawlers of the process with parts."""


def add_part(crawler: Crawler, part: object) -> None:
    """Add ``part`` to a crawl, in place of one of the same class."""
    _parts(crawler)[type(part)] = part
    _crawlers.add(crawler)


def part(crawler: Crawler, cls: type[T]) -> T | None:
    """Return the part of a class; None if the crawl has none."""
    return cast("T | None", _parts(crawler).get(cls))


def part_or_new(crawler: Crawler, cls: type[T], make: Callable[[], T]) -> T:
    """Return the part of a class; if the crawl has none, make it with ``make``."""
    parts = _parts(crawler)
    if cls not in parts:
        parts[cls] = make()
    return cast("T", parts[cls])


def remove_part(crawler: Crawler, cls: type) -> None:
    """Remove the part of a class from a crawl, if there is one."""
    _parts(crawler).pop(cls, None)


def parts_of_all(cls: type[T]) -> list[T]:
    """Return the parts of a class of all crawls in this process that have an engine."""
    started = [each for each in _crawlers if _has_engine(each)]
    return [found for each in started if (found := part(each, cls)) is not None]


def _has_engine(crawler: Crawler) -> bool:
    try:
        return crawler.engine is not None
    except RuntimeError:  # of Scrapy 2.19 and newer, if the crawl has not started, or failed to
        return False


def _parts(crawler: Crawler) -> dict[type, Any]:
    parts: dict[type, Any] = vars(crawler).setdefault(_ATTRIBUTE, {})
    return parts
