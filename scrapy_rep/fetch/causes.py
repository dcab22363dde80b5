"""Why a fetch failed, in words, from an exception and its causes."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Final

from scrapy_rep.fetch.decoding import DecodingError
from scrapy_rep.fetch.transfer import FetchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CREDENTIALS: Final = re.compile(r"\S+@")
_LACKS: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL}
_MAX_TEXT: Final = 300
"""Maximum length of an error message, in characters."""
_DETAIL: Final = re.compile(r": | \(")
_MAX_DEPTH: Final = 10
"""Maximum length of a chain of causes."""

# By name: those of Scrapy, Twisted, asyncio, aiohttp and httpx have no class in common, and some
# are private or not installed.
_WORDS: Final = {
    name: words
    for words, names in {
        "DNS lookup failed": "CannotResolveHostError DNSLookupError UnknownHostError gaierror",
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


def cause_of(error: BaseException) -> str:
    """Return why a fetch failed, in printable ASCII."""
    if isinstance(error, FetchError | DecodingError):
        return as_message(str(error))
    chain = _chain(error)
    # The innermost cause is the most specific: a TLS error under a lost connection.
    for each in reversed(chain):
        for kind in type(each).__mro__:
            if kind.__module__ == "OpenSSL.SSL":
                return "TLS error"
            if kind.__name__ in _WORDS:
                return _WORDS[kind.__name__]
    if len(chain) > 1 and isinstance(chain[-1], ValueError):
        return "no valid HTTP"  # raised by Twisted's parser
    return as_message(f"{type(chain[-1]).__name__}: {chain[-1]}".removesuffix(": "))


def short_cause(cause: str) -> str:
    """Return a cause without details of one site, to be counted over all sites."""
    return _DETAIL.split(cause, maxsplit=1)[0]


def lacks_resources(error: BaseException) -> bool:
    """Return whether this machine lacked resources to connect, as open files or memory."""
    # Exceptions of Twisted have the number in ``osError``.
    numbers = ((getattr(e, "errno", None), getattr(e, "osError", None)) for e in _chain(error))
    return any(number in _LACKS for pair in numbers for number in pair)


def as_message(text: str) -> str:
    """Return ``text`` in ASCII, shortened, without credentials."""
    return _CREDENTIALS.sub("", ascii(text)[1:-1])[:_MAX_TEXT]


def _chain(error: BaseException) -> list[BaseException]:
    return list(_causes(error, _MAX_DEPTH))


def _causes(error: BaseException, depth: int) -> Iterator[BaseException]:
    """Yield ``error`` and its causes; exceptions of Twisted have them in ``reasons``."""
    yield error
    if not depth:
        return
    causes = [getattr(reason, "value", reason) for reason in getattr(error, "reasons", None) or ()]
    cause = causes[-1] if causes else error.__cause__
    if isinstance(cause, BaseException):
        yield from _causes(cause, depth - 1)
