"""Readers of usage preferences: for each specification, what its text says about each label."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from scrapy_rep.protocol.limits import MAX_TAG_TEXT
from scrapy_rep.protocol.meta_tags import parts_for_tokens
from scrapy_rep.protocol.product_tokens import names_in_tags
from scrapy_rep.protocol.usage.statement import (
    ALLOW,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DISALLOW,
    HEADER,
    LICENSE,
    META,
    ROBOTSTXT,
    TAGS,
    TDMREP,
    UNKNOWN,
    Statement,
    Value,
    statements_of,
    strictest_value,
)

# Content-Usage, a Dictionary of RFC 9651, which is parsed by ``http-sf``.

USAGE_LABELS: Final = ("train-ai", "ai-use", "search")
"""The categories of draft-ietf-aipref-vocab-08. Revision 07 has no ``ai-use``."""
RETIRED_LABELS: Final = frozenset(
    {"tdm", "ai", "genai", "inference", "all", "bots", "train-genai", "ai-output"}
)
"""Categories of earlier revisions. Some sites still have them; they are ignored."""
_USAGE_VALUES: Final[dict[str, Value]] = {"y": ALLOW, "n": DISALLOW}


def usage_by_label(statement: bytes) -> dict[str, Value]:
    """Return the values of all labels in a statement, not only of USAGE_LABELS.

    Raises ValueError if the statement is no Dictionary of RFC 9651: then all of it is ignored.
    """
    # Imported here to save time and memory, as few files have lines with Content-Usage.
    from http_sf import Token, parse

    members = parse(statement.strip(), tltype="dictionary")
    values: dict[str, Value] = {}
    for label, member in cast("dict[str, Any]", members).items():
        item = member[0] if isinstance(member, tuple) else member
        is_token = isinstance(item, Token)
        values[label] = _USAGE_VALUES.get(str(item), UNKNOWN) if is_token else UNKNOWN
    return values


def read_usage(statement: bytes) -> dict[str, Value]:
    """Return the values of USAGE_LABELS in Content-Usage; an empty dict if it is not valid."""
    try:
        values = usage_by_label(statement)
    except ValueError:
        return {}
    return {label: values[label] for label in USAGE_LABELS if label in values}


# Content-Signal: pairs such as ``ai-train=no``, separated by commas. It has no formal grammar.

SIGNAL_LABELS: Final = ("search", "ai-input", "ai-train")
OTHER_SIGNALS: Final = ("use",)
"""Known keys that are about none of PURPOSES."""
SIGNAL_VALUES: Final[dict[str, Value]] = {"yes": ALLOW, "no": DISALLOW}


def signal_pairs(statement: bytes) -> list[tuple[str, str]]:
    """Return the pairs of key and value in lower case; text without ``=`` is skipped.

    In keys, ``_`` is replaced by ``-``.
    """
    pairs = (
        pair.partition("=") for pair in statement.decode("utf-8", "replace").lower().split(",")
    )
    return [
        (key.strip().replace("_", "-"), value.strip()) for key, equals, value in pairs if equals
    ]


def read_signals(statement: bytes) -> dict[str, Value]:
    """Return the values of SIGNAL_LABELS in a statement; invalid pairs are skipped.

    Of several values of a label, the restrictive one is returned.
    """
    values: dict[str, Value] = {}
    for key, value in signal_pairs(statement):
        if key in SIGNAL_LABELS and value in SIGNAL_VALUES:
            values[key] = strictest_value((values.get(key, UNKNOWN), SIGNAL_VALUES[value]))
    return values


READERS: Final = {CONTENT_USAGE: read_usage, CONTENT_SIGNAL: read_signals}
"""The functions that read the values in a statement, by source."""


# The tags noai, noimageai and noml in X-Robots-Tag headers and robots meta elements.

TAG_LABELS: Final = ("noai", "noimageai", "noml")
_words_in: Final = re.compile(r"[\w-]+").findall


def tags_in_header(value: str, tokens: Iterable[str]) -> list[Statement]:
    """Return the statements of TAG_LABELS in an X-Robots-Tag header, for these product tokens."""
    return _tags_in(",".join(parts_for_tokens(value, tokens)), value, HEADER)


def tags_in_meta(name: str, content: str, tokens: Iterable[str]) -> list[Statement]:
    """Return the statements of TAG_LABELS in ``<meta name=… content=…>``, for these tokens."""
    if name.strip().lower() not in names_in_tags(tokens):
        return []
    return _tags_in(content, content, META)


def _tags_in(words: str, raw: str, place: str) -> list[Statement]:
    """Return a statement for each tag in ``words``, which begins with no name of a crawler.

    If it is too long to be read, return a statement for each tag that there is.
    """
    if len(words) > MAX_TAG_TEXT:
        return statements_of(TAGS, dict.fromkeys(TAG_LABELS, DISALLOW), raw, None, place)
    # Some sites separate tags by blanks or semicolons, not by commas.
    found = set(_words_in(words.lower()))
    labels = [label for label in TAG_LABELS if label in found]
    return statements_of(TAGS, dict.fromkeys(labels, DISALLOW), raw, None, place) if labels else []


# Licenses of RSL 1.0: their URIs are reported, but the licenses are not read.

RSL: Final = "application/rsl+xml"
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*").fullmatch
# A link of RFC 8288 §3: its URI, and its parameters. A quoted string may contain commas; without a
# closing quote it extends to the end of the header.
_LINK: Final = re.compile(r'<([^<>]*)>((?:[^,"<]|"(?:[^"\\]|\\.?)*(?:"|\Z))*)')
_PARAMETER: Final = re.compile(r';\s*(rel|type)\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)


def license_in(uri: str, line: int | None, place: str = ROBOTSTXT) -> list[Statement]:
    """Return a statement with the URI of a license; an empty list if the URI isn't absolute."""
    if not _ABSOLUTE(uri):
        return []
    return statements_of(LICENSE, {"license": UNKNOWN}, uri, line, place)


def license_in_link(value: str) -> list[Statement]:
    """Return a statement for each link to an RSL license, by its type, with an absolute URI."""
    found = []
    for link in _LINK.finditer(value):
        parameters = {
            name.lower(): (quoted or plain).lower()
            for name, quoted, plain in reversed(_PARAMETER.findall(link[2]))  # the first one counts
        }
        if "license" in parameters.get("rel", "").split() and parameters.get("type") == RSL:
            found += license_in(link[1].strip(), None, HEADER)
    return found


# TDM Reservation Protocol, headers and meta elements.

RESERVATION: Final = "tdm-reservation"
POLICY: Final = "tdm-policy"
_RESERVATIONS: Final[dict[str, Value]] = {"1": DISALLOW, "0": ALLOW}


def tdm_in(label: str, values: Sequence[str], place: str) -> list[Statement]:
    """Return the statements in the values of a TDMRep header or meta element.

    By the specification there is one value. Each of several values, also of those that commas
    separate in a reservation, is a statement, so that the restrictive one counts. Values other
    than 0 and 1 are unknown. Reservations that are too long to be read count as one ``1``.
    """
    if label == POLICY:
        items: list[tuple[str, Value]] = [(value.strip(), UNKNOWN) for value in values]
    elif sum(map(len, values)) > MAX_TAG_TEXT:
        items = [(values[0], DISALLOW)]
    else:
        read = [item.strip() for value in values for item in value.split(",")]
        items = [(item, _RESERVATIONS.get(item, UNKNOWN)) for item in read]
    return [
        statement
        for raw, value in items
        for statement in statements_of(TDMREP, {label: value}, raw, None, place)
    ]
