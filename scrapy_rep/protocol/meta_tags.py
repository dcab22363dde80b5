"""Robots meta tags and X-Robots-Tag: what a page asks of those who have fetched it (SPEC R)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_TAG_TEXT
from scrapy_rep.protocol.product_tokens import names_in_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WITH_VALUE: Final = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)
"""Directives with a colon in them: what stands before it names no crawler."""
_NAME: Final = re.compile(r"\s*([^\s:,]+)\s*:").match
_WORD: Final = re.compile(r"[\w-]+").match
_ZONE_NAMES: Final = {"PST": "-0800", "PDT": "-0700", "MST": "-0700", "MDT": "-0600",
                      "CST": "-0600", "CDT": "-0500", "EST": "-0500", "EDT": "-0400",
                      "UTC": "+0000", "GMT": "+0000", "UT": "+0000", "Z": "+0000"}  # fmt: skip
# The one comma in a date stands behind the day of the week.
_UNTIL: Final = re.compile(r"unavailable_after:\s*((?:[a-z]+,)?[^,]*)", re.IGNORECASE)
# RFC 850: 'Friday, 25-Jun-10 15:00:00 PST'.
_RFC850: Final = re.compile(r"(\d{1,2})-([A-Za-z]{3})-(\d{2,4})")


@dataclass(frozen=True, slots=True)
class Tags:
    """What a page asks for."""

    noindex: bool = False
    """Not to index it."""
    nofollow: bool = False
    """Not to follow its links."""

    def __or__(self, other: Tags) -> Tags:
        """Return what either asks for: of contradicting words the restrictive one holds."""
        return Tags(self.noindex or other.noindex, self.nofollow or other.nofollow)

    def __bool__(self) -> bool:
        return self.noindex or self.nofollow


TOO_MANY: Final = Tags(noindex=True, nofollow=True)
"""What a page asks for of which not all can be read: never less than what it may say."""


def of_page(
    headers: Iterable[str],
    metas: Iterable[tuple[str, str]],
    tokens: Iterable[str],
    now: float,
) -> Tags:
    """Return what X-Robots-Tag headers, and names and contents of meta elements, ask all together.

    That is TOO_MANY, the object itself, of a page with more elements or more text that is meant for
    us than limits.py has a number for; what is beyond these isn't read.
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
        tags |= _words(content, now)
    return tags


def of_meta(name: str, content: str, tokens: Iterable[str], now: float) -> Tags:
    """Return what ``<meta name=… content=…>`` asks of a crawler with these product tokens."""
    if name.strip().lower() not in names_in_tags(tokens):
        return Tags()
    return _words(content, now)


def of_header(value: str, tokens: Iterable[str], now: float) -> Tags:
    """Return what one X-Robots-Tag header asks of a crawler with these product tokens.

    A name and a colon address all that follows to one crawler, up to the next name:
    ``googlebot: noindex, otherbot: nofollow``.
    """
    tags = Tags()
    for words in addressed(value, tokens):
        tags |= _words(words, now)
    return tags


def addressed(value: str, tokens: Iterable[str]) -> Iterator[str]:
    """Yield the parts of an X-Robots-Tag header that are meant for these product tokens."""
    names = names_in_tags(tokens)
    concerned = True
    words: list[str] = []
    for part in value.split(","):
        rest = part
        name = _NAME(part)
        if name and name[1].lower() not in _WITH_VALUE and not _is_time(words):
            if concerned:
                yield ",".join(words)
            words = []
            concerned = name[1].lower() in names
            rest = part[name.end() :]
        words.append(rest)
    if concerned:
        yield ",".join(words)


def _is_time(words: list[str]) -> bool:
    """Say whether what stands before is a date that goes on: 'unavailable_after: Friday, …'."""
    return (
        bool(words) and re.fullmatch(r"\s*unavailable_after:\s*[A-Za-z]+\s*", words[-1]) is not None
    )


def _words(content: str, now: float) -> Tags:
    tags = Tags()
    for date in _UNTIL.findall(content):
        if _has_passed(date, now):
            tags |= Tags(noindex=True)
    for part in _UNTIL.sub("", content).lower().split(","):
        word = _WORD(part.strip())
        tags |= _MEANS.get(word[0] if word else "", Tags())
    return tags


_MEANS: Final = {
    "noindex": Tags(noindex=True),
    "nofollow": Tags(nofollow=True),
    "none": Tags(noindex=True, nofollow=True),
}


def _has_passed(text: str, now: float) -> bool:
    moment = _moment(text.strip())
    return moment is not None and moment.timestamp() <= now


def _moment(text: str) -> datetime | None:
    """Return a date as RFC 822, RFC 850 or ISO 8601 write it; UTC where it names no zone."""
    try:
        moment = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    except ValueError:
        head, _, zone = text.rpartition(" ")
        if zone.upper() in _ZONE_NAMES:
            text = f"{head} {_ZONE_NAMES[zone.upper()]}"
        try:
            moment = parsedate_to_datetime(_RFC850.sub(r"\1 \2 \3", text))
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
