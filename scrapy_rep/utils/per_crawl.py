"""The parts of a crawl: each is made once, and found by its class and its crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

T = TypeVar("T")

_ATTRIBUTE: Final = "_scrapy_rep"
"""Attribute of a crawler with the parts of its crawl, which live as long as it does."""
_crawlers: Final[WeakSet[Crawler]] = WeakSet()
"""The crawlers of the process to which parts were added."""


def add_part(crawler: Crawler, part: object) -> None:
    """Let ``part`` be that of its class in the crawl of ``crawler``."""
    _parts(crawler)[type(part)] = part
    _crawlers.add(crawler)


def part(crawler: Crawler, cls: type[T]) -> T | None:
    """Return the part of a class; None where the crawl has none."""
    return cast("T | None", _parts(crawler).get(cls))


def part_or_new(crawler: Crawler, cls: type[T], make: Callable[[], T]) -> T:
    """Return the part of a class; where the crawl has none, it is what ``make`` returns."""
    parts = _parts(crawler)
    if cls not in parts:
        parts[cls] = make()
    return cast("T", parts[cls])


def remove_part(crawler: Crawler, cls: type) -> None:
    """Let the crawl have no part of a class any more."""
    _parts(crawler).pop(cls, None)


def parts_of_all(cls: type[T]) -> list[T]:
    """Return the parts of a class that were added to the crawls of this process.

    Those of crawls that failed before they had an engine are left out.
    """
    started = [each for each in _crawlers if each.engine is not None]
    return [found for each in started if (found := part(each, cls)) is not None]


def _parts(crawler: Crawler) -> dict[type, Any]:
    parts: dict[type, Any] = vars(crawler).setdefault(_ATTRIBUTE, {})
    return parts
