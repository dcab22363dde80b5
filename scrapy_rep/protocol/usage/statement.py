"""Statements: single usage preferences, with their source, value and purposes; and their readers.

The source of a statement is the specification by which it is read. Its place is where the site has
written it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from scrapy_rep.protocol.limits import MAX_TAG_TEXT, MAX_USAGE_RAW

Value = Literal["allow", "disallow", "unknown"]

ALLOW: Final = "allow"
DISALLOW: Final = "disallow"
UNKNOWN: Final = "unknown"
"""The value if no statement allows or disallows a use."""

CONTENT_USAGE: Final = "content-usage"
CONTENT_SIGNAL: Final = "content-signal"
TAGS: Final = "tags"
TDMREP: Final = "tdmrep"
LICENSE: Final = "license"

ABOVE_GROUPS: Final = "robots.txt above the first User-agent line"
ROBOTSTXT: Final = "robots.txt"
HEADER: Final = "header"
META: Final = "meta"
PLACES: Final = (ABOVE_GROUPS, ROBOTSTXT, HEADER, META)
"""The places of statements, in the order in which a crawl reads them."""

ANY: Final = "*"
"""The label of a statement about all purposes."""

REVISIONS: Final[dict[str, str]] = {
    CONTENT_USAGE: (
        "Internet-Drafts draft-ietf-aipref-attach-05 (August 2026) and draft-ietf-aipref-vocab-08 "
        "(September 2026), which are no standard"
    ),
    CONTENT_SIGNAL: (
        "Cloudflare's Content Signals Policy (September 2025), as documented in August 2026"
    ),
    TAGS: "no specification: a convention of some sites",
    TDMREP: "W3C Community Group report of 10 May 2024, which is no W3C standard",
    LICENSE: "RSL 1.0 of 10 December 2025",
}
"""The supported revision of the specification, by source."""

PURPOSES: Final = ("search", "ai-input", "ai-training", "tdm")
"""The purposes that can be declared in REP_PURPOSES: what the pages of a crawl are used for."""

MEANINGS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    (CONTENT_USAGE, "train-ai"): ("ai-training",),
    (CONTENT_USAGE, "ai-use"): ("ai-input",),
    (CONTENT_USAGE, "search"): ("search",),
    (CONTENT_SIGNAL, "ai-train"): ("ai-training",),
    (CONTENT_SIGNAL, "ai-input"): ("ai-input",),
    (CONTENT_SIGNAL, "search"): ("search",),
    (TAGS, "noai"): ("ai-training",),
    (TAGS, "noml"): ("ai-training",),
    (TDMREP, "tdm-reservation"): ("tdm", "ai-training"),
    (CONTENT_USAGE, ANY): PURPOSES,
    (CONTENT_SIGNAL, ANY): PURPOSES,
}
"""The purposes for which a statement counts, by source and label. No specification contains this
table: scrapy-rep has chosen it."""


class Statement(NamedTuple):
    """One usage preference of a site."""

    source: str
    """The source of the statement, a key of REVISIONS."""
    label: str
    """The use that the statement is about, as its specification names it, such as ``train-ai``;
    ``*`` for all uses; empty if no label can be read."""
    value: Value
    raw: str
    """The text as written, cut at 500 characters; bytes that are not UTF-8 are escaped."""
    line: int | None
    """The line number in robots.txt, 1-based; None in other places."""
    place: str = ROBOTSTXT
    """The place of the statement, one of PLACES."""

    @property
    def revision(self) -> str:
        """The revision of the specification by which the statement is read."""
        own = "; that a line above the first User-agent line counts is a decision of scrapy-rep"
        return REVISIONS[self.source] + (own if self.place == ABOVE_GROUPS else "")


def statements_of(
    source: str, values: Mapping[str, Value], raw: str, line: int | None, place: str
) -> list[Statement]:
    """Return a statement for each label in ``values``; if it is empty, one with an empty label."""
    raw = raw[:MAX_USAGE_RAW]
    labels = values or {"": UNKNOWN}
    return [Statement(source, label, value, raw, line, place) for label, value in labels.items()]


def strictest_value(values: Iterable[Value]) -> Value:
    """Return ``disallow`` if it is among the values, else ``allow`` if it is, else ``unknown``."""
    found = set(values)
    return DISALLOW if DISALLOW in found else ALLOW if ALLOW in found else UNKNOWN


# Content-Usage, a Dictionary of RFC 9651, which is parsed by ``http-sf``.

_LABELS_OF_USAGE: Final = ("train-ai", "ai-use", "search")
"""The categories of draft-ietf-aipref-vocab-08. Revision 07 has no ``ai-use``. Others, also those
of earlier revisions that some sites still have, are ignored."""
_VALUES_OF_USAGE: Final[dict[str, Value]] = {"y": ALLOW, "n": DISALLOW}


def _read_usage(text: bytes) -> dict[str, Value]:
    """Return the values of the known labels in Content-Usage; an empty dict if it is not valid."""
    # Imported here to save time and memory, as few files have lines with Content-Usage.
    from http_sf import Token, parse

    try:
        members = cast("dict[str, Any]", parse(text.strip(), tltype="dictionary"))
    except ValueError:
        return {}
    values: dict[str, Value] = {}
    for label in _LABELS_OF_USAGE:
        if label in members:
            member = members[label]
            item = member[0] if isinstance(member, tuple) else member
            is_token = isinstance(item, Token)
            values[label] = _VALUES_OF_USAGE.get(str(item), UNKNOWN) if is_token else UNKNOWN
    return values


# Content-Signal: pairs such as ``ai-train=no``, separated by commas. It has no formal grammar.

_LABELS_OF_SIGNAL: Final = ("search", "ai-input", "ai-train")
_VALUES_OF_SIGNAL: Final[dict[str, Value]] = {"yes": ALLOW, "no": DISALLOW}


def _read_signals(text: bytes) -> dict[str, Value]:
    """Return the values of the known labels in Content-Signal; invalid pairs are skipped.

    Of several values of a label, the restrictive one is returned. In labels, ``_`` means ``-``.
    """
    values: dict[str, Value] = {}
    for pair in text.decode("utf-8", "replace").lower().split(","):
        label, _, word = pair.partition("=")
        label, value = label.strip().replace("_", "-"), _VALUES_OF_SIGNAL.get(word.strip())
        if label in _LABELS_OF_SIGNAL and value:
            values[label] = strictest_value((values.get(label, UNKNOWN), value))
    return values


READERS: Final = {CONTENT_USAGE: _read_usage, CONTENT_SIGNAL: _read_signals}
"""The functions that read the values of labels in a text, by source."""


# The tags noai, noimageai and noml in X-Robots-Tag headers and robots meta elements.

TAG_LABELS: Final = ("noai", "noimageai", "noml")
_words_in: Final = re.compile(r"[\w-]+").findall


def tags_in(words: str, raw: str, place: str) -> list[Statement]:
    """Return a statement for each of TAG_LABELS in ``words``, which begins with no crawler's name.

    If it is too long to be read, return a statement for each tag that there is.
    """
    # Some sites separate tags by blanks or semicolons, not by commas.
    found = TAG_LABELS if len(words) > MAX_TAG_TEXT else set(_words_in(words.lower()))
    labels = [label for label in TAG_LABELS if label in found]
    return statements_of(TAGS, dict.fromkeys(labels, DISALLOW), raw, None, place) if labels else []


# Licenses of RSL 1.0: their URIs are reported, but the licenses are not read.

_RSL: Final = "application/rsl+xml"
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
        if "license" in parameters.get("rel", "").split() and parameters.get("type") == _RSL:
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
        Statement(TDMREP, label, value, raw[:MAX_USAGE_RAW], None, place) for raw, value in items
    ]
