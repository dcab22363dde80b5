"""Determines whether an answer or an error is the site's own (SPEC F-5, F-8).

Proxies, services (APIs that fetch pages for the crawler), download handlers and middlewares have
refusals and errors of their own. So an answer is the site's if nobody else can have sent it:
without a proxy, or through the tunnel of an https URL. Else only a robots.txt, 404 and 410 count,
as nobody sends these in place of a site.
"""

import re
from http import HTTPStatus
from typing import Final, NamedTuple

from scrapy.exceptions import IgnoreRequest, NotSupported, StopDownload
from scrapy.http import Response

from scrapy_rep.fetch.errors import (
    DownloadStoppedError,
    FetchError,
    InterferenceError,
    is_network_error,
)
from scrapy_rep.fetch.local_errors import lacks_resources
from scrapy_rep.fetch.transfer import SUCCESSFUL, Answer, Transfer
from scrapy_rep.protocol.html_pages import unwrap
from scrapy_rep.protocol.lexer import has_known_line, is_robotstxt
from scrapy_rep.protocol.outcome import ABSENT

_SERVICE_ERRORS: Final = (
    *("Zyte-Error", "Zyte-Error-Type", "X-Crawlera-Error", "X-Error-Description"),
    *("X-Brd-Error", "X-Brd-Error-Code", "X-Brd-Err-Code"),
    *("X-Luminati-Error", "X-Luminati-Error-Code"),
)
"""Headers in which Zyte, Bright Data and Oxylabs report an error. Their proxies end the tunnels of
https URLs themselves, so that an answer from a tunnel may be theirs, too."""
_PROXY_ERRORS: Final = ("X-Squid-Error", "Proxy-Authenticate")
_PROXY_STATUS_ERROR: Final = re.compile(rb";\s*error\s*=")
"""Parameter of Proxy-Status for an error of the proxy (RFC 9209 §2.1.1)."""
_MITIGATIONS: Final = ("cf-mitigated", "x-amzn-waf-action", "x-vercel-mitigated")
"""Headers with which the bot protections of Cloudflare, AWS and Vercel mark the pages that they
send in place of those of the site. AWS sends them with status 202 and 405."""
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:]*)(?::[0-9]+)?").fullmatch
_MAX_HEADER: Final = 100

_SERVICE: Final = "a service that was asked in the site's place"
_ADVICE: Final = (
    "see whether it takes your credentials and lets the crawler through, or set REP_OVERRIDES for "
    "the site"
)
_LEAVE_ALONE: Final = (
    "let handlers of headers_received and bytes_received leave alone requests whose callback is "
    "scrapy.http.request.NO_CALLBACK, as it is of those for robots.txt"
)

_NO_FILES: Final = "see how many files it may open (ulimit -n), and whether it has the bind address"


class RouteFailure(NamedTuple):
    """Something on the route because of which a fetch has no answer of the site."""

    what: str
    """What happened, such as ``a proxy gave no answer``. The same for all proxies and sites."""
    detail: str
    """The host of the proxy or service, and what it sent: a status and a header, or an error."""
    advice: str
    permanent: bool = False
    """Whether another fetch in this process would end in the same way."""

    def __str__(self) -> str:
        return f"{self.what} ({self.detail})"


def route_failure_in_answer(answer: Answer) -> RouteFailure | None:
    """Return the failure if the last answer of a fetch may not be the site's; None if it is.

    A 401 is one, too, if credentials were removed after a redirect to another origin.
    """
    transfer, response = answer.transfer, answer.response
    status = response.status
    is_of_service = transfer.rewritten is not None or transfer.after_service
    if transfer.sent and not is_of_service and transfer.proxy is None:
        if not transfer.without_credentials or status != HTTPStatus.UNAUTHORIZED:
            return None
        return RouteFailure(
            "it is redirected to an origin that asks for credentials, which are for another origin",
            _printable_host(response.url),
            "set HTTPAUTH_DOMAIN to a domain that both belong to, or REP_OVERRIDES for the site",
        )
    header = _first_header(response, _SERVICE_ERRORS)
    is_file = status in SUCCESSFUL and is_robotstxt(unwrap(answer.text, truncated=True))
    if not transfer.sent:
        # A middleware may well answer with 404, or nothing, what it doesn't want to be sent.
        who, is_ok = "another middleware", is_file and has_known_line(answer.text)
    elif is_of_service:
        who, is_ok = _SERVICE, (is_file or status in ABSENT) and header is None
    else:
        is_refused = status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
        is_tunnel = response.url.startswith("https:") and not is_refused
        who, is_ok = "a proxy", (is_file or is_tunnel or status in ABSENT) and header is None
    if is_ok:
        return None
    url = transfer.rewritten or transfer.proxy
    details = ", ".join(filter(None, (url and _printable_host(url), f"status {status}", header)))
    return RouteFailure(f"{who} may have answered, not the site", details, _ADVICE)


def route_failure_in_error(
    error: Exception, message: str, transfer: Transfer | None
) -> RouteFailure | None:
    """Return the failure on the route that raised ``error``; None if the site is the cause."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    url = transfer and (transfer.rewritten or transfer.proxy)
    # What the user's own code has decided, no other try changes.
    permanent = isinstance(error, IgnoreRequest | StopDownload | DownloadStoppedError)
    advice = "see the download handlers and the downloader middlewares of the crawl"
    if isinstance(error, StopDownload | DownloadStoppedError):
        what, advice = "a signal handler of the crawl raised StopDownload", _LEAVE_ALONE
    elif isinstance(error, InterferenceError):
        what = "another component of the crawl interfered"
    elif isinstance(error, FetchError):
        return None  # a response that can't be decoded, or a redirect that is refused
    elif lacks_resources(error):
        what, advice = "this machine could not connect", _NO_FILES
    elif transfer is not None and not transfer.sent:
        what = f"another middleware raised {name}"
    elif transfer is not None and url:
        what = f"{'a proxy' if transfer.rewritten is None else _SERVICE} gave no answer"
        message = f"{_printable_host(url)}: {message}"
        advice = "see whether it is up, and reachable"
    elif isinstance(error, NotSupported):
        what, advice, permanent = "no download handler took it", "see DOWNLOAD_HANDLERS", True
    elif is_network_error(error):
        return None
    else:
        what = f"a component of the crawl raised {name}"
    return RouteFailure(what, message, advice, permanent)


def intermediary_error(response: Response, *, proxied: bool) -> str | None:
    """Return ``name: value`` of a header by which a service or proxy reports an error, or None."""
    names: tuple[str, ...] = _SERVICE_ERRORS
    # Proxies can't add headers inside an https tunnel: there, all headers come from the origin.
    if proxied and response.url.startswith("http:"):
        names += _PROXY_ERRORS
        if any(map(_PROXY_STATUS_ERROR.search, response.headers.getlist("Proxy-Status"))):
            names += ("Proxy-Status",)
    return _first_header(response, names)


def mitigation_in(response: Response) -> str | None:
    """Return ``name: value`` of the header by which a bot protection marks its page, or None."""
    return _first_header(response, _MITIGATIONS)


def _printable_host(url: str) -> str:
    """Return host and port of a URL, ``…`` if they may contain a password."""
    host = re.split(r"[/?#]", url.partition("://")[2] or url)[0].rpartition("@")[2]
    return host if _HOST(host) else "…"


def _first_header(response: Response, names: tuple[str, ...]) -> str | None:
    for name in names:
        if (value := response.headers.get(name)) is not None:
            return f"{name}: {ascii(value[:_MAX_HEADER].decode('latin-1'))[1:-1]}"
    return None
