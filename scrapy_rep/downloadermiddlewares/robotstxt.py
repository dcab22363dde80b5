"""The downloader middleware that drops disallowed requests.

A request passes at once if the cache has the robots.txt of its origin, and this allows the request.
For all other requests, the table in ``actions`` defines whether they wait here, are dropped, or
are given back to the scheduler. This depends on what is known about the request, and on its source:
the component from which the engine got it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.ticket import (
    DIRECT,
    TICKET_KEY,
    Note,
    Source,
    copy_for_scheduler,
    read_and_restore,
    store_grant,
)
from scrapy_rep.decision.decider import Decider, Decision
from scrapy_rep.decision.usage import Judgement, store_judgement
from scrapy_rep.downloadermiddlewares.actions import ACTIONS, Action, Situation
from scrapy_rep.downloadermiddlewares.crawl_parts import CrawlParts
from scrapy_rep.downloadermiddlewares.decide_again import CLOSING
from scrapy_rep.downloadermiddlewares.settings_log import (
    check_middleware_orders,
    describe_why_not_obeyed,
)
from scrapy_rep.exceptions import (
    CrawlClosingError,
    RobotsTxtDisallowed,
    RobotsUsageDisallowed,
    dns_error_of,
)
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.signals import META_KEY
from scrapy_rep.utils.bounded import Once
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import origin_of_request
from scrapy_rep.utils.text import printable_request

if TYPE_CHECKING:
    from typing_extensions import Self

_PRIORITY_CUT: Final = 1_000
"""Amount by which the priority of a request is lowered when too many requests wait here."""
_QUEUES: Final = (Source.QUEUE, Source.OVERDUE)
"""The sources whose requests have waited in a queue of scrapy-rep, if the crawl uses one."""
_DECISION_LIFE: Final = 1.0
"""Seconds for which the first decision by an entry is valid at least, and a repeated one."""
_LOCAL_SCHEMES: Final = {"data", "file"}
"""Schemes of URLs without a site. Scrapy's built-in middleware doesn't check them either."""
_ERROR: Final = Verdict(allowed=False, reason=Reason.ERROR)


class RobotsTxtMiddleware:
    """Drops requests that the robots.txt of their origin disallows, and lets others wait."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            # Scrapy logs the message as a warning.
            raise NotConfigured(describe_why_not_obeyed(crawler.settings))
        check_middleware_orders(crawler)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._parts = parts = CrawlParts(crawler, self.process_request, self._give_back_or_drop)
        self.decider: Decider = parts.decider
        self.admission: Admission = parts.admission
        self._cache = parts.cache
        self._schemes = Once()
        self._waiting = parts.waiting_requests
        self._dry_run = parts.dry_run
        # Read for each request.
        self._announcer = parts.announcer
        self._time = parts.clock.time
        self._checks_all = parts.dry_run is not None or parts.has_overrides
        self._keeps_terms = parts.admission.keeps_terms
        self._paused_hosts = parts.admission.paused_hosts

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises NotConfigured without ROBOTSTXT_OBEY, or SettingsError."""
        return cls(crawler)

    def process_request(
        self,
        request: Request,
        spider: Spider | None = None,  # noqa: ARG002 - subclasses for older versions of Scrapy pass it
    ) -> Awaitable[Request | None]:
        """Let ``request`` pass, return it to the scheduler, or raise an exception that drops it.

        Raises RobotsTxtDisallowed if ``request`` may not be sent, and IgnoreRequest if its site has
        refused all requests for too long. A request waits only if its robots.txt is not known or is
        unreachable, if its site has a delay, if too many requests wait already, and in a dry run.
        """
        meta = request.meta
        try:
            ticket = meta.pop(TICKET_KEY, None)
            note = DIRECT if ticket is None else read_and_restore(request, ticket)
            if meta.get("dont_obey_robotstxt"):
                if TRANSFER_KEY not in meta:
                    stats.count(self._crawler, stats.EXEMPT)
                    store_grant(request, request.url, None)
                    meta[META_KEY] = {"exempt": True}
                return _PASSED
            decision = self.decider.known_decision(request)
            if decision is None:
                self._warn_of_scheme(request)
                return self._let_pass_undecided(request)
            verdict, entry = decision.verdict, decision.entry
            if (
                verdict is None
                or not verdict.allowed
                or self._checks_all
                or (entry is not None and entry.has_terms and self._keeps_terms)
                or self._paused_hosts
            ):
                return self._act(request, decision, note)
            self._let_pass(request, decision, verdict, note)
        except IgnoreRequest:
            raise
        except Exception as error:  # noqa: BLE001 - logged by the next call
            self._drop_after_error(request, error)
        return _PASSED

    def _act(self, request: Request, decision: Decision, note: Note) -> Awaitable[Request | None]:
        """Count the override, and do what ACTIONS has for the situation. Errors are raised."""
        self._parts.override_log.report(decision.override, returned=note.returned)
        situation = self._situation_of(request, decision, note)
        action = ACTIONS[situation][note.source]
        if action is Action.WAIT:
            return self._wait(request, decision, note, situation)
        if action is Action.PUT_OFF and decision.origin is not None:
            if decision.verdict is None:
                self.admission.look_up_later(decision.origin, request)
            return self._put_off(request, note)
        return self._act_now(request, decision, note, situation)

    def _act_now(
        self, request: Request, decision: Decision, note: Note, situation: Situation
    ) -> Awaitable[Request | None]:
        """Do what ACTIONS has for ``situation``, after all waits. A dry run lets all pass.

        An exception that drops the request is raised by the call, not by the awaitable.
        """
        if self._dry_run is not None:
            # An http URL whose host or port is not valid has no origin. The decision on it is valid
            # for all product tokens: None means that.
            tokens = decision.tokens if decision.origin else None
            store_grant(request, request.url, tokens, returned=note.returned)
            self._dry_run.report(request, decision, note.source)
            return _PASSED
        returned = self._pass_return_or_drop(request, decision, note, situation)
        return _PASSED if returned is None else _completed(returned)

    def _situation_of(
        self, request: Request, decision: Decision, note: Note, *, is_admitted: bool = False
    ) -> Situation:
        """Return the row of ACTIONS. After ALLOWED, the request must pass: its leaving counts."""
        verdict = decision.verdict
        if verdict is None:
            if self._cache.closing:
                return Situation.CLOSING_AGAIN if note.returned else Situation.CLOSING
            return Situation.CROWDED if self._waiting.is_full else Situation.UNKNOWN
        if not verdict.allowed:
            is_deferred = (
                verdict.reason is Reason.UNREACHABLE
                and self.admission.deferral.is_deferred(note.source, request, decision.entry)
            )
            return Situation.DEFERRED if is_deferred else Situation.FORBIDDEN
        host = "" if decision.origin is None else decision.origin.host
        if self.admission.hosts.is_dropping(host):
            return Situation.REFUSED
        if (
            is_admitted
            or note.again  # the wire asks about a request that is just being sent
            or self._dry_run is not None
            or (note.source in _QUEUES and self.admission.queues)  # the queue has asked
            or self._waiting.admit(request, decision)
        ):
            return Situation.ALLOWED
        is_crowded = note.source is Source.SCHEDULER and self._waiting.is_full
        return Situation.CROWDED if is_crowded else Situation.HELD

    def _pass_return_or_drop(
        self, request: Request, decision: Decision, note: Note, situation: Situation
    ) -> Request | None:
        """Let ``request`` pass, return its copy for the scheduler, or drop it, also for WAIT."""
        action = ACTIONS[situation][note.source]
        if action is Action.GIVE_BACK or (
            action is Action.GIVE_BACK_IF_KEPT and self._parts.scheduler_stores_requests
        ):
            return self._return_to_scheduler(request)
        verdict = decision.verdict
        if verdict is None:
            raise self._drop(request, CLOSING.with_origin(decision.origin))
        if action is Action.PASS:
            self._let_pass(request, decision, verdict, note)
            return None
        if situation is Situation.REFUSED:
            stats.count(self._crawler, stats.BACK_OFF_DROPPED)
            host = urlparse_cached(request).hostname
            raise IgnoreRequest(f"{host!a} has refused all requests for REP_DEFER_TIMEOUT")
        decision.mark_entry_used()
        if decision.origin is not None:
            self._announcer.send_verdict(request, verdict, decision.origin, decision)
        if verdict.reason is Reason.UNREACHABLE and note.source is Source.OVERDUE:
            stats.count(self._crawler, stats.DEFERRED_DROPPED)
        error = self._drop(request, verdict.with_origin(decision.origin), decision.judgement)
        raise error from dns_error_of(verdict, decision.origin)

    async def _wait(
        self, request: Request, decision: Decision, note: Note, situation: Situation
    ) -> Request | None:
        """Wait for the verdict on ``request``, and until it may leave; then obey ACTIONS."""
        # Only a request that is given back while the crawl closes could come again for ever.
        comes_again = situation is Situation.HELD and note.returned and self._cache.closing
        try:
            if situation is not Situation.HELD:
                decision, situation = await self._wait_for_verdict(request, decision, note)
            if situation is Situation.HELD:
                direct = note.source is Source.DIRECT
                decision = await self._waiting.wait_for_admission(request, decision, direct=direct)
                situation = self._situation_of(request, decision, note, is_admitted=True)
        except CrawlClosingError:
            # A request that arrived before the crawl began to close may be given back, once.
            situation = Situation.CLOSING_AGAIN if comes_again else Situation.CLOSING
            decision = decision._replace(verdict=None)
        except CancelledError:  # in Twisted an Exception, which the next clause would catch
            raise
        except Exception as error:  # noqa: BLE001 - logged by the next call
            self._drop_after_error(request, error)
            return None
        return await self._act_now(request, decision, note, situation)

    async def _wait_for_verdict(
        self, request: Request, decision: Decision, note: Note
    ) -> tuple[Decision, Situation]:
        """Wait for the verdict on ``request``; the situation may be HELD.

        If it doesn't come from a queue, it also waits once for the next try of an unreachable
        robots.txt. Raises CrawlClosingError.
        """
        while True:
            has_tried = decision.verdict is not None
            decision = await self._waiting.wait_for_decision(request, decision, on_wire=note.again)
            verdict, entry = decision.verdict, decision.entry
            now = self._time()
            is_new = note.again and entry is not None and now - entry.start < _DECISION_LIFE
            if verdict and verdict.allowed and entry and not is_new and not entry.is_valid(now):
                # It has expired, and decided on another page that waited for the same lookup. What
                # is about to be sent can't wait for a lookup of its own, and uses the new rules.
                decision = decision._replace(verdict=None, entry=None)
                continue
            situation = self._situation_of(request, decision, note)
            if situation is Situation.CROWDED:  # the request has a place already
                return decision, Situation.HELD
            if has_tried or situation is not Situation.DEFERRED or note.source in _QUEUES:
                return decision, situation

    async def _put_off(self, request: Request, note: Note) -> Request:
        """Give ``request`` back with a lower priority; after a pause if it was put off before."""
        stats.count(self._crawler, stats.PUT_OFF)
        if note.put_off:
            await self._waiting.pause_before_return()
        return self._return_to_scheduler(request, priority_cut=_PRIORITY_CUT)

    def _give_back_or_drop(self, request: Request) -> Request:
        """Return a copy of ``request``, which may not be sent now, for the scheduler.

        Raises RobotsTxtDisallowed while the crawl closes, if no scheduler stores the request.
        """
        if self._cache.closing and not self._parts.scheduler_stores_requests:
            raise self._drop(request, CLOSING.with_origin(origin_of_request(request)))
        return self._return_to_scheduler(request)

    def _return_to_scheduler(self, request: Request, *, priority_cut: int = 0) -> Request:
        stats.count(self._crawler, stats.RETURNED)
        return copy_for_scheduler(request, priority_cut=priority_cut)

    def _let_pass(self, request: Request, decision: Decision, verdict: Verdict, note: Note) -> None:
        """Write ticket, verdict and judgement to the meta; send the signal; mark the entry used."""
        entry, end, terms = decision.entry, math.inf, None
        if entry is not None:
            end = entry.end
            if entry.unused or note.again:
                # It may have expired, and decides on its first page all the same.
                end = max(end, self._time() + _DECISION_LIFE)
                entry.mark_used()
            if self._checks_all or (entry.has_terms and self._keeps_terms):
                terms = self.admission.terms(decision)
        # A plain tuple as in store_grant, without the time of a call.
        request.meta[TICKET_KEY] = request.url, decision.tokens, end, terms, note.returned
        self._announcer.send_verdict(request, verdict, decision.origin, decision)
        if decision.judgement is not None:
            store_judgement(request, decision.judgement)

    @staticmethod
    def _let_pass_undecided(request: Request) -> Awaitable[None]:
        request.meta.pop(META_KEY, None)  # a callback may have copied it from another request
        return _PASSED

    def _warn_of_scheme(self, request: Request) -> None:
        """Warn, once for each scheme, that no robots.txt is obeyed for the URL of ``request``."""
        scheme = urlsplit(request.url).scheme.lower()
        if scheme not in _LOCAL_SCHEMES and self._schemes.add_if_new(scheme):
            self._logger.warning(
                "No robots.txt is obeyed for %s URLs, only for http, https and ftp: %s is sent, "
                "and all others of this scheme",
                scheme,
                printable_request(request),
            )

    def _drop_after_error(self, request: Request, error: Exception) -> None:
        """Log and count an error; raise what drops ``request``, or let it pass in a dry run."""
        self._logger.error(
            "Error while obeying robots.txt, the request is %s: %s",
            "dropped" if self._dry_run is None else "sent, as this is a dry run",
            printable_request(request),
            exc_info=error,
        )
        stats.count(self._crawler, stats.ERROR_COUNT)
        if self._dry_run is None:
            raise self._drop(request, _ERROR) from error
        store_grant(request, request.url, None)

    def _drop(
        self, request: Request, verdict: Verdict, judgement: Judgement | None = None
    ) -> RobotsTxtDisallowed:
        """Log and count the drop, and ``judgement``; return the exception to raise."""
        self._parts.drops.report(request, verdict, judgement=judgement)
        if judgement is None:
            return RobotsTxtDisallowed(verdict)
        self.decider.usage_judge.report(request, judgement)
        return RobotsUsageDisallowed(verdict, judgement.usage, judgement.results)


async def _completed(request: Request) -> Request:
    return request


class _CompletedAwaitable:
    """An awaitable that ends at once. All requests share one, to save the time to create it."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_PASSED: Final = _CompletedAwaitable()
