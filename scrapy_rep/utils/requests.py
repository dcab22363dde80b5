"""Facts of a request: its origin and host, and the route that it takes."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from scrapy import Request

from scrapy_rep.protocol.origin import Origin, origin_of

_EDGES: Final = "".join(map(chr, range(0x21)))
_REMOVED: Final = str.maketrans("", "", "\t\r\n")


class Route(NamedTuple):
    """The proxy and bind address, as ``repr``, and User-Agent that a fetch takes from a request."""

    proxy: str
    bindaddress: str
    user_agent: bytes | None


def route_of(request: Request) -> Route:
    """Return the proxy, bind address and User-Agent of a request, as far as set."""
    # As text, because the meta of a request may have a value of any type.
    proxy, bindaddress = (repr(request.meta.get(key)) for key in ("proxy", "bindaddress"))
    return Route(proxy, bindaddress, request.headers.get("User-Agent"))


def first_by_other_route(requests: Iterable[Request], routes: Collection[Route]) -> Request | None:
    """Return the first request with a route that is not in ``routes``; None if there is none."""
    return next((request for request in requests if route_of(request) not in routes), None)


def stripped_url(url: str) -> str:
    """Return a URL without blanks at its ends, tabs and line breaks; or ``url``, if without any."""
    # Only URLs of requests with meta["verbatim_url"] have any of these characters.
    if url.isprintable() and " " not in {url[:1], url[-1:]}:
        return url
    return url.strip(_EDGES).translate(_REMOVED)


def origin_of_request(request: Request) -> Origin:
    """Return the origin that a request is sent to; raises ValueError as ``origin_of`` does."""
    try:
        return origin_of(request.url)
    except ValueError:
        return origin_of(stripped_url(request.url))


def host_of(request: Request) -> str:
    """Return the host of a request in the form of ``Origin.host``; empty if it has none."""
    try:
        return origin_of_request(request).host
    except ValueError:
        return ""
