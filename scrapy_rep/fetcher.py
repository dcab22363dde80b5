"""The one place that downloads robots.txt: hops, size and deadline, to an outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http.request import NO_CALLBACK
from twisted.internet.defer import CancelledError
from w3lib.url import safe_url_string

from scrapy_rep import stats
from scrapy_rep.addresses import is_private_address, is_private_host, leads_inside
from scrapy_rep.decoding import DecodingError, decode
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Evidence, Outcome, Unavailable, Unreachable, outcome_of
from scrapy_rep.threads import Workers, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.settings import Options

_resolvers: Final = Workers("robotstxt-resolver", threads=2)

_META_KEY: Final = "_robotstxt_transfer"
_SLACK: Final = 4_096
"""Bytes that a content coding may add to text that it can't make smaller."""
_REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})
_CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")
_MAX_ERROR: Final = 300
"""Characters of an error's message that are kept."""
_MAX_HEADER: Final = 1_000
"""Bytes of a header that are kept."""
_MAX_LOCATION: Final = 8_000
"""Bytes of a Location that is followed (RFC 9110 §4.1 asks for 8,000 to be taken)."""
# RFC 9110 §13.1 and §14.2: with one of these a request asks for less than the whole (SPEC S-8).
_CONDITIONAL: Final = (
    b"If-Match",
    b"If-None-Match",
    b"If-Modified-Since",
    b"If-Unmodified-Since",
    b"If-Range",
    b"Range",
)


@dataclass(eq=False)
class _Transfer:
    """One answer on its way: how much of it came, and whether it was cut."""

    max_size: int
    at_home: bool
    """Whether the origin that is asked is the one whose rules are looked for."""
    received: int = 0
    cut: bool = False


@dataclass(frozen=True)
class _Answer:
    """One answer, its text decoded and cut to what counts."""

    response: Response
    text: bytes
    truncated: bool
    proxied: bool


class _Received(IgnoreRequest):
    """Takes an answer past everything that is made for pages, straight to the fetcher.

    An answer that a middleware returns is counted as a page by the engine
    (CLOSESPIDER_PAGECOUNT, response_received_count), and is inflated without a bound by
    HttpCompressionMiddleware; one that a middleware raises is not.
    """

    def __init__(self, answer: _Answer) -> None:
        super().__init__("robots.txt received")
        self.answer = answer


class FetchError(Exception):
    """What makes an answer unreachable though a response came."""


class RobotsTxtFetchMiddleware:
    """Downloader middleware for the requests of :class:`Fetcher` alone.

    Its place is between HttpCompressionMiddleware (590) and the downloader.
    """

    def process_request(self, request: Request) -> None:
        """Take off what would make the request a conditional or a private one (SPEC S-8)."""
        transfer = request.meta.get(_META_KEY)
        if transfer is not None:
            for name in _CONDITIONAL:
                request.headers.pop(name, None)
            # Those of DEFAULT_REQUEST_HEADERS and HTTPAUTH_USER; a redirect must not take
            # credentials elsewhere.
            request.headers.pop(b"Cookie", None)
            if not transfer.at_home:
                request.headers.pop(b"Authorization", None)

    def process_response(self, request: Request, response: Response) -> Response:
        """Decode the answer, cut it to what counts, and hand it over."""
        transfer = request.meta.get(_META_KEY)
        if transfer is None:
            return response
        raise _Received(_answer(request, response, transfer))


def _answer(request: Request, response: Response, transfer: _Transfer) -> _Answer:
    # HttpProxyMiddleware may have chosen it, for this request alone.
    proxied = bool(request.meta.get("proxy"))
    # Only of these the text decides: rules, or an error page that says 'not found'.
    if response.status // 100 not in {2, 5}:
        return _Answer(response, b"", truncated=transfer.cut, proxied=proxied)
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
    return _Answer(response, text, truncated, proxied)


def _cut(text: bytes, max_size: int) -> bytes:
    """Return the whole lines within the first ``max_size`` bytes: a cut line is no line."""
    if text[max_size : max_size + 1] in (b"\n", b"\r"):
        return text[:max_size]
    text = text[:max_size]
    return text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


