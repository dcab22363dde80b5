"""Whether it was the origin that answered, or something on the route to it.

Proxies, APIs that fetch in the crawler's place, download handlers and middlewares refuse and fail
on their own account. That says nothing of the origin: neither that it has no robots.txt (SPEC F-5),
nor that it has been unreachable (SPEC F-8).
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from scrapy import exceptions
from scrapy.exceptions import NotSupported

from scrapy_rep.fetch.decoding import DecodingError
from scrapy_rep.fetch.transfer import FetchError, InterferenceError
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.wrapped import is_html, unwrapped
from scrapy_rep.utils.text import without_credentials

if TYPE_CHECKING:
    from scrapy.http import Response

    from scrapy_rep.fetch.transfer import Answer, Transfer

# What services say in headers of their own when they refuse, with any status: Zyte (Zyte API in
# its proxy mode, Smart Proxy Manager), Bright Data (once Luminati), Oxylabs.
_SERVICE_ERRORS: Final = (
    "Zyte-Error",
    "Zyte-Error-Type",
    "X-Crawlera-Error",
    "X-Brd-Error",
    "X-Brd-Error-Code",
    "X-Brd-Err-Code",
    "X-Luminati-Error",
    "X-Luminati-Error-Code",
    "X-Error-Description",
)
_PROXY_STATUS_ERROR: Final = re.compile(rb";\s*error\s*=")
"""Parameter of Proxy-Status that tells of an error of the proxy (RFC 9209 §2.1.1)."""
_MAX_HEADER: Final = 100
"""Bytes of such a header that are shown."""
_PROXY_AUTHENTICATION_REQUIRED: Final = 407

# The classes by which Scrapy's handlers, its own and Twisted's, tell of an origin. Half of them are
# private, or of packages that may be missing, so they are known by the module that defines them.
_NETWORK_MODULES: Final = frozenset(
    {
        "twisted.internet.error",
        "twisted.web._newclient",
        "twisted.web.http",
        "twisted.protocols.ftp",
        "OpenSSL.SSL",
        "service_identity.exceptions",
        "h2.exceptions",
    }
)
# Scrapy has these since 2.15.
_NETWORK_ERRORS: Final = (
    OSError,
    asyncio.TimeoutError,  # no OSError before Python 3.11
    *(
        getattr(exceptions, name)
        for name in (
            "CannotResolveHostError",
            "DownloadCancelledError",
            "DownloadConnectionRefusedError",
            "DownloadFailedError",
            "DownloadTimeoutError",
            "ResponseDataLossError",
        )
        if hasattr(exceptions, name)
    ),
)
_NO_HANDLER: Final = (NotSupported, getattr(exceptions, "UnsupportedURLSchemeError", NotSupported))


_SEE_COMPONENTS: Final = "see the download handlers and the downloader middlewares of the crawl"


class Obstacle(NamedTuple):
    """What was in the way to an origin."""

    what: str
    """``the proxy http://127.0.0.1:8080 refused``; the same for all origins behind it."""
    detail: str
    """What it said of this one."""
    advice: str
    """What can be done about it."""

    def __str__(self) -> str:
        return f"{self.what} ({self.detail})"


def obstacle_in(answer: Answer) -> Obstacle | None:
    """Return what has answered in place of the origin, or None where it was the origin itself."""
    if not answer.sent or _is_rendered(answer):
        return _obstacle_in_rendered(answer)
    if answer.sent_url is not None:
        return _obstacle_in_stand_ins(answer, answer.sent_url)
    if answer.proxy is not None:
        return _obstacle_in_proxied(answer, answer.proxy)
    return None


def _obstacle_in_rendered(answer: Answer) -> Obstacle | None:
    # What renders pages, as browsers do, shows an error page as it shows a robots.txt.
    status = answer.response.status
    has_groups = RobotsTxt.parse(unwrapped(answer.text, truncated=True)).groups
    if status // 100 == 2 and has_groups:  # noqa: PLR2004 - 2xx
        return None
    who = "another middleware" if answer.sent_url is None else _stand_in(answer.sent_url)
    return Obstacle(
        f"{who} answered in the site's place, without rules",
        _detail(status, None),
        "let it leave requests for robots.txt alone",
    )


def _obstacle_in_stand_ins(answer: Answer, url: str) -> Obstacle | None:
    # A service passes on what the site has and has not; all else is its own.
    status, said = answer.response.status, _said(answer.response, _SERVICE_ERRORS)
    if said is None and (status in {404, 410} or status // 100 in {2, 3}):
        return None
    return Obstacle(
        f"{_stand_in(url)} refused",
        _detail(status, said),
        "see what it says of the key and its limits, or set REP_OVERRIDES for the site",
    )


def _obstacle_in_proxied(answer: Answer, proxy: str) -> Obstacle | None:
    response, said = answer.response, _said(answer.response, _SERVICE_ERRORS)
    # Through a tunnel of https such headers come from the origin's side.
    if said is None and response.url.startswith("http:"):
        said = _said_by_proxy(response)
    if said is None and response.status != _PROXY_AUTHENTICATION_REQUIRED:
        return None
    return Obstacle(
        f"the proxy {without_credentials(proxy)} refused",
        _detail(response.status, said),
        "see whether its credentials hold, and whether it lets the crawler through",
    )


def obstacle_of(error: Exception, message: str, transfer: Transfer | None) -> Obstacle | None:
    """Return what ``error`` was raised by, or None where it tells of the origin.

    ``message`` is what it says, fit to be shown.
    """
    if isinstance(error, InterferenceError):
        return Obstacle("another component of the crawl interfered", message, _SEE_COMPONENTS)
    # Broken answers, and redirects that are refused.
    if isinstance(error, FetchError | DecodingError):
        return None
    if isinstance(error, _NO_HANDLER):
        return Obstacle("no download handler took it", message, "see DOWNLOAD_HANDLERS")
    if transfer is not None and (transfer.rewritten or transfer.proxy):
        where = (
            _stand_in(transfer.rewritten)
            if transfer.rewritten is not None
            else f"the proxy {without_credentials(transfer.proxy or '')}"
        )
        return Obstacle(f"{where} gave no answer", message, "see whether it is up, and reachable")
    if isinstance(error, _NETWORK_ERRORS) or any(
        kind.__module__ in _NETWORK_MODULES for kind in type(error).__mro__
    ):
        return None
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return Obstacle(f"a component of the crawl raised {name}", message, _SEE_COMPONENTS)


def _stand_in(url: str) -> str:
    return f"{urlsplit(url).hostname}, which was asked for the site,"


def _is_rendered(answer: Answer) -> bool:
    return answer.sent_url is not None and answer.response.status == 200 and is_html(answer.text)  # noqa: PLR2004 - what such services say whatever the site does


def _said_by_proxy(response: Response) -> str | None:
    said = _said(response, ("X-Squid-Error",))
    if said is not None:
        return said
    if any(map(_PROXY_STATUS_ERROR.search, response.headers.getlist("Proxy-Status"))):
        return _said(response, ("Proxy-Status",))
    # An origin answers these through a proxy, too, and can't be told from it. It is left closed.
    if response.status in {401, 403} or response.status // 100 == 5:  # noqa: PLR2004 - 5xx
        return _said(response, ("Via",))
    return None


def _said(response: Response, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = response.headers.get(name)
        if value is not None:
            return f"{name}: {value[:_MAX_HEADER].decode('latin-1')}"
    return None


def _detail(status: int, said: str | None) -> str:
    return f"HTTP status {status}" if said is None else f"HTTP status {status}, {said}"
