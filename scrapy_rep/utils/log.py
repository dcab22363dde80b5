"""The loggers of scrapy-rep: what repeats is logged ten times, then at DEBUG level."""

import logging
from collections import Counter
from typing import Any, Final
from weakref import WeakKeyDictionary

from scrapy import Spider
from scrapy.crawler import Crawler

MAX_LINES: Final = 10
_FURTHER: Final = " - further lines of this kind are logged at DEBUG level"
_counts: Final[WeakKeyDictionary[Spider, Counter[str]]] = WeakKeyDictionary()
"""Number of lines above DEBUG by spider, and by message without its values."""


class LimitedLogger(logging.LoggerAdapter):  # type: ignore[type-arg] # no generic before 3.11
    """A logger that logs further lines at DEBUG level after MAX_LINES with the same message.

    The lines of ``crawler`` are counted by its spider, others by this object.
    """

    def __init__(self, name: str, crawler: Crawler | None = None) -> None:
        super().__init__(logging.getLogger(name), {})
        self._crawler = crawler
        self._counts: Counter[str] = Counter()

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        extra = None if self._crawler is None else {"spider": self._crawler.spider}
        if level > logging.DEBUG:
            spider = extra and extra["spider"]
            counts = _counts.setdefault(spider, Counter()) if spider else self._counts
            counts[str(msg)] += 1
            if counts[str(msg)] > MAX_LINES:
                level = logging.DEBUG
            elif counts[str(msg)] == MAX_LINES:
                msg = f"{msg}{_FURTHER}"
        self.logger.log(level, msg, *args, extra=extra, stacklevel=2, **kwargs)
