"""Robots tags of pages: robots meta elements and X-Robots-Tag headers (SPEC R)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_TAG_TEXT
from scrapy_rep.protocol.product_tokens import names_in_tags

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun",
                  "jul", "aug", "sep", "oct", "nov", "dec")  # fmt: skip
_HOURS: Final = {"pst": -8, "pdt": -7, "mst": -7, "mdt": -6, "cst": -6, "cdt": -5, "est": -5,
                 "edt": -4, "utc": 0, "gmt": 0, "ut": 0, "z": 0, "wet": 0, "bst": 1, "cet": 1,
                 "west": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9}  # fmt: skip
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)})[a-z]*"
_ZONE: Final = rf"(?:{'|'.join(_HOURS)})"
_NUMBERS: Final = rf"[+-]?\d+(?:(?:[:.+-]|t|-{_MONTH}-)\d+)*(?:st|nd|rd|th|z)?"
_PART: Final = rf"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*|{_MONTH}|{_ZONE}|{_NUMBERS})(?![\w:])"

_DATE: Final = rf"{_PART}(?:[\s,]+{_PART})*"
"""Pattern of a text that may be a date: ISO 8601, RFC 822, RFC 850 or the command ``date``."""
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

_WITH_VALUE: Final = frozenset({"max-snippet", "max-image-preview", "max-video-preview"})
"""Directives with a colon, besides unavailable_after. Other words with a colon name a crawler."""
_UNTIL: Final = rf"unavailable_after\s*:[\s\"']*(?P<date>{_DATE}|[^,;]*)"
_parts: Final = re.compile(
    rf"{_UNTIL}|(?P<name>[^\s:,;\"']+)[\"']?\s*:|[^\s:,;\"']+", re.IGNORECASE
).finditer
"""Finds the names of crawlers in a header, and the directives between them."""
_directives: Final = re.compile(
    rf"{_UNTIL}|(?P<word>[\w-]+)(?:\s*:[^,;\w]*[\w-]*)?", re.IGNORECASE
).finditer


@dataclass(frozen=True, slots=True)
class Tags:
    """Whether the robots tags of a page for one crawler have ``noindex`` and ``nofollow``."""

    noindex: bool = False
    """Whether the page must not be indexed."""
    nofollow: bool = False
    """Whether links of the page must not be followed."""

    def __or__(self, other: Tags) -> Tags:
        """Return the union of both: if tags contradict each other, the restrictive tag is valid."""
        return Tags(self.noindex or other.noindex, self.nofollow or other.nofollow)

    def __bool__(self) -> bool:
        return self.noindex or self.nofollow


TOO_MANY: Final = Tags(noindex=True, nofollow=True)
"""The tags of a page with more robots tags or meta elements than are read."""

UNREADABLE: Final = Tags(noindex=True, nofollow=True)
"""The tags of a page whose meta elements can't be read."""


def of_page(
    headers: Iterable[str], metas: Iterable[tuple[str, str]], tokens: Iterable[str], now: float
) -> Tags:
    """Return the tags of a page for a crawler with these product tokens.

    ``headers`` are the values of X-Robots-Tag, ``metas`` the names and contents of the meta
    elements, ``now`` is in seconds since the epoch. If there are more elements or more text than
    the limits allow, the object TOO_MANY is returned.
    """
    tags, room = Tags(), MAX_TAG_TEXT
    names = names_in_tags(tokens)
    for value in headers:
        room -= len(value)
        if room < 0:
            return TOO_MANY
        tags |= of_header(value, names, now)
    for number, (name, content) in enumerate(metas):
        if number == MAX_META_ELEMENTS:
            return TOO_MANY
        if name.strip().lower() not in names:
            continue
        room -= len(content) + 1
        if room < 0:
            return TOO_MANY
        tags |= _tags_in(content, now)
    return tags


def of_meta(name: str, content: str, tokens: Iterable[str], now: float) -> Tags:
    """Return the tags of ``<meta name=… content=…>`` for a crawler with these product tokens."""
    if name.strip().lower() not in names_in_tags(tokens):
        return Tags()
    return _tags_in(content, now)


def of_header(value: str, tokens: Iterable[str], now: float) -> Tags:
    """Return the tags of one X-Robots-Tag header for a crawler with these product tokens.

    After the name of a crawler and a colon, the tags up to the next name are for this crawler:
    ``googlebot: noindex, otherbot: nofollow``.
    """
    tags = Tags()
    for words in parts_for_tokens(value, tokens):
        tags |= _tags_in(words, now)
    return tags


def parts_for_tokens(value: str, tokens: Iterable[str]) -> Iterator[str]:
    """Yield the parts of an X-Robots-Tag header for a crawler with these product tokens."""
    names = names_in_tags(tokens)
    concerned, start = True, 0
    for part in _parts(value):
        name = (part["name"] or "").lower()
        # Digits before a colon are no name, but part of a date that is not valid.
        if not name or name in _WITH_VALUE or name.isdigit():
            continue
        if concerned:
            yield value[start : part.start()]
        concerned, start = name in names, part.end()
    if concerned:
        yield value[start:]


def _tags_in(content: str, now: float) -> Tags:
    """Return the tags in ``content``. An ``unavailable_after`` that is over is a ``noindex``."""
    tags = Tags()
    for directive in _directives(content):
        date, word = directive.group("date", "word")
        if date is None:
            tags |= _MEANS.get(word.lower(), Tags())
        elif (moment := _read_date(date)) is not None and moment.timestamp() <= now:
            tags |= Tags(noindex=True)
    return tags


def _read_date(text: str) -> datetime | None:
    """Return the date and time in a text; None if it contains no valid date.

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
            int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1,
            int(day),
            *_parse_time(time),
            tzinfo=_parse_zone(time),
        )
    except ValueError:
        return None


def _parse_year(text: str) -> int:
    year = int(text)
    return year if len(text) > len("00") else year + (1900 if year > _CENTURY_ENDS else 2000)


def _parse_time(time: re.Match[str] | None) -> tuple[int, int, int]:
    numbers = () if time is None else filter(None, time.group(1, 2, 3, 4, 5, 6))
    hour, minute, second, *_ = (*map(int, numbers), 0, 0, 0)
    if (hour, minute, second) == (24, 0, 0):  # as ISO 8601 may write the end of a day
        return 23, 59, 59
    return hour, minute, 59 if second == _LEAP_SECOND else second


def _parse_zone(time: re.Match[str] | None) -> timezone:
    hours, minutes, name = (None, None, None) if time is None else time.group(7, 8, 9)
    if not hours:
        return timezone(timedelta(hours=_HOURS[name or "utc"]))
    offset = timedelta(hours=int(hours[1:]), minutes=int(minutes or 0))
    return timezone(-offset if hours.startswith("-") else offset)


_MEANS: Final = {
    "noindex": Tags(noindex=True),
    "nofollow": Tags(nofollow=True),
    "none": Tags(noindex=True, nofollow=True),
}
