"""Texts for the causes of failed fetches, from an exception and the exceptions that caused it."""

import re
from typing import Final

from scrapy_rep.fetch.decoding import DecodingError
from scrapy_rep.fetch.transfer import FetchError
from scrapy_rep.protocol.outcome import DNS_ERROR
from scrapy_rep.utils.open_files import causes_of

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
    if isinstance(error, FetchError | DecodingError):
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
    """Return whether Scrapy's download handlers raise ``error`` if the site or the network fails.

    The errors of their libraries count, which are not imported, because many are private.
    """
    return isinstance(error, OSError) or any(
        kind.__name__ in _NETWORK_ERRORS or kind.__module__ in _NETWORK_MODULES
        for kind in type(error).__mro__
    )


def short_cause(cause: str) -> str:
    """Return ``cause`` without details of a single site, so that equal causes can be counted."""
    return _DETAIL.split(cause, maxsplit=1)[0]


def sanitised_message(text: str) -> str:
    """Return ``text`` in printable ASCII, cut to 300 characters, without credentials of URLs."""
    return _CREDENTIALS.sub("", ascii(text)[1:-1])[:_MAX_TEXT]
