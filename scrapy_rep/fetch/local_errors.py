"""Errors that are none of the site: this machine lacked files, memory or ports."""

import errno
import socket
from collections.abc import Sequence
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep.utils.concurrency import sleep
from scrapy_rep.utils.scrapy_internals import Download, close_idle_connections

_NO_FILE: Final = {errno.EMFILE, errno.ENFILE}
_LACKS: Final = _NO_FILE | {errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL}
_DNS_ERRORS: Final = {"CannotResolveHostError", "DNSLookupError", "UnknownHostError", "gaierror"}
_MAX_DEPTH: Final = 10
_PAUSES: Final = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before the calls of a download for which there is no file left."""


def lacks_resources(error: BaseException) -> bool:
    """Return whether ``error`` or a cause is that this machine lacked files, memory or ports."""
    return bool(_numbers_in(error) & _LACKS)


def lacks_files(error: BaseException) -> bool:
    """Return whether no file could be opened for a connection or DNS: nothing was sent."""
    if _numbers_in(error) & _NO_FILE:
        return True
    # A resolver that can't open a file finds no host, and its error has no number.
    if not any(type(each).__name__ in _DNS_ERRORS for each in causes_of(error)):
        return False
    try:
        socket.socket().close()
    except OSError:
        return True
    return False


async def download_with_files(
    crawler: Crawler, download: Download, request: Request, pauses: Sequence[float] = _PAUSES
) -> Response:
    """Return the response of ``download``, which is called again if there was no file left."""
    try:
        return await download(request)
    except Exception as error:
        if not pauses or not lacks_files(error):
            raise
    return await download_again(crawler, download, request, pauses)


async def download_again(
    crawler: Crawler, download: Download, request: Request, pauses: Sequence[float] = _PAUSES
) -> Response:
    """Return the response of ``download``, for whose last call there was no file left.

    With many sites, idle connections use up the files that the process may open. So they are closed
    before the next call, which comes at once. ``pauses`` are the seconds before the calls.
    """
    await close_idle_connections(crawler)
    await sleep(pauses[0])
    return await download_with_files(crawler, download, request, pauses[1:])


def causes_of(error: BaseException) -> list[BaseException]:
    """Return ``error`` and its causes, the innermost last."""
    causes: list[BaseException] = []
    cause: object = error
    while isinstance(cause, BaseException) and len(causes) <= _MAX_DEPTH:
        causes.append(cause)
        reasons = getattr(cause, "reasons", None)  # of Twisted
        cause = getattr(reasons[-1], "value", reasons[-1]) if reasons else cause.__cause__
    return causes


def _numbers_in(error: BaseException) -> set[Any]:
    names = "errno", "osError"  # the second is Twisted's
    return {getattr(each, name, None) for each in causes_of(error) for name in names}
