"""How a fetch of robots.txt ended: available, unavailable or unreachable, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Final

from scrapy_rep.protocol.soft404 import says_not_found


def too_many_redirects(hops: int) -> str:
    """Return ``Evidence.error`` of a chain that was followed no further than so many hops."""
    return f"more than {hops} redirect{'' if hops == 1 else 's'}"


class Kind(str, Enum):
    """The three ways in which a fetch can end (RFC 9309 §2.3.1)."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class StatusClass:
    """What a range of HTTP status codes, both ends included, means for robots.txt."""

    first: int
    last: int
    kind: Kind
    source: str


# The one table of what ends how; the docs show it (reference/outcomes), nothing retypes it.
STATUS_CLASSES: Final = (
    StatusClass(200, 299, Kind.AVAILABLE, "RFC 9309 §2.3.1.1; SPEC F-1"),
    # What is left of 3xx when the fetcher is done: too many hops, or a hop that can't be followed.
    StatusClass(300, 399, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.2; SPEC F-2"),
    StatusClass(400, 428, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.3; SPEC F-5"),
    # RFC 9309 puts 429 with 4xx; Google's later wording, which SPEC F-6 follows, does not.
    StatusClass(429, 429, Kind.UNREACHABLE, "Google; SPEC F-6"),
    StatusClass(430, 499, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.3; SPEC F-5"),
    StatusClass(500, 599, Kind.UNREACHABLE, "RFC 9309 §2.3.1.4; SPEC F-6"),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of a fetch, enough to judge its outcome again later."""

    at: float
    """When the fetch ended, seconds since the epoch."""
    url: str
    """The last URL asked."""
    status: int | None = None
    """HTTP status of the last answer; None where there was none."""
    hops: tuple[str, ...] = ()
    """The URLs that redirects led to, in order."""
    size: int = 0
    """Bytes of decoded text that were read; of a longer one, how many count."""
    truncated: bool = False
    """Whether there was more text than counts."""
    error: str | None = None
    """What broke the fetch, in printable ASCII."""
    cache_control: str | None = None
    """The answer's Cache-Control."""
    age: str | None = None
    """The answer's Age."""
    retry_after: str | None = None
    """The answer's Retry-After."""

    @property
    def summary(self) -> str:
        """What was seen last: what broke the fetch, or the status of the answer."""
        return (self.error or f"status {self.status}").rstrip(".")


@dataclass(frozen=True, slots=True)
class Available:
    """robots.txt was read: its rules hold (RFC 9309 §2.3.1.1)."""

    body: bytes
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is no robots.txt: no restrictions (RFC 9309 §2.3.1.3)."""

    evidence: Evidence
    of_origin: bool = True
    """Whether the origin said so, and not rules that this crawl knows of a redirect's target: those
    for another crawler may lead further, so that is not stored."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nobody knows what robots.txt says: for now all is disallowed (RFC 9309 §2.3.1.4)."""

    evidence: Evidence
    of_origin: bool = True
    """Whether it was the origin that failed, and not something on the route to it, as a proxy or a
    download handler: that says nothing of the origin, is not stored, and opens nothing."""
    for_good: bool = False
    """Whether another try of this process would end alike, as there is no download handler."""


Outcome = Available | Unavailable | Unreachable


def kind_of(status: int) -> Kind:
    """Return what an HTTP status means; a status that HTTP doesn't have is unreachable."""
    for row in STATUS_CLASSES:
        if row.first <= status <= row.last:
            return row.kind
    return Kind.UNREACHABLE


def outcome_of(evidence: Evidence, body: bytes, *, soft_404: bool) -> Outcome:
    """Return how a fetch ended.

    ``body`` is the decoded text, already cut to the size that counts. ``soft_404`` says whether
    a server error whose page says 'not found' is one (SPEC F-9).
    """
    if evidence.status is None:
        return Unreachable(evidence)
    kind = kind_of(evidence.status)
    if kind is Kind.AVAILABLE:
        return Available(body, evidence)
    if kind is Kind.UNAVAILABLE:
        return Unavailable(evidence)
    # Google: "if we are able to determine that a site is incorrectly configured to return 5xx
    # instead of a 404"; a 429 is no such thing.
    if soft_404 and evidence.status >= HTTPStatus.INTERNAL_SERVER_ERROR and says_not_found(body):
        return Unavailable(evidence)
    return Unreachable(evidence)
