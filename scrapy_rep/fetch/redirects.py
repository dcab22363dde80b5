"""Redirects of robots.txt: the next URL, and which redirects are not followed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from w3lib.url import safe_url_string

from scrapy_rep.fetch.addresses import is_private_address, is_private_host, leads_inside
from scrapy_rep.fetch.transfer import FetchError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Evidence
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.utils.concurrency import in_thread

if TYPE_CHECKING:
    from scrapy.http import Response

    from scrapy_rep.fetch.transfer import Answer, Transfer
    from scrapy_rep.protocol.site_file import SiteFile
    from scrapy_rep.protocol.verdict import Verdict

_REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})
_WITHOUT_RULES: Final = (Reason.UNREACHABLE, Reason.ERROR)
_MAX_HEADER: Final = 1_000
"""Bytes of a header that are stored."""
_MAX_LOCATION: Final = 8_000
"""Maximum size of a Location that is followed, in bytes (RFC 9110 §4.1 asks for 8,000)."""


@dataclass(eq=False)
class Chain:
    """The redirects of one fetch."""

    file: SiteFile
    deadline: float
    hops: list[str] = field(default_factory=list)
    transfer: Transfer | None = None
    """The transfer of the last request."""
    _public: bool = field(init=False)

    def __post_init__(self) -> None:
        self._public = not is_private_host(self.file.origin.host)

    @property
    def urls(self) -> list[str]:
        """The requested URLs; the last one is next, or under way."""
        return [self.file.url, *self.hops]

    @property
    def same_origin(self) -> bool:
        """Whether the last URL has the origin of the file."""
        return origin_of(self.urls[-1]) == self.file.origin

    def may_lead_to(self, verdict: Verdict | None) -> bool:
        """Return whether to follow a redirect to a URL with ``verdict``; None: it isn't known."""
        if not self.file.is_robotstxt:
            # Unlike robots.txt, this file obeys rules: like a page, it must be allowed.
            return verdict is not None and verdict.allowed
        # SPEC F-3 is about rules. An origin whose rules are unknown forbids no redirect.
        return verdict is None or verdict.allowed or verdict.reason in _WITHOUT_RULES

    def check_address(self, answer: Answer) -> None:
        """Refuse a response from a private address after a redirect from a public host (SSRF)."""
        address = answer.response.ip_address
        if answer.is_indirect or address is None or not is_private_address(address):
            return
        if self.hops and self._public:
            raise FetchError(f"redirect from a public host to a private address: {self.urls[-1]}")
        # The host name looked public, but its address is private.
        self._public = False

    async def check_redirect(self, location: str, *, indirect: bool) -> None:
        """Refuse a redirect from a public host to a private one, before a request is sent."""
        if not self._public:
            return
        host = origin_of(location).host
        # A proxy or a service resolves host names itself.
        if is_private_host(host) or (not indirect and await in_thread(partial(leads_inside, host))):
            raise FetchError(f"redirect from a public host to a private one: {location}")

    def evidence(self, answer: Answer | None = None, error: str | None = None) -> Evidence:
        """Return the evidence of the fetch up to ``answer``, or up to ``error``."""
        evidence = Evidence(time(), self.urls[-1], hops=tuple(self.hops), error=error)
        if answer is None:
            return evidence
        return replace(
            evidence,
            status=answer.response.status,
            size=answer.size,
            truncated=answer.truncated,
            cache_control=_header(answer.response, b"Cache-Control"),
            age=_header(answer.response, b"Age"),
            retry_after=_header(answer.response, b"Retry-After"),
        )


def location_of(answer: Answer, asked: str) -> str | None:
    """Return the target of a redirect without userinfo and fragment; None if there is none.

    ``asked`` is the requested URL, even if a service was asked in its place.

    RFC 9309 §2.3.1.2; redirects are followed to http and https only.
    """
    response = answer.response
    base = response.url if answer.sent_url is None else asked
    value = response.headers.get(b"Location")
    if response.status not in _REDIRECTS or not value or len(value) > _MAX_LOCATION:
        return None
    try:
        url = urljoin(base, safe_url_string(value)).partition("#")[0]
        origin = origin_of(url)
    except ValueError:
        return None
    if origin.scheme not in {"http", "https"}:
        return None
    path = url[len(origin.scheme) + 3 :]
    start = next((i for i, char in enumerate(path) if char in "/?"), len(path))
    return f"{origin}{path[start:] or '/'}"


def _header(response: Response, name: bytes) -> str | None:
    values = response.headers.getlist(name)
    return b", ".join(values)[:_MAX_HEADER].decode("latin-1") if values else None
