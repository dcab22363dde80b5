"""The downloader middlewares closest to the downloader (fetch) and to the engine (response).

The former protects requests for robots.txt. It removes what other middlewares have added to them,
and raises the response as an exception, ``Received``. No other middleware handles the exception, so
the fetcher gets the response unchanged. It also gives back requests that the wire doesn't send now.
Both decide on the URL of a response that is not that of its request.
"""

from __future__ import annotations

from collections.abc import Awaitable
from operator import gt, lt
from typing import TYPE_CHECKING, ClassVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_rep import signals, stats
from scrapy_rep.admission.ticket import TICKET_KEY, Source, store_grant
from scrapy_rep.decision.usage import replace_judgement
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.downloadermiddlewares.wire import GivenBackError, Wire
from scrapy_rep.exceptions import RobotsTxtDisallowed, SettingsError
from scrapy_rep.fetch.errors import InterferenceError
from scrapy_rep.fetch.transfer import TRANSFER_KEY, Received, answer_of
from scrapy_rep.refusals import POSSIBLE_REFUSALS, Refusals
from scrapy_rep.utils.download_slots import SLOT_KEY
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import get_part
from scrapy_rep.utils.text import printable_request

if TYPE_CHECKING:
    from typing_extensions import Self


class ResponseCheckMiddleware:
    """Base class of the downloader middlewares closest to the downloader and to the engine."""

    _why: ClassVar[str]
    """Why the URL of a response may not be that of its request."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises NotConfigured if ROBOTSTXT_OBEY is false."""
        return cls(crawler)

    async def _check_url(
        self, gate: Gate, request: Request, response: Response
    ) -> Request | Response:
        """Ask the gate about the URL of ``response``; note the usage preferences of that URL."""
        if request.meta.get("dont_obey_robotstxt"):
            return response
        # The URL of the response may have another download slot.
        meta = {key: value for key, value in request.meta.items() if key != SLOT_KEY}
        try:
            hop = Request(response.url, headers=request.headers, meta=meta)
        except ValueError:  # a URL that nothing can be fetched from
            return response
        was, now = gate.decider.known_decision(request), gate.decider.known_decision(hop)
        # Often only the spelling differs: browsers add a slash after the host.
        if now is None or (was is not None and was[:2] == now[:2]):  # origin and target
            return response
        try:
            if (other := await gate.again(hop, Source.RESPONSE)) is not None:
                return other  # what a subclass returns
        except RobotsTxtDisallowed as error:
            request.meta[signals.META_KEY] = signals.as_meta(error.verdict)
            stats.count(self._crawler, stats.FORBIDDEN_RESPONSE_COUNT)
            told = printable_request(request), self._why, printable_request(hop)
            self._logger.debug("Dropped the response to %s: %s to %s", *told)
            raise RobotsTxtDisallowed(error.verdict, redirected_to=response.url) from error
        replace_judgement(hop, request)
        return response


