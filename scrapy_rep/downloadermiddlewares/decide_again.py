"""Repeats the decision on requests that other middlewares or download handlers have changed."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import ensure_awaitable

from scrapy_rep import signals, stats
from scrapy_rep.admission.ticket import TICKET_KEY, grant_of, store_again
from scrapy_rep.decision.decider import Decider
from scrapy_rep.decision.usage import replace_judgement
from scrapy_rep.exceptions import RobotsTxtDisallowed
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request

CLOSING: Final = Verdict(allowed=False, reason=Reason.CLOSING)
"""The verdict on a request of an unknown origin while the crawl closes."""


class DecideAgain:
    """Repeats decisions with the crawl's RobotsTxtMiddleware, or the user's subclass of it."""

    def __init__(
        self, crawler: Crawler, decider: Decider, process_request: Callable[..., Any]
    ) -> None:
        self.decider = decider
        self._crawler = crawler
        self._process_request = process_request
        self._takes_spider = "spider" in signature(process_request).parameters

    async def decide(self, request: Request) -> Request | None:
        """Call ``process_request`` of RobotsTxtMiddleware: return its result, raise its errors.

        If no decision was made, the former verdict is removed from the meta of ``request``.
        """
        store_again(request)
        spider = {"spider": self._crawler.spider} if self._takes_spider else {}
        returned: Request | None = await ensure_awaitable(self._process_request(request, **spider))
        if grant_of(request) is None:
            # A subclass let the request pass without a decision, so the keys are of a former one.
            request.meta.pop(TICKET_KEY, None)
            request.meta.pop(signals.META_KEY, None)
        return returned

    async def decide_as_sent(self, request: Request) -> Request | None:
        """Decide again as ``decide`` does, on a request that no other middleware will change.

        A request that is returned goes to the scheduler, and ``request`` must not be sent. Without
        a User-Agent it has no product tokens, but for those of ROBOTSTXT_USER_AGENT.
        """
        if b"User-Agent" in request.headers:
            return await self.decide(request)
        request.headers[b"User-Agent"] = b""
        try:
            return await self.decide(request)
        finally:
            del request.headers[b"User-Agent"]

    async def check_response_url(
        self, request: Request, response: Response, cause: str
    ) -> Request | Response:
        """Return ``response`` if its URL, which differs from the URL decided on, is allowed.

        If the crawl closes before that is known, and the scheduler stores requests, return a copy
        of ``request``, so that the next crawl sends it again. ``cause`` is why the URL differs, for
        the log. Raises RobotsTxtDisallowed if the URL is disallowed: the response was counted and
        logged then. Else ``request`` gets the usage preferences of that URL. With
        ``dont_obey_robotstxt`` nothing is decided.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return response
        # The URL of the response may have another download slot.
        meta = {key: value for key, value in request.meta.items() if key != "download_slot"}
        try:
            hop = Request(response.url, headers=request.headers, meta=meta)
        except ValueError:  # a URL that nothing can be fetched from
            return response
        was, now = self.decider.known_decision(request), self.decider.known_decision(hop)
        # Often only the spelling differs: browsers add a slash after the host.
        if now is None or (was is not None and was[:2] == now[:2]):  # origin and target
            return response
        try:
            if await self.decide(hop) is not None:
                return request.replace(dont_filter=True)
        except RobotsTxtDisallowed as error:
            request.meta[signals.META_KEY] = signals.as_meta(error.verdict)
            stats.count(self._crawler, stats.FORBIDDEN_RESPONSE_COUNT)
            LimitedLogger(__name__, self._crawler).debug(
                "Dropped the response to %s: %s to %s",
                printable_request(request),
                cause,
                printable_request(hop),
            )
            raise RobotsTxtDisallowed(error.verdict, redirected_to=response.url) from error
        replace_judgement(hop, request)
        return response