class Fetcher:
    """Fetches robots.txt with the engine's own downloader, as the crawl would fetch a page.

    What Scrapy's other middlewares, made for pages, would do to it is switched off request by
    request; what belongs to the route (proxy, User-Agent, bind address) is that of the page.
    """

    def __init__(self, crawler: Crawler, options: Options) -> None:
        self._crawler = crawler
        self._options = options
        self._in_flight = 0
        self._numbers = count(1)

    async def fetch(
        self, origin: Origin, page: Request, is_disallowed: Callable[[str], bool]
    ) -> Outcome:
        """Return how the fetch of the robots.txt of ``origin`` ended.

        ``page`` is the request that waits for it. ``is_disallowed`` tells of a URL whether rules
        that are already known forbid it (SPEC F-3). Raises only when it is cancelled.
        """
        self._count(stats.REQUEST_COUNT)
        self._listen()
        try:
            outcome = await self._within_deadline(origin, page, is_disallowed)
        finally:
            self._stop_listening()
        evidence = outcome.evidence
        if evidence.status is not None:
            self._count(stats.RESPONSE_COUNT)
            self._count(stats.RESPONSE_STATUS_COUNT.format(status=evidence.status))
        self._count(stats.REDIRECT_COUNT, len(evidence.hops))
        self._count(stats.RESPONSE_BYTES, evidence.size)
        self._count(stats.OUTCOME_COUNT.format(kind=type(outcome).__name__.lower()))
        return outcome

    def timeout(self, page: Request) -> float:
        """Return the seconds that a fetch for ``page`` may take, hops included."""
        settings = self._crawler.settings
        download_timeout = getattr(
            self._crawler.spider, "download_timeout", settings.getfloat("DOWNLOAD_TIMEOUT")
        )
        page_timeout = page.meta.get("download_timeout")
        # 0 is Scrapy's way of saying that there is none.
        bounds = (self._options.timeout, download_timeout, page_timeout)
        return min(float(bound) for bound in bounds if bound)

    async def _within_deadline(
        self, origin: Origin, page: Request, is_disallowed: Callable[[str], bool]
    ) -> Outcome:
        seconds = self.timeout(page)
        chain = _Chain(origin.robotstxt_url, monotonic() + seconds)
        try:
            return await within(seconds, self._follow(chain, page, is_disallowed))
        except TimeoutError:
            self._count_exception(TimeoutError)
            return Unreachable(chain.evidence(error=f"took longer than {seconds:g} seconds"))

    async def _follow(
        self, chain: _Chain, page: Request, is_disallowed: Callable[[str], bool]
    ) -> Outcome:
        while True:
            try:
                answer = await self._download(chain, page)
                chain.check_address(answer)
                location = _location(answer.response)
                if location is not None:
                    await chain.check_redirect(location, proxied=answer.proxied)
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever broke it, nobody knows the rules
                if not isinstance(error, FetchError):
                    self._count_exception(type(error))
                return Unreachable(chain.evidence(error=_message(error)))
            evidence = chain.evidence(answer)
            if location is None:
                return outcome_of(evidence, answer.text, soft_404=self._options.soft_404)
            if len(chain.hops) >= self._options.max_redirects:
                error_ = f"more than {self._options.max_redirects} redirects"
                return Unavailable(replace(evidence, error=error_))
            if is_disallowed(location):
                error_ = f"redirect to a disallowed URL: {location}"[:_MAX_ERROR]
                return Unavailable(replace(evidence, error=error_))
            chain.hops.append(location)

    async def _download(self, chain: _Chain, page: Request) -> _Answer:
        engine = self._crawler.engine
        if engine is None:
            raise FetchError("the crawl has no engine")
        try:
            await engine.download_async(self._request(chain, page))
        except _Received as received:
            return received.answer
        raise FetchError("another component answered in place of the site")

    def _request(self, chain: _Chain, page: Request) -> Request:
        meta: dict[str, Any] = {
            _META_KEY: _Transfer(self._options.max_size, at_home=chain.at_home),
            "dont_obey_robotstxt": True,  # SPEC S-9
            "allow_offsite": True,
            "dont_redirect": True,
            "handle_httpstatus_all": True,
            "dont_retry": True,
            "dont_cache": True,
            "dont_merge_cookies": True,
            "autothrottle_dont_adjust_delay": True,
            # Pages of the host keep their slot and its delay. A slot per request, as the user's
            # DOWNLOAD_DELAY would otherwise eat up the deadline of the next.
            "download_slot": f"robots.txt {next(self._numbers)} {chain.urls[-1]}",
            "download_timeout": max(0.001, chain.deadline - monotonic()),
            # Size is the fetcher's business: what is too large is cut, not refused.
            "download_maxsize": 0,
            "download_warnsize": 0,
            "download_fail_on_dataloss": True,
            # SPEC S-5: anonymous, whatever FTP_USER is for.
            "ftp_user": "anonymous",
            "ftp_password": "guest",
        }
        headers = {}
        if b"User-Agent" in page.headers:
            headers[b"User-Agent"] = page.headers[b"User-Agent"]
        # A proxy that HttpProxyMiddleware took from the environment it takes again by itself.
        if "proxy" in page.meta and "_scheme_proxy" not in page.meta:
            meta["proxy"] = page.meta["proxy"]
            if "_auth_proxy" in page.meta and b"Proxy-Authorization" in page.headers:
                meta["_auth_proxy"] = page.meta["_auth_proxy"]
                headers[b"Proxy-Authorization"] = page.headers[b"Proxy-Authorization"]
        if "bindaddress" in page.meta:
            meta["bindaddress"] = page.meta["bindaddress"]
        return Request(chain.urls[-1], headers=headers, meta=meta, callback=NO_CALLBACK)

    def _listen(self) -> None:
        # Only while a fetch is in flight, so that pages pay nothing for it.
        if self._in_flight == 0:
            self._crawler.signals.connect(self._bytes_received, signals.bytes_received)
        self._in_flight += 1

    def _stop_listening(self) -> None:
        self._in_flight -= 1
        if self._in_flight == 0:
            self._crawler.signals.disconnect(self._bytes_received, signals.bytes_received)

    def _bytes_received(self, data: bytes, request: Request) -> None:
        transfer = request.meta.get(_META_KEY)
        if transfer is None:
            return
        transfer.received += len(data)
        if transfer.received > transfer.max_size + _SLACK:
            transfer.cut = True
            raise StopDownload(fail=False)

    def _count(self, name: str, count: int = 1) -> None:
        if self._crawler.stats is not None and count:
            self._crawler.stats.inc_value(name, count)

    def _count_exception(self, exception: type[BaseException]) -> None:
        self._count(stats.EXCEPTION_COUNT.format(exception=exception))