class RobotsTxtFetchMiddleware(ResponseCheckMiddleware):
    """The downloader middleware closest to the downloader: its order must be the highest.

    A response is checked if its URL is not that of the request, because its download handler has
    followed a redirect itself, as browsers do.

    What other middlewares add to requests for pages is removed from requests for robots.txt. The
    responses to these requests are passed directly to the fetcher, so that no other middleware
    retries, renders, caches or changes them.
    """

    _why = "its download handler followed a redirect"

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # RobotsTxtMiddleware was created before, as its order is lower; None if it is not in use.
        self._wire, self._refusals = get_part(crawler, Wire), get_part(crawler, Refusals)

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Let ``request`` pass, without what other middlewares have added if it is for robots.txt.

        Raises InterferenceError if another request has its meta, and IgnoreRequest for a page if
        the downloader has no place for the wire.
        """
        transfer = request.meta.get(TRANSFER_KEY)
        if transfer is None:
            if self._wire is not None and not self._wire.is_installed:
                return self._wire.install()  # it comes before the signal spider_opened
            return None
        if transfer.is_other_page(request.url):
            raise InterferenceError("a request to another page has the meta of this request")
        # The one for which HttpAuthMiddleware has credentials.
        domain = getattr(self._crawler.spider, "http_auth_domain", None)
        transfer.prepare(request, domain or self._crawler.settings.get("HTTPAUTH_DOMAIN"))
        return None

    def process_response(
        self, request: Request, response: Response
    ) -> Response | Awaitable[Request | Response]:
        """Raise the response to a request for robots.txt as ``Received``, which the fetcher gets.

        Raises RobotsTxtDisallowed if any other response has another URL, which is disallowed.
        """
        transfer = request.meta.get(TRANSFER_KEY)
        if transfer is not None:
            if (scrapys := self._downloader_stats()) is not None:
                scrapys.process_response(request, response)
            raise Received(answer_of(response, transfer))
        wire = self._wire
        if wire is None or self._refusals is None:
            return response
        wire.discard_ticket(request, unsent="cached" in response.flags)
        if response.status in POSSIBLE_REFUSALS:
            self._refusals.report(request, response)
        if response.url == request.url:
            return response
        return self._check_and_grant(wire.gate, request, response)

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Raise the error of a request for robots.txt again: only the fetcher is to handle it.

        Return the copy of a request that the wire has given back; None for other requests.
        """
        if isinstance(exception, GivenBackError):
            return exception.request
        if self._wire is not None:
            self._wire.discard_ticket(request, unsent=isinstance(exception, IgnoreRequest))
        if TRANSFER_KEY in request.meta:
            if isinstance(exception, Received):
                # A middleware has sent a request of its own with a copy of the meta of ``request``.
                raise InterferenceError("what came is the answer to another request")
            if (scrapys := self._downloader_stats()) is not None:
                scrapys.process_exception(request, exception)
            raise exception
        return None

    def _downloader_stats(self) -> DownloaderStats | None:
        # It doesn't receive the exceptions that are raised here. It is called directly, so that it
        # counts the end of each request for robots.txt, too.
        return self._crawler.get_downloader_middleware(DownloaderStats)

    async def _check_and_grant(
        self, gate: Gate, request: Request, response: Response
    ) -> Request | Response:
        checked = await self._check_url(gate, request, response)
        if checked is response:
            store_grant(request, response.url)
        return checked


class RobotsTxtResponseMiddleware(ResponseCheckMiddleware):
    """The downloader middleware closest to the engine: its order must be the lowest.

    A response is checked again if another middleware has changed its URL. A middleware for a web
    service may do this, for example, if the service has followed a redirect.
    """

    _why = "another middleware has changed its URL"

    def process_response(
        self, request: Request, response: Response
    ) -> Response | Awaitable[Request | Response]:
        """Let ``response`` pass if it has the URL that was decided on, else decide on its URL.

        Raises RobotsTxtDisallowed if the URL is disallowed.
        """
        ticket = request.meta.pop(TICKET_KEY, None)
        url = (ticket and ticket[0]) or request.url
        if response.url == url or (wire := get_part(self._crawler, Wire)) is None:
            return response
        return self._check_url(wire.gate, request, response)


def check_middleware_orders(crawler: Crawler) -> None:
    """Check the orders of the first and the last downloader middleware.

    Raises SettingsError if RobotsTxtFetchMiddleware is missing, or another middleware has at least
    its order, or if another middleware has at most the order of RobotsTxtResponseMiddleware.
    """
    orders = {
        load_object(path): order
        for path, order in crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES").items()
        if order is not None
    }
    for cls, where, is_beyond in (
        (RobotsTxtFetchMiddleware, "beyond", gt),
        (RobotsTxtResponseMiddleware, "below", lt),
    ):
        takes = f"scrapy_rep.{cls.__name__} at an order {where} all others"
        ours = [each for each in orders if isinstance(each, type) and issubclass(each, cls)]
        if not ours and cls is RobotsTxtFetchMiddleware:
            raise SettingsError(
                "DOWNLOADER_MIDDLEWARES has scrapy_rep.RobotsTxtMiddleware alone: it takes "
                f"{takes}, too: ADDONS = {{'scrapy_rep.Addon': 500}} sets all"
            )
        for component, other in orders.items() if ours else ():
            order = orders[ours[0]]
            if component not in ours and not is_beyond(order, other):
                raise SettingsError(
                    f"DOWNLOADER_MIDDLEWARES has scrapy_rep.{cls.__name__} at {order}, and "
                    f"{global_object_name(component)} at {other}: it takes {takes}"
                )
