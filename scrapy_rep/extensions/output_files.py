"""The files of report and evidence: their paths, and the form of times and JSON in them."""

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_rep.exceptions import SettingsError

_LAST: Final = datetime(9999, 12, 31, tzinfo=timezone.utc).timestamp()
encode_json: Final = json.JSONEncoder(separators=(",", ":"), default=str).encode
"""Returns a value as JSON in ASCII. Values that JSON has no type for become strings."""


def iso_time(seconds: float) -> str:
    """Return a time in seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    # A record from a store may have any time.
    at = datetime.fromtimestamp(min(max(0.0, seconds), _LAST), timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1_000:03}Z"


class _Values:
    """The values of placeholders: the time, as in Scrapy's feed URIs, or an attribute."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider

    def __getitem__(self, name: str) -> Any:
        if name == "time":
            return f"{datetime.now(timezone.utc):%Y-%m-%dT%H-%M-%S+00-00}"
        return getattr(self._spider, name)


def file_of_setting(crawler: Crawler, name: str, value: str | None) -> Path:
    """Return ``value`` of the setting ``name``, placeholders replaced; create the file if missing.

    Raises NotConfigured without a value or ROBOTSTXT_OBEY, SettingsError if it can't be written.
    """
    spider = crawler.spider
    if value is None or spider is None or not crawler.settings.getbool("ROBOTSTXT_OBEY"):
        raise NotConfigured
    try:
        path = Path(value % _Values(spider))
    except (AttributeError, ValueError, TypeError) as error:
        raise SettingsError(
            f"{name} is {value!r}: placeholders are %(time)s, %(name)s and other attributes "
            f"of the spider, and %% is a percent sign: {error}"
        ) from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SettingsError(f"{name} is {str(path)!r}: it can't be written: {why}") from None
    return path
