"""Crawl-delay and Request-rate: the delay between two requests that a group requires.

Neither field is part of RFC 9309. Both are read strictly: a line that isn't well-formed is ignored.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_CRAWL_DELAY, MAX_DELAY_DIGITS
from scrapy_rep.protocol.parser import Field

DELAY_FIELDS: Final = ("crawl-delay", "request-rate")
"""The fields that require a delay, in lower case."""
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
"""The units of time in Request-rate, in seconds."""
_DIGITS: Final = rf"[0-9]{{1,{MAX_DELAY_DIGITS}}}"
_SECONDS: Final = re.compile(rf"{_DIGITS}(?:\.{_DIGITS})?|\.{_DIGITS}").fullmatch
# The time of day after a rate, such as "1300-1659", is ignored: the rate is used all day.
_RATE: Final = re.compile(
    rf"({_DIGITS})\s*/\s*({_DIGITS})\s*([smhd]?)(?:\s+[0-9]{{4}}\s*-\s*[0-9]{{4}})?",
    re.IGNORECASE | re.ASCII,
).fullmatch


class Delay(NamedTuple):
    """The delay between two requests in seconds, and the line that requires it."""

    seconds: float
    field: Field


def delay_in(fields: Iterable[Field]) -> Delay | None:
    """Return the longest delay in fields of a group, above 0 and up to MAX_CRAWL_DELAY, or None."""
    delays = [Delay(_delay_of(field), field) for field in fields]
    valid = [delay for delay in delays if 0 < delay.seconds <= MAX_CRAWL_DELAY]
    return max(valid, key=lambda delay: delay.seconds, default=None)


def _delay_of(field: Field) -> float:
    """Return the delay in seconds; 0 for other fields, bad values, a rate of 0."""
    if field.name == "crawl-delay" and _SECONDS(field.value):
        return float(field.value)
    rate = _RATE(field.value) if field.name == "request-rate" else None
    if rate and int(rate[1]):
        return int(rate[2]) * _UNITS[rate[3].lower()] / int(rate[1])
    return 0.0
