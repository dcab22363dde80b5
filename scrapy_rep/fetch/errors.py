"""The errors of fetches, and their causes in words."""

import re
from typing import Final

from scrapy_rep.fetch.local_errors import causes_of
from scrapy_rep.protocol.outcome import DNS_ERROR


class FetchError(Exception):
    """Raised if a fetch has failed. The message is the cause, for the evidence and the log."""


class DecodingError(FetchError):
    """The headers name a coding that isn't supported, or that the body doesn't have (SPEC F-10)."""


class InterferenceError(FetchError):
    """Raised if another component of the crawl replaced or stopped the response."""


class DownloadStoppedError(InterferenceError):
    """Raised if a signal handler of the crawl stopped the response before it was complete."""


_CREDENTIALS: Final = re.compile(r"\S+@")
_MAX_TEXT: Final = 300
_DETAIL: Final = re.compile(r": | \(")

# Exceptions are recognized by the names of their classes: those of Scrapy, Twisted, asyncio,
# aiohttp and httpx have no base class in common, and some are private, or their package is missing.
_WORDS: Final = {
    name: words
    for words, names in {
        DNS_ERROR: "CannotResolveHostError DNSLookupError UnknownHostError gaierror",
        "connection refused": "DownloadConnectionRefusedError ConnectionRefusedError",
        "timed out": "DownloadTimeoutError TimeoutError TCPTimedOutError TimeoutException",
        "no route to the host": "NoRouteError",
        "TLS error": "SSLError SSLCertVerificationError CertificateError VerificationError",
        "incomplete answer": "ResponseDataLossError PotentialDataLoss _DataLoss "
        "IncompleteReadError",
        "no valid HTTP": "ParseError BadStatusLine BadHttpMessage",
        "connection closed": "ConnectionClosed ConnectionDone ConnectionLost ConnectionResetError "
        "ConnectionAbortedError BrokenPipeError ServerDisconnectedError RemoteProtocolError "
        "ReadError ResponseNeverReceived",
    }.items()
    for name in names.split()
}
_NETWORK_ERRORS: Final = {*_WORDS, "DownloadCancelledError", "DownloadFailedError"}
_NETWORK_MODULES: Final = {
    "twisted.internet.error",
    "twisted.web._newclient",
    "twisted.web.http",
    "twisted.protocols.ftp",
    "OpenSSL.SSL",
    "service_identity.exceptions",
    "h2.exceptions",
}


def cause_of(error: BaseException) -> str:
    """Return why a fetch failed with ``error``: printable ASCII of at most 300 characters."""
    if isinstance(error, FetchError):
        return sanitised_message(str(error))
    chain = causes_of(error)
    # The innermost cause is the most specific: a TLS error, not the lost connection that followed.
    for each in reversed(chain):
        for kind in type(each).__mro__:
            if kind.__module__ == "OpenSSL.SSL":
                return "TLS error"
            if kind.__name__ in _WORDS:
                return _WORDS[kind.__name__]
    if len(chain) > 1 and isinstance(chain[-1], ValueError):
        return "no valid HTTP"  # Twisted's parser raises ValueError
    return sanitised_message(f"{type(chain[-1]).__name__}: {chain[-1]}".removesuffix(": "))


def is_network_error(error: BaseException) -> bool:
    """Return whether Scrapy's download handlers raise ``error`` when a site or network fails."""
    return isinstance(error, OSError) or any(
        kind.__name__ in _NETWORK_ERRORS or kind.__module__ in _NETWORK_MODULES
        for kind in type(error).__mro__
    )


def short_cause(cause: str) -> str:
    """Return ``cause`` without the details of a site, so that equal causes can be counted."""
    return _DETAIL.split(cause, maxsplit=1)[0]


def sanitised_message(text: str) -> str:
    """Return ``text`` in printable ASCII, cut to 300 characters, without credentials of URLs."""
    return _CREDENTIALS.sub("", ascii(text)[1:-1])[:_MAX_TEXT]
