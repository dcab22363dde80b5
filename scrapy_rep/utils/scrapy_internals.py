"""All uses of Scrapy's private attributes, but those of download slots: see ``download_slots``.

Another version of Scrapy may lack some: RobotsAwarePriorityQueue is used only if
``describe_missing_attribute`` finds none. All other functions of this module work without them.
"""

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, ensure_awaitable, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.utils.concurrency import Promise

Download = Callable[[Request], Awaitable[Response]]
"""Scrapy's function that sends a request."""


def user_agents_of(request: Request) -> list[bytes] | None:
    """Return the values of the User-Agent header of a request; None if it has no such header."""
    # Called twice for each request: methods of the headers would take a fifth of its decision.
    headers: Any = getattr(request, "_headers", True)
    if headers is True:
        headers = request.headers
    return None if headers is None else dict.get(headers, b"User-Agent")


NEEDED: Final = {
    "_slot.closing": "tells that the crawl begins to close",
    "_slot.nextcall.schedule": "lets the engine ask the scheduler when a robots.txt has come",
    "_slot.inprogress": "tells which requests the engine is done with",
}
"""Private attributes of Scrapy's engine that the queue and the admission need, and why."""


def describe_missing_attribute(crawler: Crawler) -> str | None:
    """Return a sentence about an attribute of NEEDED that is missing; None if none is missing."""
    for path, reason in NEEDED.items():
        found: Any = crawler.engine
        for name in path.split("."):
            if not hasattr(found, name):
                return f"Scrapy's engine has no {path}, which {reason}"
            found = getattr(found, name)
    return None


def downloader_of(crawler: Crawler) -> Any:
    """Return Scrapy's downloader, or None."""
    return getattr(crawler.engine, "downloader", None)


def is_closing(crawler: Crawler) -> bool:
    """Return whether the engine has begun to close the spider, or the crawl was stopped before."""
    # No signal tells: ``spider_closed`` waits for the requests that wait for a robots.txt, and is
    # not sent at all if a signal of the system comes before the engine runs.
    slot = getattr(crawler.engine, "_slot", None)
    is_stopped = getattr(crawler, "_started", False) and not crawler.crawling
    return is_stopped or getattr(slot, "closing", None) is not None


def requests_in_progress(crawler: Crawler) -> set[Request]:
    """Return the requests that the engine is downloading or whose callbacks are running."""
    slot = getattr(crawler.engine, "_slot", None)
    return set() if slot is None else slot.inprogress


def wake_engine(crawler: Crawler) -> None:
    """Make the engine ask the scheduler soon, not after up to five seconds, unless it closes."""
    slot = getattr(crawler.engine, "_slot", None)
    schedule = getattr(getattr(slot, "nextcall", None), "schedule", None)
    if schedule is not None and not is_closing(crawler):
        schedule()


async def download_without_engine(crawler: Crawler, request: Request) -> None:
    """Let the downloader middlewares and the download handler process ``request``.

    Of the response, or an error, only the middleware closest to the downloader is told. The engine
    would count ``request`` as one of the pages that are sent, and its tasks and calls cost half of
    a fetch. What a middleware sends in place of ``request`` goes through the engine.
    """
    engine: Any = crawler.engine
    manager = getattr(engine.downloader, "middleware", None)
    methods = getattr(manager, "methods", None)
    with_spider = getattr(manager, "_mw_methods_requiring_spider", ())

    def call(method: Callable[..., Any], **arguments: Any) -> Any:
        spider = {"spider": crawler.spider} if method in with_spider else {}
        return method(request=request, **arguments, **spider)

    result: Any = request
    if methods is not None:  # else it is another downloader
        try:
            for method in methods["process_request"]:
                result = call(method)
                if result is not None and (result := await ensure_awaitable(result)):
                    break
            else:
                result = await _hand_over(crawler, request)
        except Exception as error:  # that middleware raises it again, but a subclass may not
            result = await ensure_awaitable(call(methods["process_exception"][0], exception=error))
            if result is None:
                raise
        if isinstance(result, Response):
            result = await ensure_awaitable(call(methods["process_response"][0], response=result))
    if isinstance(result, Request):
        with raised_concurrency(crawler):
            await engine.download_async(result)


