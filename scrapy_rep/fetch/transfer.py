"""A request for robots.txt, as it is sent, and its response, on its way to the fetcher."""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.url import url_is_from_any_domain

from scrapy_rep.fetch.decoding import decode
from scrapy_rep.fetch.errors import DecodingError, DownloadStoppedError
from scrapy_rep.protocol.lexer import whole_lines
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.origin import split_url

SUCCESSFUL: Final = range(200, 300)
TRANSFER_KEY: Final = "_robotstxt_transfer"
"""Key of ``Request.meta`` with the ``Transfer`` of a request for robots.txt, which no other has."""
# RFC 9110 §13.1 and §14.2: the response to a request with one of these headers may have only a part
# of the text, or nothing of it (SPEC S-8).
_CONDITIONAL: Final = {
    b"If-Match",
    b"If-None-Match",
    b"If-Modified-Since",
    b"If-Unmodified-Since",
    b"If-Range",
    b"Range",
}
_ROUTE: Final = ("proxy", "_auth_proxy", "_scheme_proxy", "bindaddress")
"""Keys of ``Request.meta`` that other middlewares may set on requests for robots.txt, too."""
_SLACK: Final = 4_096
"""Number of bytes by which a content coding may make a text longer that it can't compress."""


@dataclass(eq=False)
class Transfer:
    """One request for robots.txt, how it is sent, and its response while it is received."""

    same_origin: bool
    """Whether the request goes to the origin of the file, not to the target of a redirect."""
    meta: dict[str, Any] = field(default_factory=dict)
    """The meta keys that the fetcher has set, without proxy and bind address. Keys that other
    middlewares add are meant for pages, and are removed."""
    url: str = ""
    cookie: bytes | None = None
    """The Cookie header with what the redirects of this fetch have set."""
    after_service: bool = False
    """Whether a service or a middleware has redirected to this URL, which may be its own."""
    received: int = 0
    cut: bool = False
    """Whether the download was stopped because the response was too large."""
    sent: bool = False
    """Whether the request has reached the downloader. If not, a middleware sends the response."""
    without_credentials: bool = False
    """Whether credentials of the crawl were removed, because they are not meant for this origin."""
    proxy: str | None = None
    rewritten: str | None = None
    """The URL that was requested if a middleware has changed it, for example to that of an API."""

    def prepare(self, request: Request, domain: str | None) -> None:
        """Remove what must not be sent with ``request``, which is about to be sent.

        That is all meta of others but proxy and bind address, and of the headers those that ask for
        a part, and cookies but those of the fetch. Authorization stays if the request goes to the
        origin of the file, or to ``domain``, for which the crawl has credentials.
        """
        meta = request.meta
        route: dict[str, Any] = {key: meta[key] for key in _ROUTE if key in meta}
        meta.clear()
        meta.update({**self.meta, **route, TRANSFER_KEY: self})
        self.mark_as_sent(request)
        for name in _CONDITIONAL & request.headers.keys():
            del request.headers[name]
        # HttpCompressionMiddleware and the settings may set codings that decode() doesn't support.
        request.headers[b"Accept-Encoding"] = b"gzip"
        # DEFAULT_REQUEST_HEADERS and HTTPAUTH_USER may add Cookie and Authorization. Credentials
        # follow a redirect to another origin only if it belongs to ``domain``.
        request.headers.pop(b"Cookie", None)
        if self.cookie is not None:
            request.headers[b"Cookie"] = self.cookie
        if self.same_origin or (domain and url_is_from_any_domain(request.url, [domain])):
            return
        self.without_credentials = request.headers.pop(b"Authorization", None) is not None

    def mark_as_sent(self, request: Request) -> None:
        self.sent = True
        self.proxy = request.meta.get("proxy") or None
        self.rewritten = request.url if self.url and request.url != self.url else None

    def is_other_page(self, url: str) -> bool:
        """Return whether ``url`` is another page of the site, requested with a copy of the meta."""
        try:
            theirs, path = split_url(url)
            ours, own_path = split_url(self.url)
        except ValueError:
            return False
        return theirs == ours and path != own_path

    def add_received(self, data: bytes) -> bool:
        """Count the bytes of ``data``; return whether the download must be stopped."""
        self.received += len(data)
        self.cut = self.received > MAX_BODY_BYTES + _SLACK
        return self.cut


class Answer(NamedTuple):
    """A response to a request for robots.txt, with its decoded text."""

    response: Response
    transfer: Transfer
    text: bytes
    truncated: bool

    @property
    def is_indirect(self) -> bool:
        """Whether a proxy or a service has resolved the name of the host."""
        return self.transfer.proxy is not None or self.transfer.rewritten is not None


class Received(IgnoreRequest):
    """Raised to pass a response for robots.txt to the fetcher, past all other middlewares.

    So the engine doesn't count it as a page, and nobody decompresses it without limit.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__("robots.txt received")
        self.answer = answer


def answer_of(response: Response, transfer: Transfer) -> Answer:
    """Return ``response`` with its decoded text, cut to whole lines within the size limit.

    Raises DownloadStoppedError if a signal handler of the crawl has stopped a 2xx or 5xx, and
    DecodingError for a 2xx.
    """
    # The text is needed for rules (2xx), and to find pages that mean 'not found' (5xx).
    if response.status // 100 not in {2, 5}:
        return Answer(response, transfer, b"", transfer.cut)
    if "download_stopped" in response.flags and not transfer.cut:
        raise DownloadStoppedError("stopped before it was complete")
    codings = _codings_of(response)
    try:
        text = decode(response.body, codings, MAX_BODY_BYTES + 1, complete=not transfer.cut)
    except DecodingError:
        if response.status in SUCCESSFUL:
            raise
        text = b""
    truncated = transfer.cut or len(text) > MAX_BODY_BYTES
    if truncated:
        text = whole_lines(text, MAX_BODY_BYTES)
    return Answer(response, transfer, text, truncated)


def _codings_of(response: Response) -> list[str]:
    headers = response.headers
    values = headers.getlist(b"Content-Encoding") + headers.getlist(b"Transfer-Encoding")
    codings = map(str.strip, b",".join(values).decode("latin-1").lower().split(","))
    # Download handlers remove the transfer coding ``chunked``, but no other (RFC 9112 §7).
    return [coding for coding in codings if coding not in {"", "chunked"}]
