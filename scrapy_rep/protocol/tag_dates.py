"""Dates in robots tags, in the formats of ISO 8601, RFC 822, RFC 850 and the command ``date``."""

import re
from datetime import datetime, timedelta, timezone
from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun",
                  "jul", "aug", "sep", "oct", "nov", "dec")  # fmt: skip
_HOURS: Final = {"pst": -8, "pdt": -7, "mst": -7, "mdt": -6, "cst": -6, "cdt": -5, "est": -5,
                 "edt": -4, "utc": 0, "gmt": 0, "ut": 0, "z": 0, "wet": 0, "bst": 1, "cet": 1,
                 "west": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9}  # fmt: skip
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)})[a-z]*"
_ZONE: Final = rf"(?:{'|'.join(_HOURS)})"
_NUMBERS: Final = rf"[+-]?\d+(?:(?:[:.+-]|t|-{_MONTH}-)\d+)*(?:st|nd|rd|th|z)?"
_PART: Final = rf"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*|{_MONTH}|{_ZONE}|{_NUMBERS})(?![\w:])"

DATE: Final = rf"{_PART}(?:[\s,]+{_PART})*"
"""Pattern of a text that may be a date; it must be used with the flag re.IGNORECASE."""

_time: Final = re.compile(
    # ISO 8601 allows a time without colons after a date; other formats have colons.
    r"(?:(?<=\dt)(\d\d)(\d\d)(\d\d)?|(\d\d?):(\d\d)(?::(\d\d))?)(?:\.\d+)?"
    rf"(?:\s*(?:([+-]\d\d):?(\d\d)?|({_ZONE}))\b)?"
).search
_date: Final = re.compile(
    rf"\b(?:(\d{{4}})-?(\d\d)-?(\d\d)(?:\b|t)"
    rf"|(\d\d?)[a-z]*[\s-]+({_MONTH})[\s,-]+(\d{{4}}|\d\d)\b"
    rf"|({_MONTH})\s+(\d\d?)(?:[a-z]*[\s,]+)(\d{{4}})\b)"
).search
_LEAP_SECOND: Final = 60
_CENTURY_ENDS: Final = 68
"""The highest two-digit year that means 20xx; higher ones mean 19xx, as in POSIX."""


def read_date(text: str) -> datetime | None:
    """Return the first date in a text, with its time and zone; None without a date, or if invalid.

    A time without a zone is UTC. A date without a time means the beginning of the day.
    """
    text = text.lower()
    time = _time(text)
    # The time is removed, as it may be within the date: 'Fri Jun 25 15:00:00 2010'.
    date = _date(text if time is None else f"{text[: time.start()]} {text[time.end() :]}")
    if date is None:
        return None
    year, month, day = filter(None, date.group(1, 2, 3, 6, 5, 4, 9, 7, 8))
    try:
        return datetime(
            _parse_year(year),
            _parse_month(month),
            int(day),
            *_parse_time(time),
            tzinfo=_parse_zone(time),
        )
    except ValueError:
        return None


def _parse_year(text: str) -> int:
    year = int(text)
    return year if len(text) > len("00") else year + (1900 if year > _CENTURY_ENDS else 2000)


def _parse_month(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS.index(text[:3]) + 1


def _parse_time(time: re.Match[str] | None) -> tuple[int, int, int]:
    """Return hour, minute, second, unchecked, 0 if missing; 23:59:59 for 24:00:00, 59 for a 60."""
    numbers = () if time is None else filter(None, time.group(1, 2, 3, 4, 5, 6))
    hour, minute, second, *_ = (*map(int, numbers), 0, 0, 0)
    if (hour, minute, second) == (24, 0, 0):  # as ISO 8601 may write the end of a day
        return 23, 59, 59
    return hour, minute, 59 if second == _LEAP_SECOND else second


def _parse_zone(time: re.Match[str] | None) -> timezone:
    """Return the zone of a time, else UTC. Raises ValueError for an offset of a day or more."""
    hours, minutes, name = (None, None, None) if time is None else time.group(7, 8, 9)
    if not hours:
        return timezone(timedelta(hours=_HOURS[name or "utc"]))
    offset = timedelta(hours=int(hours[1:]), minutes=int(minutes or 0))
    return timezone(-offset if hours.startswith("-") else offset)
