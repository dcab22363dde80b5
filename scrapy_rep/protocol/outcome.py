"""How a fetch of robots.txt ended: available, unavailable or unreachable, with its evidence."""

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import ClassVar, Final, NamedTuple

from scrapy_rep.protocol.html_pages import is_not_found_page

ABSENT: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_SERVER_ERROR: Final = HTTPStatus.INTERNAL_SERVER_ERROR
DNS_ERROR: Final = "DNS lookup failed"
"""``Evidence.error`` if the host name of the file does not exist, or could not be resolved."""


class Kind(str, Enum):
    """The three ways in which a fetch can end (RFC 9309 §2.3.1)."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"


class StatusClass(NamedTuple):
    """The meaning of a range of HTTP status codes; both ends are included."""

    first: int
    last: int
    kind: Kind
    source: str


# The docs show this table (reference/outcomes).
STATUS_CLASSES: Final = (
    StatusClass(200, 299, Kind.AVAILABLE, "RFC 9309 §2.3.1.1; SPEC F-1"),
    # Only redirects that were not followed: too many, or without a valid target.
    StatusClass(300, 399, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.2; SPEC F-2"),
    StatusClass(400, 428, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.3; SPEC F-5"),
    # RFC 9309 has 429 among the other 4xx. SPEC F-6 follows Google's documentation, which is later.
    StatusClass(429, 429, Kind.UNREACHABLE, "Google; SPEC F-6"),
    StatusClass(430, 499, Kind.UNAVAILABLE, "RFC 9309 §2.3.1.3; SPEC F-5"),
    StatusClass(500, 599, Kind.UNREACHABLE, "RFC 9309 §2.3.1.4; SPEC F-6"),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts of a fetch, which are stored."""

    at: float
    url: str
    status: int | None = None
    hops: tuple[str, ...] = ()
    """The targets of the redirects that were followed, in order."""
    size: int = 0
    """Size of the text in bytes, without its content coding; at most the size limit."""
    truncated: bool = False
    """Whether the text was longer than the size limit, and was cut."""
    error: str | None = None
    """The error of the fetch, in printable ASCII."""
    # The values of these headers in the response.
    cache_control: str | None = None
    age: str | None = None
    retry_after: str | None = None

    @property
    def summary(self) -> str:
        """The error of the fetch, else the status of the response."""
        return (self.error or f"status {self.status}").rstrip(".")


@dataclass(frozen=True, slots=True)
class Available:
    """The file was fetched: its rules are valid (RFC 9309 §2.3.1.1)."""

    body: bytes
    evidence: Evidence
    kind: ClassVar = Kind.AVAILABLE


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The origin has no such file: there are no restrictions (RFC 9309 §2.3.1.3)."""

    evidence: Evidence
    kind: ClassVar = Kind.UNAVAILABLE
    of_origin: bool = True
    """False if the file is redirected to a URL that rules disallow. Rules for other crawlers may
    allow it, so this outcome is not stored."""

    @property
    def is_absent(self) -> bool:
        """Whether the site said that the file is missing: with 404, 410 or a page that says so."""
        status = self.evidence.status or 0
        return self.evidence.error is None and (status in ABSENT or status >= _SERVER_ERROR)

    @property
    def is_refused(self) -> bool:
        """Whether the site refused the file: with another 4xx, or a page of a bot protection."""
        return not self.is_absent and self.evidence.status not in range(300, 400)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The rules are unknown: for now all is disallowed (RFC 9309 §2.3.1.4)."""

    evidence: Evidence
    kind: ClassVar = Kind.UNREACHABLE
    of_origin: bool = True
    """False if the fetch failed on the route to the origin, in a proxy or a download handler: then
    it is not stored, and never allows any URL."""
    permanent: bool = False
    """Whether another fetch by this process would fail in the same way."""


Outcome = Available | Unavailable | Unreachable


def outcome_of(evidence: Evidence, body: bytes) -> Outcome:
    """Return the outcome of a fetch by its status; Unreachable if that is None, or in no class.

    ``body`` is the decoded text. A server error with a page that means 'not found' counts as a 404
    (SPEC F-9). With an error, a 2xx is no robots.txt.
    """
    status = evidence.status or 0
    if evidence.error is not None and status < HTTPStatus.MULTIPLE_CHOICES:
        return Unavailable(evidence)  # the page of a bot protection
    kind = next((row.kind for row in STATUS_CLASSES if row.first <= status <= row.last), None)
    if kind is Kind.AVAILABLE:
        return Available(body, evidence)
    # Google's documentation: "if we are able to determine that a site is incorrectly configured to
    # return 5xx instead of a 404". A 429 is no 5xx, so it never counts as a 404.
    if kind is Kind.UNAVAILABLE or (status >= _SERVER_ERROR and is_not_found_page(body)):
        return Unavailable(evidence)
    return Unreachable(evidence)
