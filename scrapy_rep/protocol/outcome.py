"""How a fetch of robots.txt ended: available, unavailable or unreachable, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Final

from scrapy_rep.protocol.soft404 import is_not_found_page


def too_many_redirects(hops: int) -> str:
    """Return ``Evidence.error`` for more than ``hops`` redirects."""
    return f"more than {hops} redirect{'' if hops == 1 else 's'}"


class Kind(str, Enum):
    """The three ways in which a fetch can end (RFC 9309 §2.3.1)."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class StatusClass:
    """The meaning of a range of HTTP status codes; both ends are included."""

    first: int
    last: int
    kind: Kind
    source: str


# The docs contain this table (reference/outcomes).
STATUS_CLASSES: Final = (
    StatusClass(200, 299, Kind.AVAILABLE, "RFC 9309 §2.3.1.1; SPEC F-1"),
    # Redirects that were not followed: too many, or without a valid target.
    StatusClass(300, 399, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.2; SPEC F-2"),
    StatusClass(400, 428, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.3; SPEC F-5"),
    # For RFC 9309 429 is like other 4xx; Google's later text, which SPEC F-6 follows, differs.
    StatusClass(429, 429, Kind.UNREACHABLE, "Google; SPEC F-6"),
    StatusClass(430, 499, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.3; SPEC F-5"),
    StatusClass(500, 599, Kind.UNREACHABLE, "RFC 9309 §2.3.1.4; SPEC F-6"),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts of a fetch: enough to determine its outcome again later."""

    at: float
    """When the fetch ended, seconds since the epoch."""
    url: str
    """The URL of the last request."""
    status: int | None = None
    """HTTP status of the last response; None if there was none."""
    hops: tuple[str, ...] = ()
    """The URLs that redirects led to, in order."""
    size: int = 0
    """Bytes of the decoded text, at most the size limit."""
    truncated: bool = False
    """Whether the text was longer than the size limit."""
    error: str | None = None
    """The error of the fetch, in printable ASCII."""
    cache_control: str | None = None
    """Cache-Control of the response."""
    age: str | None = None
    """Age of the response."""
    retry_after: str | None = None
    """Retry-After of the response."""

    @property
    def summary(self) -> str:
        """The error of the fetch, else the status of the response."""
        return (self.error or f"status {self.status}").rstrip(".")


@dataclass(frozen=True, slots=True)
class Available:
    """robots.txt was read: its rules are valid (RFC 9309 §2.3.1.1)."""

    body: bytes
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is no robots.txt: no restrictions (RFC 9309 §2.3.1.3)."""

    evidence: Evidence
    of_origin: bool = True
    """False if rules disallow the target of a redirect. As rules for another crawler may allow it,
    such an outcome is not stored."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The rules are unknown: for now all is disallowed (RFC 9309 §2.3.1.4)."""

    evidence: Evidence
    of_origin: bool = True
    """False if something on the route failed, as a proxy or a download handler. That says nothing
    about the origin: it is not stored, and never allows anything."""
    permanent: bool = False
    """Whether another try in this process would fail in the same way."""


Outcome = Available | Unavailable | Unreachable


def kind_of(status: int) -> Kind:
    """Return the kind of outcome of an HTTP status; an unknown status is unreachable."""
    for row in STATUS_CLASSES:
        if row.first <= status <= row.last:
            return row.kind
    return Kind.UNREACHABLE


def outcome_of(evidence: Evidence, body: bytes, *, soft_404: bool) -> Outcome:
    """Return the outcome of a fetch.

    ``body`` is the decoded text, cut to the size limit. ``soft_404`` tells whether a server error
    whose page says 'not found' counts as a 404 (SPEC F-9).
    """
    if evidence.status is None:
        return Unreachable(evidence)
    kind = kind_of(evidence.status)
    if kind is Kind.AVAILABLE:
        return Available(body, evidence)
    if kind is Kind.UNAVAILABLE:
        return Unavailable(evidence)
    # Google: "if we are able to determine that a site is incorrectly configured to return 5xx
    # instead of a 404"; not a 429.
    if soft_404 and evidence.status >= HTTPStatus.INTERNAL_SERVER_ERROR and is_not_found_page(body):
        return Unavailable(evidence)
    return Unreachable(evidence)
