"""The tags noai, noimageai and noml in X-Robots-Tag headers and robots meta elements."""

import re
from collections.abc import Iterable
from typing import Final

from scrapy_rep.protocol.limits import MAX_TAG_TEXT
from scrapy_rep.protocol.meta_tags import parts_for_tokens
from scrapy_rep.protocol.product_tokens import names_in_tags
from scrapy_rep.protocol.usage.statement import (
    DISALLOW,
    HEADER,
    META,
    TAGS,
    Statement,
    statements_of,
)

LABELS: Final = ("noai", "noimageai", "noml")
_words_in: Final = re.compile(r"[\w-]+").findall


def tags_in_header(value: str, tokens: Iterable[str]) -> list[Statement]:
    """Return the statements in an X-Robots-Tag header for a crawler with these tokens."""
    return _tags_in(",".join(parts_for_tokens(value, tokens)), value, HEADER)


def tags_in_meta(name: str, content: str, tokens: Iterable[str]) -> list[Statement]:
    """Return the statements in ``<meta name=… content=…>`` for a crawler with these tokens."""
    if name.strip().lower() not in names_in_tags(tokens):
        return []
    return _tags_in(content, content, META)


def _tags_in(words: str, raw: str, place: str) -> list[Statement]:
    """Return a statement for each tag; for all tags if the text is too long to be read."""
    if len(words) > MAX_TAG_TEXT:
        return statements_of(TAGS, dict.fromkeys(LABELS, DISALLOW), raw, None, place)
    # Some sites separate tags by blanks or semicolons, not by commas.
    found = set(_words_in(words.lower()))
    labels = [label for label in LABELS if label in found]
    return statements_of(TAGS, dict.fromkeys(labels, DISALLOW), raw, None, place) if labels else []
