"""Finds the URLs that download handlers send for the URL of a request.

Handlers change some URLs before they send them. For each handler of Scrapy, a function here changes
a URL in the same way, with the same library. For any other handler, all ways are tried.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urldefrag, urlparse

from scrapy.settings import BaseSettings
from twisted.web.client import URI

from scrapy_rep.protocol.origin import DEFAULT_PORTS
from scrapy_rep.utils.download_settings import download_handler_of

Sends = Callable[[str, bool], Iterator[str]]

_RESERVED: Final = "!$&'()*+,/:;=@[]"
"""The reserved characters of RFC 3986 §2.2, without ``?`` and ``#``, which end a path."""
_LEFT_ALONE: Final = re.compile(
    r"https?://[^\x00-\x20;#?/]*(?:/[^\x00-\x20;#?/]+)*/?(?:\?[^\x00-\x20;#]+)?"
).fullmatch
"""Matches URLs that urllib and Twisted don't change; the match is ten times faster than urllib."""


class Handler(NamedTuple):
    """What is known of the download handler of a scheme: in which forms it may send a URL."""

    sends: tuple[Sends, ...]
    """Functions that yield the URLs that may be sent for a URL. Their flag is the value of
    ``meta["verbatim_url"]``. They raise ValueError if the handler can't send the URL."""
    is_known: bool
    """Whether the handler sends URLs in the same way as one of Scrapy's, so that it sends no other
    URLs than these functions yield."""

    def sent(self, url: str, *, verbatim: bool) -> Iterator[str]:
        """Yield the URLs that may be sent for ``url``, which itself may be left out.

        So none is yielded if ``url`` is sent unchanged, or can't be sent. A URL may be yielded
        twice. ``verbatim`` is ``meta["verbatim_url"]``; if the handler isn't known, it is ignored.
        """
        flags = (verbatim,) if self.is_known else (True, False)
        for sends, flag in product(self.sends, flags):
            with suppress(ValueError):
                yield from sends(url, flag)


def handlers_of(settings: BaseSettings) -> dict[str, Handler]:
    """Return the download handlers for http, https and ftp by scheme, without disabled ones."""
    paths = settings.getwithbase("DOWNLOAD_HANDLERS")
    return {
        scheme: _handler_of(scheme, download_handler_of(settings, scheme))
        for scheme in DEFAULT_PORTS
        if paths.get(scheme) is not None
    }


def _handler_of(scheme: str, cls: Any) -> Handler:
    """Return a known handler if ``cls`` sends as a class of Scrapy's; else one with all ways."""
    for base in getattr(cls, "__mro__", ()):
        # Classes are found by name, as modules of unused handlers may import missing packages.
        sends = _SHIPPED.get(base.__name__)
        if sends is None or not base.__module__.startswith("scrapy.core.downloader.handlers."):
            continue
        if all(getattr(cls, name, None) is getattr(base, name, None) for name in _SENDING):
            return Handler((sends,), is_known=True)
        break
    ways: list[Sends] = [_sent_by_http11, _sent_by_http2]
    if find_spec("yarl"):
        ways.append(_sent_by_aiohttp)
    if _module_of_httpx() is not None:
        ways.append(_sent_by_httpx)
    if scheme == "ftp":
        ways.append(_sent_by_ftp)
    return Handler(tuple(ways), is_known=False)


def _sent_by_http11(url: str, _: bool) -> Iterator[str]:
    """Yield ``url`` as it is sent to a proxy and to a server; nothing if surely unchanged."""
    if _LEFT_ALONE(url):
        return
    whole = urldefrag(url)[0].encode("ascii").strip()
    yield whole.decode("ascii")
    uri = URI.fromBytes(whole)  # type: ignore[no-untyped-call]
    yield b"".join((uri.scheme, b"://", uri.netloc, uri.originForm)).decode("ascii")


def _sent_by_http2(url: str, _: bool) -> Iterator[str]:
    """Yield ``url`` as sent, with and without blanks at its end; nothing if surely unchanged."""
    if _LEFT_ALONE(url):
        return
    parsed = urlparse(url)
    query = f"?{parsed.query}" if parsed.query else ""
    sent = f"{parsed.scheme}://{parsed.netloc}{parsed.path}{query}"
    yield sent
    yield sent.rstrip()  # as h2 changes the values of all headers


def _sent_by_ftp(url: str, _: bool) -> Iterator[str]:
    """Yield URLs for the file that is retrieved: a ``?`` in its name is escaped, then is not."""
    parsed = urlparse(url)
    # The same as in Twisted's FTPClient, whose import would install a reactor.
    path = unquote(parsed.path).replace("\n", "\0").encode("latin-1")
    for safe in (_RESERVED, f"{_RESERVED}?"):
        yield f"{parsed.scheme}://{parsed.netloc}{quote(path, safe=safe)}"


def _sent_by_aiohttp(url: str, verbatim: bool) -> Iterator[str]:
    """Yield ``url`` as it is sent to a proxy and to a server."""
    from yarl import URL

    sent = URL(url, encoded=verbatim)
    yield str(sent)
    yield f"{sent.scheme}://{sent.raw_authority}{sent.raw_path_qs}"


def _sent_by_httpx(url: str, _: bool) -> Iterator[str]:
    """Yield ``url`` as it is sent. Raises ValueError if httpx can't send it."""
    httpx = _module_of_httpx()
    try:
        sent = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from error
    yield b"".join((sent.raw_scheme, b"://", sent.netloc, sent.raw_path)).decode("ascii")


def _module_of_httpx() -> Any:
    """Return the library that Scrapy's handler uses, httpx2 or httpx; None if none is installed."""
    try:
        return import_module("scrapy.core.downloader.handlers._httpx").httpx
    except (ImportError, AttributeError):
        return None


_SHIPPED: Final[dict[str, Sends]] = {
    "HTTP11DownloadHandler": _sent_by_http11,
    "H2DownloadHandler": _sent_by_http2,
    "FTPDownloadHandler": _sent_by_ftp,
    "AiohttpDownloadHandler": _sent_by_aiohttp,
    "HttpxDownloadHandler": _sent_by_httpx,
}
_SENDING: Final = ("download_request", "_make_request", "_get_httpx_response")
"""The methods in which handlers send a URL. A subclass that overrides one may send other URLs."""
