"""Crawl-delay and Request-rate: the seconds that a group asks for between two requests.

Neither is part of RFC 9309; both are read strictly, and a line that isn't well-formed asks for
nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_CRAWL_DELAY, MAX_DELAY_DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy_rep.protocol.parser import Field

DELAY_FIELDS: Final = ("crawl-delay", "request-rate")
"""The fields of the lines that ask for a delay, in lower case."""
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
"""Seconds of the units of Request-rate."""
_DIGITS: Final = rf"[0-9]{{1,{MAX_DELAY_DIGITS}}}"
_SECONDS: Final = re.compile(rf"{_DIGITS}(?:\.{_DIGITS})?|\.{_DIGITS}").fullmatch
# The time of day of a rate, such as "1300-1659", is ignored: the rate is always kept.
_RATE: Final = re.compile(
    rf"({_DIGITS})\s*/\s*({_DIGITS})\s*([smhd]?)(?:\s+[0-9]{{4}}\s*-\s*[0-9]{{4}})?",
    re.IGNORECASE | re.ASCII,
).fullmatch


class Delay(NamedTuple):
    """The delay between two requests in seconds, and the line that asks for it."""

    seconds: float
    field: Field


def delay_in(fields: Iterable[Field]) -> Delay | None:
    """Return the longest delay that ``fields`` of one group ask for, or None."""
    delays = [
        Delay(seconds, field)
        for field in fields
        if (seconds := _seconds(field)) is not None and 0 < seconds <= MAX_CRAWL_DELAY
    ]
    return max(delays, key=lambda delay: delay.seconds, default=None)


def _seconds(field: Field) -> float | None:
    if field.name == "crawl-delay":
        return float(field.value) if _SECONDS(field.value) else None
    if field.name == "request-rate":
        rate = _RATE(field.value)
        if rate and int(rate[1]):
            return int(rate[2]) * _UNITS[rate[3].lower()] / int(rate[1])
    return None
