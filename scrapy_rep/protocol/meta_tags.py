"""Robots tags of pages: robots meta elements and X-Robots-Tag headers (SPEC R)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_TAG_TEXT
from scrapy_rep.protocol.product_tokens import names_in_tags

_WITH_VALUE: Final = frozenset(
    {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}
)
"""Directives with a colon. Other words with a colon name a crawler."""
_parts: Final = re.compile(
    r"(?P<name>[^\s:,;\"']+)[\"']?\s*:(?!\d\d(?!\w))|[^\s:,;\"']+", re.IGNORECASE
).finditer
"""Finds the names of crawlers in a header, and the directives between them; no name is the hour in
a date of unavailable_after, which is not read."""
_directives: Final = re.compile(r"([\w-]+)(?:\s*:[^,;\w]*[\w-]*)?").findall


@dataclass(frozen=True, slots=True)
class Tags:
    """Whether the robots tags of a page for one crawler have ``noindex`` and ``nofollow``."""

    noindex: bool = False
    """Whether the page must not be indexed."""
    nofollow: bool = False
    """Whether links of the page must not be followed."""

    def __or__(self, other: Tags) -> Tags:
        return Tags(self.noindex or other.noindex, self.nofollow or other.nofollow)

    def __bool__(self) -> bool:
        return self.noindex or self.nofollow


TOO_MANY: Final = Tags(noindex=True, nofollow=True)
"""The tags of a page with more robots tags or meta elements than are read."""

UNREADABLE: Final = Tags(noindex=True, nofollow=True)
"""The tags of a page whose meta elements can't be read."""


def of_page(
    headers: Iterable[str], metas: Iterable[tuple[str, str]], tokens: Iterable[str]
) -> Tags:
    """Return the tags of a page for a crawler with these product tokens, and for all crawlers.

    ``headers`` are the values of X-Robots-Tag, ``metas`` the names and contents of all meta
    elements. If there are more elements or more text than the limits allow, the object TOO_MANY is
    returned. ``of_meta`` and ``of_header`` have no limit.
    """
    tags, room = Tags(), MAX_TAG_TEXT
    names = names_in_tags(tokens)
    for value in headers:
        room -= len(value)
        if room < 0:
            return TOO_MANY
        tags |= of_header(value, names)
    for number, (name, content) in enumerate(metas):
        if number == MAX_META_ELEMENTS:
            return TOO_MANY
        if name.strip().lower() not in names:
            continue
        room -= len(content) + 1
        if room < 0:
            return TOO_MANY
        tags |= _tags_in(content)
    return tags


def of_meta(name: str, content: str, tokens: Iterable[str]) -> Tags:
    """Return the tags of ``<meta name=… content=…>`` for a crawler with these product tokens."""
    is_for_us = name.strip().lower() in names_in_tags(tokens)
    return _tags_in(content) if is_for_us else Tags()


def of_header(value: str, tokens: Iterable[str]) -> Tags:
    """Return the tags of one X-Robots-Tag header for a crawler with these product tokens.

    After the name of a crawler and a colon, the tags up to the next name are for this crawler:
    ``googlebot: noindex, otherbot: nofollow``.
    """
    return _tags_in(",".join(parts_for_tokens(value, tokens)))


def parts_for_tokens(value: str, tokens: Iterable[str]) -> Iterator[str]:
    """Yield the parts of an X-Robots-Tag header for all crawlers, and for one with these tokens."""
    names = names_in_tags(tokens)
    concerned, start = True, 0
    for part in _parts(value):
        name = (part["name"] or "").lower()
        if not name or name in _WITH_VALUE:
            continue
        if concerned:
            yield value[start : part.start()]
        concerned, start = name in names, part.end()
    if concerned:
        yield value[start:]


def _tags_in(content: str) -> Tags:
    words = {word.lower() for word in _directives(content)}
    return Tags(bool(words & {"noindex", "none"}), bool(words & {"nofollow", "none"}))
