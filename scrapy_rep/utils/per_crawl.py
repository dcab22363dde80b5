"""The parts of a crawl: objects, of which each crawl has at most one of a class."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast
from weakref import WeakSet

from scrapy.crawler import Crawler

T = TypeVar("T")

_ATTRIBUTE: Final = "_scrapy_rep"
"""Attribute of a crawler in which its parts are stored, so that they are freed with the crawler."""
open_crawls: Final[WeakSet[Crawler]] = WeakSet()
"""The crawls of this process that obey robots.txt, and have begun and not ended."""


def add_part(crawler: Crawler, part: object) -> None:
    """Add ``part`` to a crawl. It replaces a part of the same class."""
    _parts(crawler)[type(part)] = part


def get_part(crawler: Crawler, cls: type[T]) -> T | None:
    """Return the part of the class ``cls``; None if the crawl has none."""
    return cast("T | None", _parts(crawler).get(cls))


def get_or_add_part(crawler: Crawler, cls: type[T], make: Callable[[], T]) -> T:
    """Return the part of the class ``cls``; if the crawl has none, add the one ``make`` returns."""
    parts = _parts(crawler)
    if cls not in parts:
        parts[cls] = make()
    return cast("T", parts[cls])


def take_part(crawler: Crawler, cls: type[T]) -> T | None:
    """Remove the part of the class ``cls`` from a crawl, and return it; None if it has none."""
    return cast("T | None", _parts(crawler).pop(cls, None))


def _parts(crawler: Crawler) -> dict[type, Any]:
    parts: dict[type, Any] = vars(crawler).setdefault(_ATTRIBUTE, {})
    return parts
