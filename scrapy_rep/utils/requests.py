"""Facts of a request: its origin and host."""

from typing import Final

from scrapy import Request

from scrapy_rep.protocol.origin import Origin, origin_of

_EDGES: Final = "".join(map(chr, range(0x21)))
_REMOVED: Final = str.maketrans("", "", "\t\r\n")


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
