"""Redirects of robots.txt: where they lead, and where they are not followed to."""

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
"""Bytes of a header that are kept."""
_MAX_LOCATION: Final = 8_000
"""Bytes of a Location that is followed (RFC 9110 §4.1 asks for 8,000 to be taken)."""


@dataclass(eq=False)
class Chain:
    """A fetch on its way along the redirects of a site."""

    file: SiteFile
    deadline: float
    hops: list[str] = field(default_factory=list)
    transfer: Transfer | None = None
    """The last transfer that was begun."""
    _public: bool = field(init=False)

    def __post_init__(self) -> None:
        self._public = not is_private_host(self.file.origin.host)

    @property
    def urls(self) -> list[str]:
        """What was asked, the next URL last."""
        return [self.file.url, *self.hops]

    @property
    def at_home(self) -> bool:
        """Whether the next URL is of the origin first asked."""
        return origin_of(self.urls[-1]) == self.file.origin

    def may_lead_to(self, verdict: Verdict | None) -> bool:
        """Return whether to follow it to a URL with that verdict; None where none is known."""
        if not self.file.is_robotstxt:
            # It has no leave of its own: as a page it is fetched where that is known.
            return verdict is not None and verdict.allowed
        # SPEC F-3 speaks of rules; an origin without any forbids nothing to a redirect.
        return verdict is None or verdict.allowed or verdict.reason in _WITHOUT_RULES

    def check_address(self, answer: Answer) -> None:
        """Refuse an answer from inside to a chain that began outside (server-side forgery)."""
        address = answer.response.ip_address
        if answer.is_indirect or address is None or not is_private_address(address):
            return
        if self.hops and self._public:
            raise FetchError(f"redirect from a public host to a private address: {self.urls[-1]}")
        # The name looked public, and leads to an address that isn't.
        self._public = False

    async def check_redirect(self, location: str, *, indirect: bool) -> None:
        """Refuse a redirect from a public host to a private one, before anything is sent there."""
        if not self._public:
            return
        host = origin_of(location).host
        # Behind a proxy, or a service, it is that which looks names up.
        if is_private_host(host) or (not indirect and await in_thread(partial(leads_inside, host))):
            raise FetchError(f"redirect from a public host to a private one: {location}")

    def evidence(self, answer: Answer | None = None, error: str | None = None) -> Evidence:
        """Return what is to be remembered of the chain as far as it went."""
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
    """Return where a redirect leads, without userinfo and fragment; None where it can't be told.

    ``asked`` is the URL that was asked; a service may have been asked in its place.

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
