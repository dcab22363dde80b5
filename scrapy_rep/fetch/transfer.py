"""A robots.txt answer on its way from the guard to the fetcher, cut to what counts."""

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
"""Key of ``Request.meta`` that a request for robots.txt is known by."""
_SLACK: Final = 4_096
"""Bytes that a content coding may add to text that it can't make smaller."""


@dataclass(eq=False)
class Transfer:
    """One answer on its way: how much of it came, and whether it was cut."""

    max_size: int
    at_home: bool
    """Whether the origin that is asked is the one whose rules are looked for."""
    meta: dict[str, Any] = field(default_factory=dict)
    """The meta of the request but for its route; what others add is meant for pages."""
    url: str = ""
    """What is asked, as Scrapy writes it."""
    handler: str | None = None
    """The download handler that it is for, where that is none of Scrapy's own."""
    received: int = 0
    cut: bool = False
    sent: bool = False
    """Whether the downloader has had the request."""
    proxy: str | None = None
    """The proxy that it was sent through; HttpProxyMiddleware may have chosen it."""
    rewritten: str | None = None
    """The URL that it was sent to, where a middleware made it another one: an API's."""

    def note(self, request: Request) -> None:
        """Take note of how the request is really sent, as the downloader is to have it next."""
        self.sent = True
        self.proxy = request.meta.get("proxy") or None
        self.rewritten = request.url if self.url and request.url != self.url else None

    def count(self, data: bytes) -> bool:
        """Count what came; return whether it is enough, and the rest is to be cut off."""
        self.received += len(data)
        self.cut = self.received > self.max_size + _SLACK
        return self.cut


@dataclass(frozen=True)
class Answer:
    """One answer, its text decoded and cut to what counts."""

    response: Response
    text: bytes
    truncated: bool
    proxy: str | None = None
    """The proxy that it came through."""
    sent_url: str | None = None
    """The URL that was asked in place of the site's, if another one was."""
    sent: bool = True
    """Whether it came from the downloader, and not from another middleware."""
    size: int = 0
    """Bytes of text that were read; of a longer one, how many count."""

    @property
    def is_indirect(self) -> bool:
        """Whether it came through something else that resolves names: a proxy, a service."""
        return self.proxy is not None or self.sent_url is not None


class Received(IgnoreRequest):
    """Takes an answer past everything that is made for pages, straight to the fetcher.

    An answer that a middleware returns is counted as a page by the engine
    (CLOSESPIDER_PAGECOUNT, response_received_count), and is inflated without a bound by
    HttpCompressionMiddleware; one that a middleware raises is not.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__("robots.txt received")
        self.answer = answer


class FetchError(Exception):
    """What makes an answer unreachable though a response came."""


class InterferenceError(FetchError):
    """Another component of the crawl answered, or stopped the answer, in the site's place."""


class StoppedError(InterferenceError):
    """A handler of a signal stopped the answer before it was complete."""


def answer_of(response: Response, transfer: Transfer) -> Answer:
    """Return the answer that ``response`` is. Raises FetchError, and DecodingError."""
    route = transfer.proxy, transfer.rewritten, transfer.sent
    # Only of these the text decides: rules, or an error page that says 'not found'.
    if response.status // 100 not in {2, 5}:
        return Answer(response, b"", transfer.cut, *route)
    if "download_stopped" in response.flags and not transfer.cut:
        raise StoppedError("stopped before it was complete")
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
    # Whoever reads more than this would see more of a text that was cut.
    size = transfer.max_size if truncated else len(text)
    return Answer(response, text, truncated, *route, size)
