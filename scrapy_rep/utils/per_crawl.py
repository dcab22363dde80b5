"""The parts of a crawl: one object per class, found by its class and the crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

T = TypeVar("T")

_ATTRIBUTE: Final = "_scrapy_rep"
"""Attribute of a crawler with the parts of its crawl."""
_crawlers: Final[WeakSet[Crawler]] = WeakSet()
"""The crawlers of the process to which parts were added."""


def add_part(crawler: Crawler, part: object) -> None:
    """Add ``part`` to the crawl of ``crawler``, in place of another one of its class."""
    _parts(crawler)[type(part)] = part
    _crawlers.add(crawler)


def part(crawler: Crawler, cls: type[T]) -> T | None:
    """Return the part of a class; None if the crawl has none."""
    return cast("T | None", _parts(crawler).get(cls))


def part_or_new(crawler: Crawler, cls: type[T], make: Callable[[], T]) -> T:
    """Return the part of a class; if the crawl has none, add the one that ``make`` returns."""
    parts = _parts(crawler)
    if cls not in parts:
        parts[cls] = make()
    return cast("T", parts[cls])


def remove_part(crawler: Crawler, cls: type) -> None:
    """Remove the part of a class."""
    _parts(crawler).pop(cls, None)


def parts_of_all(cls: type[T]) -> list[T]:
    """Return the parts of a class of all crawls in this process that have an engine."""
    started = [each for each in _crawlers if each.engine is not None]
    return [found for each in started if (found := part(each, cls)) is not None]


def _parts(crawler: Crawler) -> dict[type, Any]:
    parts: dict[type, Any] = vars(crawler).setdefault(_ATTRIBUTE, {})
    return parts
