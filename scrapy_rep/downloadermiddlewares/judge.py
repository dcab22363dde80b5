"""Decides again on what other middlewares, or download handlers, have changed."""

from __future__ import annotations

import logging
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.utils.defer import ensure_awaitable

from scrapy_rep import signals, stats
from scrapy_rep.decision.usage import carry_over
from scrapy_rep.exceptions import RobotsTxtDisallowed
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.scheduler.source import NOTE_KEY
from scrapy_rep.utils.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.decision.decider import Decider

logger = logging.getLogger(__name__)

DECIDED_KEY: Final = "_robotstxt_decided"
"""Private key of ``Request.meta``: the URL and the product tokens that were decided on.

It is there between the middleware and the guard, and from the guard, which has decided on the URL
of the response, to the check nearest the engine. None for tokens: whatever they are."""
AGAIN_KEY: Final = "_robotstxt_again"
"""Private key of ``Request.meta``: the guard asks, and the request has waited for its turn."""
CLOSING: Final = Verdict(allowed=False, reason=Reason.CLOSING)
"""The verdict on what is not known when the crawl closes."""


class Judge:
    """What decides again: the middleware, which may be a subclass of the user's."""

    def __init__(
        self, crawler: Crawler, decider: Decider, process_request: Callable[..., Any]
    ) -> None:
        self.decider = decider
        """What it decides by."""
        self._crawler = crawler
        self._process_request = process_request
        self._takes_spider = "spider" in signature(process_request).parameters

    async def ask(self, request: Request) -> Request | None:
        """Return what ``process_request`` of the middleware returns. Raises what it raises."""
        meta = request.meta
        meta[AGAIN_KEY] = True
        spider = {"spider": self._crawler.spider} if self._takes_spider else {}
        try:
            returned: Request | None = await ensure_awaitable(
                self._process_request(request, **spider)
            )
        finally:
            meta.pop(AGAIN_KEY, None)
        if DECIDED_KEY not in meta:
            # A subclass lets it pass: these are of the queue, or of the page before.
            meta.pop(NOTE_KEY, None)
            meta.pop(signals.META_KEY, None)
        return returned

    async def refusal(self, hop: Request) -> Verdict | None:
        """Return why ``hop`` is not to be sent; None where it may be."""
        try:
            given_back = await self.ask(hop) is not None
        except RobotsTxtDisallowed as error:
            return error.verdict
        return CLOSING if given_back else None

    async def check(self, request: Request, response: Response, how: str) -> Request | Response:
        """Decide on the URL of ``response``, which is not the one that was decided on.

        Return it if that is allowed. If that isn't known when the crawl closes, and the scheduler
        keeps requests, return the request, to be sent again by the next crawl. ``how`` says in the
        log how the response came to its URL. Raises RobotsTxtDisallowed.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return response
        # The download slot is that of the request.
        meta = {key: value for key, value in request.meta.items() if key != "download_slot"}
        try:
            hop = Request(response.url, headers=request.headers, meta=meta)
        except ValueError:  # no URL that anything could be fetched from
            return response
        was, now = self.decider.known_decision(request), self.decider.known_decision(hop)
        # Most often only the spelling differs: browsers add a slash behind the host.
        if now is None or (was is not None and was[:2] == now[:2]):  # origin and target
            return response
        self._crawler.signals.send_catch_log(
            signal=signals.robotstxt_followed, request=request, hop=hop
        )
        try:
            if await self.ask(hop) is not None:
                return request.replace(dont_filter=True)
        except RobotsTxtDisallowed as error:
            raise dropped_response(
                self._crawler, request, how, error.verdict, response.url
            ) from error
        carry_over(hop, request)
        return response


def dropped_response(
    crawler: Crawler, request: Request, how: str, verdict: Verdict, url: str
) -> RobotsTxtDisallowed:
    """Count and log that the response to ``request`` is dropped, which is one of ``url``."""
    request.meta[signals.META_KEY] = signals.as_meta(verdict)
    stats.count(crawler, stats.FORBIDDEN_RESPONSE_COUNT)
    logger.debug(
        "Dropped the response to %s: %s to %s",
        show(request),
        how,
        show(Request(url)),
        extra={"spider": crawler.spider},
    )
    return RobotsTxtDisallowed(verdict, redirected_to=url)
