"""What belongs to a crawl, found by its crawler, and let go of with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

T = TypeVar("T")


class PerCrawl(Generic[T]):
    """A value for each crawler."""

    def __init__(self) -> None:
        # Weak on both sides: what is known of a crawl leads to the crawl itself.
        self._values: WeakKeyDictionary[Crawler, ReferenceType[T]] = WeakKeyDictionary()

    def put(self, crawler: Crawler, value: T) -> None:
        """Let ``value`` be that of ``crawler``, as long as anybody else holds it."""
        self._values[crawler] = ref(value)

    def get(self, crawler: Crawler) -> T | None:
        """Return the value of ``crawler``, or None."""
        value = self._values.get(crawler)
        return None if value is None else value()

    def values(self) -> list[T]:
        """Return the values of all crawlers."""
        return [value for each in self._values.values() if (value := each()) is not None]

    def remove(self, crawler: Crawler) -> None:
        """Forget the value of ``crawler``."""
        self._values.pop(crawler, None)
