"""Robots tags of pages: robots meta elements and X-Robots-Tag headers (SPEC R)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_TAG_TEXT
from scrapy_rep.protocol.product_tokens import names_in_tags
from scrapy_rep.protocol.tag_dates import DATE, read_date

_WITH_VALUE: Final = frozenset({"max-snippet", "max-image-preview", "max-video-preview"})
"""Directives with a colon, besides unavailable_after. Other words with a colon name a crawler."""
_UNTIL: Final = rf"unavailable_after\s*:[\s\"']*(?P<date>{DATE}|[^,;]*)"
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
    """Return the tags of a page for a crawler with these product tokens, and for all crawlers.

    ``headers`` are the values of X-Robots-Tag, ``metas`` the names and contents of all meta
    elements, ``now`` is in seconds since the epoch. If there are more elements or more text than
    the limits allow, the object TOO_MANY is returned. ``of_meta`` and ``of_header`` have no limit.
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
    """Yield the parts of an X-Robots-Tag header for all crawlers, and for one with these tokens."""
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
    """Return the tags in ``content``: also ``noindex`` for an ``unavailable_after`` in the past."""
    tags = Tags()
    for directive in _directives(content):
        date, word = directive.group("date", "word")
        if date is None:
            tags |= _MEANS.get(word.lower(), Tags())
        elif (moment := read_date(date)) is not None and moment.timestamp() <= now:
            tags |= Tags(noindex=True)
    return tags


_MEANS: Final = {
    "noindex": Tags(noindex=True),
    "nofollow": Tags(nofollow=True),
    "none": Tags(noindex=True, nofollow=True),
}
