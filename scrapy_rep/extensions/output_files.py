"""The files of reports and evidence: finds a path for each crawl, and replaces a file at once."""

from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_rep.exceptions import SettingsError

_in_use: Final[set[Path]] = set()
"""Files that crawls of this process write."""


class _Values(dict[str, Any]):
    """The values of placeholders: the time, and attributes of the spider, else AttributeError."""

    def __init__(self, spider: Spider) -> None:
        # The time has the format that it has in Scrapy's feed URIs.
        now = datetime.now(timezone.utc).replace(microsecond=0, tzinfo=None)
        super().__init__(time=f"{now.isoformat()}+00:00".replace(":", "-"))
        self._spider = spider

    def __missing__(self, key: str) -> Any:
        return getattr(self._spider, key)


def path_of_setting(crawler: Crawler, name: str, value: str | None) -> Path:
    """Return ``value``, the path in the setting ``name``, with its placeholders replaced.

    ``%(time)s``, ``%(name)s`` and other attributes of the spider are replaced as in Scrapy's feed
    URIs. Raises SettingsError if one is not valid, NotConfigured without a value or ROBOTSTXT_OBEY.
    """
    spider = crawler.spider
    if value is None or spider is None or not crawler.settings.getbool("ROBOTSTXT_OBEY"):
        raise NotConfigured
    try:
        return Path(value % _Values(spider))
    except (AttributeError, ValueError, TypeError) as error:
        raise SettingsError(
            f"{name} is {value!r}: placeholders are %(time)s, %(name)s and other attributes "
            f"of the spider, and %% is a percent sign: {error}"
        ) from None


def reserve(path: Path) -> Path:
    """Reserve and return ``path``, or a numbered one if it is reserved; end it with ``release``."""
    names = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    place = path
    while place.resolve() in _in_use:
        place = next(names)
    _in_use.add(place.resolve())
    return place


def release(path: Path) -> None:
    """End the reservation of ``path``, so that another crawl may write to it."""
    _in_use.discard(path.resolve())


def replace_file(path: Path, data: bytes) -> None:
    """Write a new file, then rename it to ``path``, which is unchanged after an error."""
    new = path.with_name(f".{uuid4().hex}")
    try:
        new.write_bytes(data)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
