"""A robots.txt answer on its way from the guard to the fetcher, cut to what counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.fetch.decoding import DecodingError, decode

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

META_KEY: Final = "_robotstxt_transfer"
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
    received: int = 0
    cut: bool = False

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
    proxied: bool


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


def answer_of(request: Request, response: Response, transfer: Transfer) -> Answer:
    """Return the answer that ``response`` is. Raises FetchError, and DecodingError."""
    # HttpProxyMiddleware may have chosen it, for this request alone.
    proxied = bool(request.meta.get("proxy"))
    # Only of these the text decides: rules, or an error page that says 'not found'.
    if response.status // 100 not in {2, 5}:
        return Answer(response, b"", truncated=transfer.cut, proxied=proxied)
    if "download_stopped" in response.flags and not transfer.cut:
        raise FetchError("stopped by another component before it was complete")
    codings = b",".join(response.headers.getlist(b"Content-Encoding")).decode("latin-1")
    try:
        text = decode(
            response.body, codings.split(","), transfer.max_size + 1, complete=not transfer.cut
        )
    except DecodingError:
        if response.status // 100 == 2:  # noqa: PLR2004 - only then the text decides
            raise
        text = b""
    truncated = transfer.cut or len(text) > transfer.max_size
    if truncated:
        text = _cut(text, transfer.max_size)
    return Answer(response, text, truncated, proxied)


def _cut(text: bytes, max_size: int) -> bytes:
    """Return the whole lines within the first ``max_size`` bytes: a cut line is no line."""
    if text[max_size : max_size + 1] in (b"\n", b"\r"):
        return text[:max_size]
    text = text[:max_size]
    return text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
