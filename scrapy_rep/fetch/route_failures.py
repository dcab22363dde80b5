"""Determines whether a response or an error comes from the origin, or from something on the route.

Proxies, services (APIs that fetch pages for the crawler), download handlers and middlewares have
refusals and errors of their own. Such a response doesn't mean that the origin has no robots.txt
(SPEC F-5), nor that it is unreachable (SPEC F-8). It is represented by a ``RouteFailure``.
"""

import asyncio
import re
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from scrapy import exceptions
from scrapy.exceptions import IgnoreRequest, NotSupported, StopDownload
from scrapy.http import Response

from scrapy_rep.fetch.decoding import DecodingError
from scrapy_rep.fetch.transfer import (
    REDIRECTION,
    SUCCESSFUL,
    Answer,
    DownloadStoppedError,
    FetchError,
    InterferenceError,
    Transfer,
)
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.protocol.wrapped_in_html import is_html, unwrap
from scrapy_rep.utils.open_files import lacks_resources

# Headers in which services report an error, with any status: Zyte (the proxy mode of Zyte API,
# Smart Proxy Manager), Bright Data (formerly Luminati), Oxylabs.
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
_MITIGATIONS: Final = ("cf-mitigated", "x-amzn-waf-action", "x-vercel-mitigated")
"""Headers with which the bot protections of Cloudflare, AWS and Vercel mark the pages that they
send in place of those of the site. AWS sends them with status 202 and 405."""
_PROXY_STATUS_ERROR: Final = re.compile(rb";\s*error\s*=")
"""Parameter of Proxy-Status for an error of the proxy (RFC 9209 §2.1.1)."""
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:]*)(?::[0-9]+)?").fullmatch
_MAX_HEADER: Final = 100
"""Maximum number of bytes of a header's value that messages show."""
_UNAUTHORIZED: Final = 401
_PROXY_AUTHENTICATION_REQUIRED: Final = 407

