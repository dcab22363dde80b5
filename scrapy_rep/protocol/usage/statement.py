"""Statements: single usage preferences, with their source, value and purposes.

The source of a statement is the specification by which it is read. Its place is where the site has
written it.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from scrapy_rep.protocol.limits import MAX_USAGE_RAW

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
