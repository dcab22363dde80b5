"""Statement about use: where it comes from, what it says, and what that means for a purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from scrapy_rep.protocol.limits import MAX_USAGE_RAW

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value = Literal["allow", "disallow", "unknown"]

ALLOW: Final = "allow"
DISALLOW: Final = "disallow"
UNKNOWN: Final = "unknown"
"""Neither: of no statement can be told what it says. It is a value of its own."""

CONTENT_USAGE: Final = "content-usage"
CONTENT_SIGNAL: Final = "content-signal"
TAGS: Final = "tags"
TDMREP: Final = "tdmrep"
LICENSE: Final = "license"
LEGACY: Final = "disallowaitraining"

ROBOTSTXT: Final = "robots.txt"
TDMREP_JSON: Final = "tdmrep.json"
HEADER: Final = "header"
META: Final = "meta"
PLACES: Final = (ROBOTSTXT, TDMREP_JSON, HEADER, META)
"""Where statements stand, in the order in which they are met."""

ANY: Final = "*"
"""The label of a statement that speaks of all purposes."""

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
    LEGACY: "an abandoned Internet-Draft, draft-canel-robots-ai-control-00 (October 2024)",
}
"""By source, what is read. Specifications change: another revision may mean something else."""

PURPOSES: Final = ("search", "ai-input", "ai-training", "tdm")
"""What an operator can declare to use pages for."""

SOURCES: Final = (CONTENT_USAGE, CONTENT_SIGNAL, TAGS, TDMREP, LEGACY)
"""What an operator can choose to be judged by: TDMREP is the file, what headers and meta elements
say by it is of TAGS."""

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
    (LEGACY, "ai-training"): ("ai-training",),
    (CONTENT_USAGE, ANY): PURPOSES,
    (CONTENT_SIGNAL, ANY): PURPOSES,
    (LEGACY, ANY): PURPOSES,
}
"""By source and label, the purposes that a statement speaks of. This table is our policy."""


class Statement(NamedTuple):
    """One thing that a site says about use."""

    source: str
    """One of REVISIONS."""
    label: str
    """What it speaks of, as its specification has it; empty where no label of it can be read."""
    value: Value
    raw: str
    """As written, cut at 500 characters; bytes that are no UTF-8 are shown as escapes."""
    line: int | None
    """Its line in robots.txt, 1-based; None elsewhere."""
    place: str = ROBOTSTXT
    """Where it stands, one of PLACES."""

    @property
    def revision(self) -> str:
        """The specification that it was read by."""
        return REVISIONS[self.source]


def statements_of(
    source: str, values: Mapping[str, Value], raw: str, line: int | None, place: str
) -> list[Statement]:
    """Return a statement for each label that was read; one without a label where none was."""
    raw = raw[:MAX_USAGE_RAW]
    labels = values or {"": UNKNOWN}
    return [Statement(source, label, value, raw, line, place) for label, value in labels.items()]


def combined(values: Iterable[Value]) -> Value:
    """Return what values say together: any disallow, else any allow, else unknown."""
    found = set(values)
    return DISALLOW if DISALLOW in found else ALLOW if ALLOW in found else UNKNOWN
