"""A response for robots.txt between the downloader and the fetcher, decoded and cut to size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.fetch.decoding import DecodingError, decode
from scrapy_rep.protocol.lexer import whole_lines

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

SUCCESSFUL: Final = range(200, 300)
REDIRECTION: Final = range(300, 400)
TRANSFER_KEY: Final = "_robotstxt_transfer"
"""Key of ``Request.meta`` that marks requests for robots.txt and tdmrep.json."""
_SLACK: Final = 4_096
"""Bytes that a content coding may add to text that it can't compress."""


@dataclass(eq=False)
class Transfer:
    """One request for robots.txt and its response while it is received."""

    max_size: int
    same_origin: bool
    """Whether the request goes to the origin of the file, not to one that it redirects to."""
    meta: dict[str, Any] = field(default_factory=dict)
    """The meta of the request without its route; keys that others add are for pages."""
    url: str = ""
    """The requested URL as Scrapy writes it."""
    handler: str | None = None
    """The name of the download handler if it is not one of Scrapy's."""
    received: int = 0
    cut: bool = False
    sent: bool = False
    """Whether the request has reached the downloader."""
    proxy: str | None = None
    """The proxy that it was sent through, also if HttpProxyMiddleware set it."""
    rewritten: str | None = None
    """The URL that it was sent to if a middleware changed it, as to that of an API."""

    def note(self, request: Request) -> None:
        """Note proxy and URL of the request that goes to the downloader next."""
        self.sent = True
        self.proxy = request.meta.get("proxy") or None
        self.rewritten = request.url if self.url and request.url != self.url else None

    def count(self, data: bytes) -> bool:
        """Count received bytes; return whether the rest is to be cut off."""
        self.received += len(data)
        self.cut = self.received > self.max_size + _SLACK
        return self.cut


@dataclass(frozen=True)
class Answer:
    """A response with its text, decoded and cut to the size limit."""

    response: Response
    text: bytes
    truncated: bool
    proxy: str | None = None
    """The proxy that the response came through."""
    sent_url: str | None = None
    """The URL of the service that was asked in place of the site, if any."""
    sent: bool = True
    """Whether the response came from the downloader, not from a middleware."""
    size: int = 0
    """Bytes of the decoded text, at most the size limit."""

    @property
    def is_indirect(self) -> bool:
        """Whether it came through a proxy or a service, which resolves host names itself."""
        return self.proxy is not None or self.sent_url is not None


class Received(IgnoreRequest):
    """Carries a response past all other middlewares to the fetcher.

    If it were returned instead of raised, the engine would count it as a page
    (CLOSESPIDER_PAGECOUNT, response_received_count), and HttpCompressionMiddleware would decompress
    it without a limit.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__("robots.txt received")
        self.answer = answer


class FetchError(Exception):
    """A response came, but the fetch has failed."""


class InterferenceError(FetchError):
    """Another component of the crawl answered in place of the site, or stopped the response."""


class DownloadStoppedError(InterferenceError):
    """A signal handler stopped the response before it was complete."""


def answer_of(response: Response, transfer: Transfer) -> Answer:
    """Return ``response`` as an answer. Raises FetchError and DecodingError."""
    route = transfer.proxy, transfer.rewritten, transfer.sent
    # With other statuses the text doesn't matter: it has no rules, and says no 'not found'.
    if response.status // 100 not in {2, 5}:
        return Answer(response, b"", transfer.cut, *route)
    if "download_stopped" in response.flags and not transfer.cut:
        raise DownloadStoppedError("stopped before it was complete")
    codings = b",".join(response.headers.getlist(b"Content-Encoding")).decode("latin-1")
    try:
        text = decode(
            response.body, codings.split(","), transfer.max_size + 1, complete=not transfer.cut
        )
    except DecodingError:
        if response.status in SUCCESSFUL:
            raise
        text = b""
    truncated = transfer.cut or len(text) > transfer.max_size
    if truncated:
        text = whole_lines(text, transfer.max_size)
    # The text was cut at a line end; a fetch with a larger limit would still read more.
    size = transfer.max_size if truncated else len(text)
    return Answer(response, text, truncated, *route, size)