async def _hand_over(crawler: Crawler, request: Request) -> Response:
    """Return the response of the download handler, which is not cancelled with this coroutine.

    Some handlers share a task or give back a session after a download, and Twisted's agent turns a
    cancellation into the error of a lost connection. The handler ends at its own time limit.
    """
    response: Promise[Response] = Promise()

    def failed(failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, Exception):  # the CancelledError of asyncio
            error = RuntimeError("the handler was cancelled")
        response.set_exception(error)

    download: Deferred[Response] = deferred_from_coro(_download(crawler, request))
    download.addCallbacks(response.set_result, failed)
    return await response


async def _download(crawler: Crawler, request: Request) -> Response:
    """Call the download handler, and send the signals that the downloader sends."""
    send = partial(crawler.signals.send_catch_log, request=request, spider=crawler.spider)
    send(signals.request_reached_downloader)
    try:
        response: Response = await downloader_of(crawler).handlers.download_request_async(request)
        send(signals.response_downloaded, response=response)
        return response
    finally:
        send(signals.request_left_downloader)


@contextmanager
def raised_concurrency(crawler: Crawler) -> Iterator[None]:
    """Increase CONCURRENT_REQUESTS by one in the ``with`` block, unless it sets no limit.

    The downloader counts requests that wait, and those that a middleware sends in place of a
    request for robots.txt, too: they must not reduce the number of pages.
    """
    downloader = downloader_of(crawler)
    limit = getattr(downloader, "total_concurrency", 0)
    if not isinstance(limit, int) or limit <= 0:
        yield
        return
    downloader.total_concurrency += 1
    try:
        yield
    finally:
        # Decreased, and not set to its former value, because other blocks may have changed it.
        downloader.total_concurrency -= 1


def wrap_downloads(
    crawler: Crawler, wrapper: Callable[[Request, Download], Awaitable[Response]]
) -> bool:
    """Call ``wrapper`` in place of the download handlers; return whether that is possible.

    It gets the request, and Scrapy's function. No middleware and no download slot comes after it.
    """
    with suppress(AttributeError):  # it has another name, or the object takes no other attributes
        handlers = downloader_of(crawler).handlers
        download = handlers.download_request_async
        handlers.download_request_async = lambda request: wrapper(request, download)
        return True
    return False


async def close_idle_connections(crawler: Crawler) -> None:
    """Close the connections that Scrapy's handlers keep: to each site, for minutes."""
    # Those for httpx and HTTP/2 keep few: CONCURRENT_REQUESTS, or one for each site.
    handlers = getattr(downloader_of(crawler).handlers, "_handlers", {})
    for handler in list(handlers.values()):
        with suppress(AttributeError):  # not Scrapy's handler for HTTP/1.1
            await maybe_deferred_to_future(handler._pool.closeCachedConnections())
        with suppress(AttributeError):  # not Scrapy's handler for aiohttp
            kept = handler._session.connector._conns
            for connection, _ in chain.from_iterable(kept.values()):
                connection.close()
            kept.clear()


def remove_connection_limits(crawler: Crawler) -> None:
    """Remove the connection limits of Scrapy's aiohttp and httpx download handlers.

    Requests for robots.txt of sites that hang would use up all of the CONCURRENT_REQUESTS
    connections. The downloader still limits the number of pages.
    """
    with suppress(AttributeError):  # another version of Scrapy, or another downloader
        for handler in downloader_of(crawler).handlers._handlers.values():
            modules = {base.__module__ for base in type(handler).__mro__}
            if "scrapy.core.downloader.handlers._aiohttp" in modules:
                connector = handler._session.connector
                connector._limit = connector._limit_per_host = 0
            elif "scrapy.core.downloader.handlers._httpx" in modules:
                kept = handler._limits.max_keepalive_connections
                handler._default_client._transport._pool._max_connections = math.inf
                # The handler creates its clients for proxies later, with these limits.
                handler._limits = type(handler._limits)(max_keepalive_connections=kept)
