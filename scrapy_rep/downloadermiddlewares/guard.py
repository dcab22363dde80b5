"""Middleware nearest the downloader: what is really sent for a robots.txt, and what came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep.fetch.transfer import META_KEY, Received, answer_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

# RFC 9110 §13.1 and §14.2: with one of these a request asks for less than the whole (SPEC S-8).
_CONDITIONAL: Final = (
    b"If-Match",
    b"If-None-Match",
    b"If-Modified-Since",
    b"If-Unmodified-Since",
    b"If-Range",
    b"Range",
)


class RobotsTxtFetchMiddleware:
    """Downloader middleware for the requests for robots.txt alone.

    Its place is between HttpCompressionMiddleware (590) and the downloader.
    """

    def process_request(self, request: Request) -> None:
        """Take off what would make the request a conditional or a private one (SPEC S-8)."""
        transfer = request.meta.get(META_KEY)
        if transfer is not None:
            for name in _CONDITIONAL:
                request.headers.pop(name, None)
            # Whatever HttpCompressionMiddleware or DEFAULT_REQUEST_HEADERS ask for.
            request.headers[b"Accept-Encoding"] = b"gzip"
            # Those of DEFAULT_REQUEST_HEADERS and HTTPAUTH_USER; a redirect must not take
            # credentials elsewhere.
            request.headers.pop(b"Cookie", None)
            if not transfer.at_home:
                request.headers.pop(b"Authorization", None)

    def process_response(self, request: Request, response: Response) -> Response:
        """Decode the answer, cut it to what counts, and hand it over."""
        transfer = request.meta.get(META_KEY)
        if transfer is None:
            return response
        raise Received(answer_of(request, response, transfer))