# Modules of the exceptions that Scrapy's handlers raise if the origin fails. The classes are not
# imported, because many are private, or in packages that may be missing.
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
# Before Python 3.11 these are two classes, and asyncio.TimeoutError is not an OSError.
_TIMEOUTS: Final = (TimeoutError, asyncio.TimeoutError)
_NETWORK_ERRORS: Final = (
    OSError,
    *_TIMEOUTS,
    # Scrapy before 2.15 doesn't have these classes.
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

_SERVICE: Final = "a service that was asked in the site's place"
_LEAVE_ALONE: Final = (
    "let handlers of headers_received and bytes_received leave alone requests whose callback is "
    "scrapy.http.request.NO_CALLBACK, as it is of those for robots.txt"
)
_SEE_SERVICE: Final = (
    "see what it says of the key and its limits, or set REP_OVERRIDES for the site"
)
_SEE_COMPONENTS: Final = "see the download handlers and the downloader middlewares of the crawl"


class RouteFailure(NamedTuple):
    """Something on the route because of which a fetch has no response of the origin."""

    what: str
    """What happened, such as ``a proxy refused``. The same for all proxies and origins."""
    detail: str
    """The host of the proxy or service, and what it sent: a status and a header, or an error."""
    advice: str
    permanent: bool = False
    """Whether another fetch in this process would end in the same way."""

    def __str__(self) -> str:
        return f"{self.what} ({self.detail})"


def route_failure_in_answer(answer: Answer) -> RouteFailure | None:
    """Return the failure on the route if ``answer`` is not that of the origin; None if it is.

    A proxy, a service to which the URL was rewritten, or another middleware may have sent it. A 401
    after a redirect is one, too, if credentials for this origin were removed from the request.
    """
    transfer = answer.transfer
    if not transfer.sent or (transfer.rewritten is not None and _is_page(answer)):
        return _failure_in_page(answer)
    if transfer.rewritten is not None:
        return _failure_in_service(answer, transfer.rewritten)
    if transfer.proxy is not None and (failure := _failure_in_proxy(answer, transfer.proxy)):
        return failure
    if transfer.without_credentials and answer.response.status == _UNAUTHORIZED:
        return _route_failure(
            "it is redirected to an origin that asks for credentials, which are for another origin",
            answer.response,
            answer.response.url,
            "set HTTPAUTH_DOMAIN to a domain that both belong to, or REP_OVERRIDES for the site",
        )
    return None


def route_failure_in_last_answer(answer: Answer) -> RouteFailure | None:
    """Return a failure if a service sent the last answer, and this is a redirect; else None."""
    service = answer.transfer.rewritten
    if service is None or answer.response.status not in REDIRECTION:
        return None
    what = f"{_SERVICE} redirected without an end"
    return _route_failure(what, answer.response, service, _SEE_SERVICE)


def route_failure_in_redirect(verdict: Verdict | None, location: str) -> RouteFailure | None:
    """Return a failure if an override with the policy ``disallow`` is for ``location``; else None.

    ``verdict`` is that on ``location``; None if it isn't known.
    """
    if verdict is None or verdict.allowed or verdict.reason is not Reason.OVERRIDE:
        return None
    return RouteFailure(
        "it is redirected to a host that REP_OVERRIDES disallows",
        location,
        "set REP_OVERRIDES for the site, too",
    )


def _failure_in_page(answer: Answer) -> RouteFailure | None:
    """Return None only for a 2xx text with groups: any other page may be that of a service."""
    response, service = answer.response, answer.transfer.rewritten
    text = unwrap(answer.text, truncated=True)
    if response.status in SUCCESSFUL and RobotsTxt.parse(text).groups:
        return None
    who = "another middleware" if service is None else _SERVICE
    what = f"{who} answered in the site's place, without rules"
    return _route_failure(what, response, service, "let it leave requests for robots.txt alone")


def _failure_in_service(answer: Answer, url: str) -> RouteFailure | None:
    """Return None only if the site may have sent the answer, and no header tells of an error."""
    header = _first_header(answer.response, _SERVICE_ERRORS)
    location = answer.response.headers.get("Location")
    if location is not None and _leads_to_itself(location.decode("latin-1"), url):
        what = f"{_SERVICE} redirected to itself"
    elif header is None and _may_be_from_site(answer.response):
        return None
    else:
        what = f"{_SERVICE} refused"
    return _route_failure(what, answer.response, url, _SEE_SERVICE, header)


def _failure_in_proxy(answer: Answer, proxy: str) -> RouteFailure | None:
    """Return None for an answer with another status than 407, and without a header of the proxy."""
    response, header = answer.response, intermediary_error(answer.response, proxied=True)
    is_407 = response.status == _PROXY_AUTHENTICATION_REQUIRED
    if header is None and not is_407:
        return None
    asks_credentials = is_407 or "Proxy-Authenticate" in response.headers
    what = "its credentials hold" if asks_credentials else "it reaches the site"
    advice = f"see whether {what}, and whether it lets the crawler through"
    return _route_failure("a proxy refused", response, proxy, advice, header)


def route_failure_in_error(
    error: Exception, message: str, transfer: Transfer | None
) -> RouteFailure | None:
    """Return the failure on the route that raised ``error``; None if the origin is the cause.

    ``message`` is the printable message of ``error``; ``transfer`` is None if no request was made.
    """
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    # What the user's own code has decided, no other try changes.
    permanent = isinstance(error, IgnoreRequest | StopDownload | DownloadStoppedError)
    advice = _SEE_COMPONENTS
    if isinstance(error, StopDownload | DownloadStoppedError):
        what, advice = "a signal handler of the crawl raised StopDownload", _LEAVE_ALONE
    elif isinstance(error, InterferenceError):
        what = "another component of the crawl interfered"
    elif isinstance(error, FetchError | DecodingError):
        return None  # a response that can't be decoded, or a redirect that is refused
    elif lacks_resources(error):
        what, advice = (
            "this machine could not connect",
            "see how many files it may open (ulimit -n), and whether it has the bind address",
        )
    elif transfer is not None and not transfer.sent:
        what = f"another middleware raised {name}"
    elif transfer is not None and (transfer.rewritten or transfer.proxy):
        what = f"{'a proxy' if transfer.rewritten is None else _SERVICE} gave no answer"
        message = f"{_printable_host(transfer.rewritten or transfer.proxy)}: {message}"
        advice = "see whether it is up, and reachable"
    elif isinstance(error, _NO_HANDLER):
        what, advice = "no download handler took it", "see DOWNLOAD_HANDLERS"
        # UnsupportedURLSchemeError is raised by a handler, and may concern this URL only.
        permanent = isinstance(error, NotSupported)
    elif isinstance(error, _TIMEOUTS) and transfer is not None and transfer.handler is not None:
        what = f"{transfer.handler} gave no answer"
    elif isinstance(error, _NETWORK_ERRORS) or any(
        kind.__module__ in _NETWORK_MODULES for kind in type(error).__mro__
    ):
        return None
    else:
        what = f"a component of the crawl raised {name}"
    return RouteFailure(what, message, advice, permanent)


def intermediary_error(response: Response, *, proxied: bool) -> str | None:
    """Return ``name: value`` of a header by which a service or proxy reports an error, or None.

    Headers of proxies are read only if the response is ``proxied`` and its URL is ``http``.
    """
    header = _first_header(response, _SERVICE_ERRORS)
    # Proxies can't add headers inside an https tunnel: there, all headers come from the origin.
    if header is None and proxied and response.url.startswith("http:"):
        header = _proxy_error_header(response)
    return header


def mitigation_in(response: Response) -> str | None:
    """Return ``name: value`` of the header by which a bot protection marks its page, or None."""
    return _first_header(response, _MITIGATIONS)


def _is_page(answer: Answer) -> bool:
    is_json = b"json" in (answer.response.headers.get("Content-Type") or b"").lower()
    return answer.response.status in SUCCESSFUL and (is_json or is_html(answer.text))


def _may_be_from_site(response: Response) -> bool:
    """Return whether the status is one that proxies pass on, but don't send themselves."""
    return response.status in {404, 410} or response.status // 100 in {2, 3}


def _leads_to_itself(location: str, url: str) -> bool:
    """Return whether ``location`` is an absolute URL of the service that ``url`` belongs to.

    Such a URL has the host or the query of ``url``, the URL that was sent to the service.
    """
    try:
        to, asked = urlsplit(urljoin(url, location)), urlsplit(url)
        is_absolute = bool(urlsplit(location).netloc)
    except ValueError:  # no valid URL
        return False
    return is_absolute and (
        to.hostname == asked.hostname or (to.query == asked.query and bool(asked.query))
    )


def _printable_host(url: str | None) -> str:
    """Return host and port of a URL, ``""`` for None, ``…`` if they may contain a password."""
    if url is None:
        return ""
    authority = re.split(r"[/?#]", url.partition("://")[2] or url)[0]
    host = authority.rpartition("@")[2]
    return host if _HOST(host) else "…"


def _proxy_error_header(response: Response) -> str | None:
    """Return a proxy's ``name: value``, that of ``Via`` if the status may be an error, or None."""
    header = _first_header(response, ("X-Squid-Error",))
    if header is not None:
        return header
    if any(map(_PROXY_STATUS_ERROR.search, response.headers.getlist("Proxy-Status"))):
        return _first_header(response, ("Proxy-Status",))
    if "Proxy-Authenticate" in response.headers:
        return _first_header(response, ("Proxy-Authenticate",))
    # The origin may have sent this status through the proxy, but it may also be the proxy's.
    if not _may_be_from_site(response):
        return _first_header(response, ("Via",))
    return None


def _first_header(response: Response, names: tuple[str, ...]) -> str | None:
    """Return ``name: value`` of the first of ``names`` that ``response`` has; None without any."""
    for name in names:
        value = response.headers.get(name)
        if value is not None:
            return f"{name}: {ascii(value[:_MAX_HEADER].decode('latin-1'))[1:-1]}"
    return None


def _route_failure(
    what: str, response: Response, url: str | None, advice: str, header: str | None = None
) -> RouteFailure:
    """Return the failure at the host of ``url`` that sent ``response``."""
    details = _printable_host(url), f"status {response.status}", header
    return RouteFailure(what, ", ".join(filter(None, details)), advice)
