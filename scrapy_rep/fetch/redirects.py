"""Redirects of robots.txt: their targets, and which ones are not followed.

No redirect leads from a public host to a private one: loopback, private networks, link-local.
"""

import socket
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from time import time
from typing import Any, Final
from urllib.parse import urljoin

from scrapy import Request
from scrapy.http import Response
from scrapy.http.cookies import CookieJar
from w3lib.url import safe_url_string

from scrapy_rep.fetch.errors import FetchError
from scrapy_rep.fetch.transfer import Answer, Transfer
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.outcome import Evidence
from scrapy_rep.utils.concurrency import in_thread

_REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})
_MAX_HEADER: Final = 1_000
_MAX_LOCATION: Final = 8_000
"""Maximum size in bytes of a Location that is followed (RFC 9110 §4.1 recommends 8,000)."""
_LOOPBACK_NAMES: Final = {"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"}
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052 §2.1
_COMPATIBLE: Final = IPv6Network("::/96")  # RFC 4291 §2.5.5.1


class Chain:
    """The URLs of one fetch; ``deadline`` is when it times out, by the monotonic clock."""

    def __init__(self, origin: Origin, deadline: float) -> None:
        self.origin: Origin = origin
        self.deadline: float = deadline
        self.url: str = origin.robotstxt_url
        self.hops: list[str] = []
        self.transfer: Transfer | None = None
        self.after_service: bool = False
        """Whether a service or a middleware has sent a redirect."""
        self._public = not is_private_host(origin.host)
        self._cookies: CookieJar | None = None
        """Some sites send robots.txt only with a cookie that a redirect to the same URL sets."""

    def follow(self, location: str, answer: Answer) -> None:
        transfer = answer.transfer
        self.after_service |= not transfer.sent or transfer.rewritten is not None
        if b"Set-Cookie" in answer.response.headers:
            self._cookies = self._cookies or CookieJar()
            self._cookies.extract_cookies(answer.response, Request(self.url))
        self.hops.append(location)
        self.url = location

    def cookie_for(self, request: Request) -> bytes | None:
        if self._cookies is None:
            return None
        self._cookies.add_cookie_header(request)
        return request.headers.get(b"Cookie")

    def check_address(self, answer: Answer) -> None:
        """Raise FetchError if a redirect led from a public host to a private address (SSRF).

        If the file itself has a private address, its host name only looks public.
        """
        address = answer.response.ip_address
        if answer.is_indirect or address is None or not is_private_address(address):
            return
        if self.hops and self._public:
            raise FetchError(f"redirect from a public host to a private address: {self.url}")
        self._public = False

    async def check_redirect(self, location: str, *, indirect: bool) -> None:
        """Raise FetchError for a redirect to a host that is, or resolves to, a private one.

        A proxy or a service (``indirect``) resolves the names of hosts itself.
        """
        if not self._public:
            return
        host = origin_of(location).host
        if is_private_host(host) or (
            not indirect and await in_thread(partial(resolves_to_private_address, host))
        ):
            raise FetchError(f"redirect from a public host to a private one: {location}")

    def evidence(self, answer: Answer | None = None, error: str | None = None) -> Evidence:
        """Return the facts of the fetch, which ends now, with those of ``answer`` if given."""
        of_answer: dict[str, Any] = {}
        if answer is not None:
            of_answer = {
                "status": answer.response.status,
                "size": len(answer.text),
                "truncated": answer.truncated,
                "cache_control": _header(answer.response, b"Cache-Control"),
                "age": _header(answer.response, b"Age"),
                "retry_after": _header(answer.response, b"Retry-After"),
            }
        return Evidence(time(), self.url, hops=tuple(self.hops), error=error, **of_answer)


def location_of(answer: Answer, asked: str) -> str | None:
    """Return the target of the redirect in ``answer``, without userinfo and fragment.

    Return None if ``answer`` is no redirect (RFC 9309 §2.3.1.2), or its target is no http or https
    URL of at most 8,000 bytes. A service passes on targets that are relative to the URL ``asked``.
    """
    response = answer.response
    base = response.url if answer.transfer.rewritten is None else asked
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


def is_private_host(host: str) -> bool:
    """Return whether a host is a private address or ``localhost``, without DNS."""
    host = host.strip("[]").rstrip(".").lower()
    if host in _LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    try:
        if ":" in host:
            return is_private_address(IPv6Address(host.partition("%")[0]))
        # In all forms that resolvers accept, such as 127.1 or 0x7f000001.
        return is_private_address(IPv4Address(socket.inet_aton(host)))
    except (ValueError, OSError):
        return False


def resolves_to_private_address(host: str) -> bool:
    """Return whether a host name resolves to a private address. Blocks until it is resolved."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(is_private_address(ip_address(str(f[4][0]).partition("%")[0])) for f in found)


def is_private_address(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address, or the IPv4 address inside of it, is no global unicast address."""
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return is_private_address(embedded)
        if address.is_site_local:
            return True
    return not address.is_global or address.is_multicast or address.is_reserved