@dataclass(eq=False)
class _Chain:
    """A fetch on its way along the redirects of a site."""

    start: str
    deadline: float
    hops: list[str] = field(default_factory=list)
    _public: bool = field(init=False)

    def __post_init__(self) -> None:
        self._public = not is_private_host(origin_of(self.start).host)

    @property
    def urls(self) -> list[str]:
        return [self.start, *self.hops]

    @property
    def at_home(self) -> bool:
        return origin_of(self.urls[-1]) == origin_of(self.start)

    def check_address(self, answer: _Answer) -> None:
        """Refuse an answer from inside to a chain that began outside (server-side forgery)."""
        address = answer.response.ip_address
        if answer.proxied or address is None or not is_private_address(address):
            return
        if self.hops and self._public:
            raise FetchError(f"redirect from a public host to a private address: {self.urls[-1]}")
        # The name looked public, and leads to an address that isn't.
        self._public = False

    async def check_redirect(self, location: str, *, proxied: bool) -> None:
        """Refuse a redirect from a public host to a private one, before anything is sent there."""
        if not self._public:
            return
        host = origin_of(location).host
        # Behind a proxy it is the proxy that looks names up.
        if is_private_host(host) or (
            not proxied and await _resolvers.call(partial(leads_inside, host))
        ):
            raise FetchError(f"redirect from a public host to a private one: {location}")

    def evidence(self, answer: _Answer | None = None, error: str | None = None) -> Evidence:
        evidence = Evidence(time(), self.urls[-1], hops=tuple(self.hops), error=error)
        if answer is None:
            return evidence
        return replace(
            evidence,
            status=answer.response.status,
            size=len(answer.text),
            truncated=answer.truncated,
            cache_control=_header(answer.response, b"Cache-Control"),
            age=_header(answer.response, b"Age"),
            retry_after=_header(answer.response, b"Retry-After"),
        )


def _location(response: Response) -> str | None:
    """Return where a redirect leads, without userinfo and fragment; None where it can't be told.

    RFC 9309 §2.3.1.2; redirects are followed to http and https only.
    """
    value = response.headers.get(b"Location")
    if response.status not in _REDIRECTS or not value or len(value) > _MAX_LOCATION:
        return None
    try:
        url = urljoin(response.url, safe_url_string(value)).partition("#")[0]
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


def _message(error: Exception) -> str:
    text = ascii(f"{type(error).__name__}: {error}")[1:-1]
    return _CREDENTIALS.sub("//", text)[:_MAX_ERROR]
