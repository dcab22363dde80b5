"""The downloader middleware that drops disallowed requests.

A request passes at once if the robots.txt of its origin is known and allows it, and nothing can
hold it; or if no robots.txt governs it. About all others, and in a dry run or with overrides about
all, the gate is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.ticket import DIRECT, TICKET_KEY, store_grant, take_ticket
from scrapy_rep.decision.decider import Decider
from scrapy_rep.downloadermiddlewares.crawl_parts import CrawlParts
from scrapy_rep.downloadermiddlewares.fetch_and_response import check_middleware_orders
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.signals import META_KEY
from scrapy_rep.start_log import describe_why_not_obeyed
from scrapy_rep.utils.bounded import Once
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request

if TYPE_CHECKING:
    from typing_extensions import Self

_LOCAL_SCHEMES: Final = {"data", "file"}
"""Schemes of URLs without a site. Scrapy's built-in middleware doesn't check them either."""


class RobotsTxtMiddleware:
    """Drops requests that the robots.txt of their origin disallows, and lets others wait."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            # Scrapy logs the message as a warning.
            raise NotConfigured(describe_why_not_obeyed(crawler.settings))
        check_middleware_orders(crawler)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._schemes = Once()
        self._parts = parts = CrawlParts(crawler, self.process_request)
        self.decider: Decider = parts.decider
        self.admission: Admission = parts.admission
        self._gate = parts.gate
        # Read for each request.
        self._asks_always = parts.asks_always
        self._let_pass = parts.gate.let_pass
        self._paused = parts.admission.hosts.paused

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises NotConfigured without ROBOTSTXT_OBEY, or SettingsError."""
        return cls(crawler)

    def process_request(self, request: Request) -> Awaitable[Request | None]:
        """Let ``request`` pass, return it to the scheduler, or raise an exception that drops it.

        Raises RobotsTxtDisallowed if ``request`` may not be sent, and IgnoreRequest if its site has
        refused all requests for too long. A request waits here only if its robots.txt is not known,
        or if no queue of scrapy-rep could hold it.
        """
        meta = request.meta
        try:
            ticket = take_ticket(request) if TICKET_KEY in meta else DIRECT
            if meta.get("dont_obey_robotstxt"):
                if TRANSFER_KEY not in meta:
                    if not ticket.was_counted:
                        stats.count(self._crawler, stats.EXEMPT)
                    store_grant(request, request.url)
                    meta[META_KEY] = {"exempt": True}
                return _PASSED
            decision = self.decider.known_decision(request)
            if decision is None:
                self._warn_of_scheme(request)
                meta.pop(META_KEY, None)  # a callback may have copied it
                return _PASSED
            origin, verdict, entry = decision.origin, decision.verdict, decision.entry
            if (
                origin is None
                or verdict is None
                or not verdict.allowed
                or self._asks_always
                or (self._paused and origin.host in self._paused)
                or (entry is not None and entry.has_delay)
            ):
                self._parts.override_log.report(decision.override, returned=ticket.was_counted)
                return self._gate.ask(request, decision, ticket)
            self._let_pass(request, decision, ticket)
        except Exception as error:  # noqa: BLE001 - logged by the next call
            self._gate.drop_after_error(request, error)
        return _PASSED

    def _warn_of_scheme(self, request: Request) -> None:
        """Warn, once for each scheme, that no robots.txt is obeyed."""
        scheme = urlsplit(request.url).scheme
        if scheme not in _LOCAL_SCHEMES and self._schemes.add_if_new(scheme):
            self._logger.warning(
                "No robots.txt is obeyed for %s URLs, only for http, https and ftp: %s is sent, "
                "and all others of this scheme",
                scheme,
                printable_request(request),
            )


class _CompletedAwaitable:
    """An awaitable that ends at once. All requests share one, to save the time to create it."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_PASSED: Final = _CompletedAwaitable()
