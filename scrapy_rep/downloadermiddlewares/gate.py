"""The gate: whether a request may be sent now.

It is called by the middleware, when a request leaves the queue; by the wire, if the ticket of the
request does not fit what is sent; and for the URL of a response, if that is another. It has five
answers:

1. disallowed, or not sent yet, and its host has refused all for too long: it is dropped;
2. not known: it waits for the lookup, and is asked about again;
3. held, and no queue of ours could hold it: it waits here; a direct request also for the next try
   of an unreachable robots.txt, if this is soon;
4. robots.txt is unreachable and a queue of ours can hold it, or the crawl closes: it goes back;
5. else it gets a ticket. What a queue of ours, or the wire, holds is their affair.

What waits here is in ``waits.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import ensure_awaitable
from twisted.internet.defer import CancelledError

from scrapy_rep import signals, stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.admission.ticket import (
    AGAIN,
    QUEUED,
    STAYING,
    TICKET_KEY,
    Source,
    Ticket,
    copy_for_scheduler,
    store_grant,
    store_source,
    ticket_of,
)
from scrapy_rep.decision.decider import Decider, Decision
from scrapy_rep.decision.usage import store_judgement
from scrapy_rep.downloadermiddlewares.waits import Places, Waits
from scrapy_rep.drops import Drops, DryRun
from scrapy_rep.exceptions import (
    CrawlClosingError,
    RobotsTxtDisallowed,
    RobotsUsageDisallowed,
    dns_error_of,
)
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.usage import Judgement
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import host_of, origin_of_request
from scrapy_rep.utils.text import printable_request

CLOSING: Final = Verdict(allowed=False, reason=Reason.CLOSING)
"""The verdict on a request of an unknown origin while the crawl closes."""
_LIFE: Final = 0.5
"""Seconds for which the first decision by an entry is valid at least, and one at the wire."""
_NEW: Final = 1.0
"""Seconds after a fetch in which its entry decides at the wire, even if it has expired."""
_WIRE: Final = Source.WIRE.value


@dataclass(eq=False, repr=False)
class Gate:
    """Decides on requests, and lets them wait."""

    crawler: Crawler
    admission: Admission
    drops: Drops
    clock: Clock
    process_request: Callable[..., Any]
    """That of RobotsTxtMiddleware, or of the user's subclass of it."""
    dry_run: DryRun | None
    stores_requests: bool
    """Whether a scheduler keeps the requests that are left at the end."""

    def __post_init__(self) -> None:
        self._logger = LimitedLogger(__name__, self.crawler)
        self.decider: Decider = self.admission.decider
        self.hosts: Hosts = self.admission.hosts
        self._announcer = self.drops.announcer
        self.waits: Waits = Waits(self.crawler, self.clock)
        self._asking: Places[Origin] = Places(lambda _: 1)
        """The request of each origin that asks the admission."""
        self.admission.on_hold_changed(self.waits.hold_changed)

    async def ask(self, request: Request, decision: Decision, ticket: Ticket) -> Request | None:
        """Give one of the five answers: return None, or the copy for the queue; else raise."""
        was_closing = self.admission.is_closing
        try:
            source = Source(ticket.source)
            decision = await self._decide(request, decision, source)
            if self._may_be_held(decision, source):
                decision = await self._wait_for_turn(request, decision, source)
            return self._finish(request, decision, ticket, source)
        except CrawlClosingError:
            if self.dry_run is not None:  # which drops nothing
                store_grant(request, request.url)
                return None
            # A direct request that is given back comes again at once: not a second time.
            is_second = was_closing and ticket.was_given_back
            if source is Source.DIRECT and (is_second or not self.stores_requests):
                raise self.drop(request, CLOSING.with_origin(decision.origin)) from None
            return self.give_back(request, source)
        except (IgnoreRequest, CancelledError):  # in Twisted, the latter is an Exception
            raise
        except Exception as error:  # noqa: BLE001 - logged by the next call
            self.drop_after_error(request, error)
            return None

    async def _decide(self, request: Request, decision: Decision, source: Source) -> Decision:
        """Return the decision after lookups, as ``_look_up`` does.

        A direct request waits for the next try of an unreachable robots.txt.
        """
        decision = await self._look_up(request, decision, source)
        origin, verdict, entry = decision.origin, decision.verdict, decision.entry
        if source is not Source.DIRECT or origin is None or entry is None:
            return decision
        may_wait = self.dry_run is None and verdict is not None and not verdict.allowed
        if not may_wait or not self.admission.deferral.would_defer(source, entry):
            return decision
        await self.waits.wait(origin, self.admission.deferral.until_next_try(entry), source)
        return await self._look_up(request, decision._replace(verdict=None), source)

    async def _look_up(self, request: Request, decision: Decision, source: Source) -> Decision:
        """Return the decision, without a verdict only if the host refuses all requests."""
        origin: Any = decision.origin
        is_to_be_sent = source is not Source.RESPONSE
        while decision.verdict is None:
            if is_to_be_sent and self.hosts.is_dropping(origin.host):
                return decision  # it is dropped
            stats.count(self.crawler, stats.WAITED)
            while is_to_be_sent and (hold := self.hosts.hold_in_pause(origin, request)):
                await self.waits.wait(origin, hold, source)
            with self.waits.not_counted(source):
                decision = await self.decider.decision(request, decision, stays=source in STAYING)
            verdict, entry, now = decision.verdict, decision.entry, self.clock.time()
            is_new = source in AGAIN and entry is not None and now - entry.start < _NEW
            if verdict and verdict.allowed and entry and not (is_new or entry.is_valid(now)):
                # It has expired, and decided on another page that waited for the same lookup.
                decision = decision._replace(verdict=None, entry=None)
        return decision

    async def _wait_for_turn(
        self, request: Request, decision: Decision, source: Source
    ) -> Decision:
        """Return the decision when the admission lets ``request`` leave, or it is to be dropped.

        One request of an origin asks the admission at a time: those behind it would ask in vain.
        """
        origin: Any = decision.origin
        if not self._asking.take(origin):
            with self.waits.not_counted(source):
                await self._asking.wait(origin)
            # At the close, all in the line come here in turn.
            if self.admission.is_closing and source is not Source.DIRECT:
                self._asking.leave(origin)
                raise CrawlClosingError
        try:
            while True:
                # In a wait, robots.txt may have expired.
                decision = self.decider.known_decision(request) or decision
                decision = await self._decide(request, decision, source)
                if not self._may_be_held(decision, source):
                    return decision
                hold = self.admission.admit(origin, lambda: request, decision.entry)
                if hold is None:
                    return decision
                await self.waits.wait(origin, hold, source)
        finally:
            self._asking.leave(origin)

    def _may_be_held(self, decision: Decision, source: Source) -> bool:
        """Return whether the admission is asked here: else a queue did, or the wire will."""
        verdict, entry, origin = decision.verdict, decision.entry, decision.origin
        is_asked_elsewhere = source in AGAIN or (source in QUEUED and self.admission.queues)
        if self.dry_run is not None or is_asked_elsewhere or entry is None or origin is None:
            return False
        return bool(verdict and verdict.allowed) and not self.hosts.is_dropping(origin.host)

    def _finish(
        self, request: Request, decision: Decision, ticket: Ticket, source: Source
    ) -> Request | None:
        verdict, host = decision.verdict, host_of(request)
        if self.dry_run is not None:
            self.let_pass(request, decision, ticket)
            self.dry_run.report(request, decision, source)
            return None
        is_dropping = source is not Source.RESPONSE and self.hosts.is_dropping(host)
        if verdict is None or (verdict.allowed and is_dropping):
            stats.count(self.crawler, stats.BACK_OFF_DROPPED)
            self._logger.debug("Dropped (its host refuses all): %s", printable_request(request))
            raise IgnoreRequest(f"{host!a} has refused all requests for REP_DEFER_TIMEOUT")
        if not verdict.allowed:
            # What the wire gives back a second time might come to it again at once, for ever.
            was_given_back = source is Source.WIRE and ticket.was_given_back
            may_go_back = source is not Source.DIRECT and not was_given_back
            if may_go_back and self.admission.deferral.would_defer(source, decision.entry):
                return self.give_back(request, source)
            raise self._drop_disallowed(request, decision, source)
        self.let_pass(request, decision, ticket, self.hosts.delays.kept(decision))
        return None

    async def again(self, request: Request, source: Source) -> Request | None:
        """Call ``process_request``, the user's if it is overridden, for what is sent, or was.

        A new ticket keeps its first source. What a subclass lets pass without a decision has no
        ticket and no verdict then.
        """
        before = ticket_of(request)
        store_source(request, source)
        returned: Request | None = await ensure_awaitable(self.process_request(request))
        ticket = ticket_of(request)
        if ticket is None:
            request.meta.pop(TICKET_KEY, None)
            request.meta.pop(signals.META_KEY, None)
        elif before is not None:
            request.meta[TICKET_KEY] = tuple(ticket._replace(source=before.source))
        return returned

    def let_pass(
        self, request: Request, decision: Decision, ticket: Ticket, delay: float = 0.0
    ) -> None:
        """Give ``request`` its ticket; send the signal of its verdict; mark the entry used."""
        origin, _, tokens, verdict, entry, override, judgement = decision
        source, own_dont_filter = ticket.source, ticket.own_dont_filter
        valid_for: Tokens | None = tokens
        end = math.inf
        if entry is not None:
            end = entry.end
            if entry.is_unused or source == _WIRE:
                # It may have expired, and decides on its first page all the same.
                end = max(end, self.clock.time() + _LIFE)
                entry.mark_used()
        if override is not None:
            end = min(end, override.until or math.inf)
            if override.policy != "file":
                valid_for = None
        if self.dry_run is not None:
            valid_for, end = valid_for if origin else None, math.inf
        # A plain tuple, in less time.
        request.meta[TICKET_KEY] = request.url, valid_for, end, delay, source, own_dont_filter
        if verdict is not None:
            self._announcer.send_verdict(request, verdict, origin, decision)
        if judgement is not None:
            store_judgement(request, judgement)

    # Back to the queue, and dropped.

    def give_back(self, request: Request, source: Source) -> Request:
        """Return a copy for the scheduler; drop what it would lose, as the crawl closes."""
        if self.admission.is_closing and not (self.stores_requests or source is Source.DIRECT):
            raise self.drop(request, CLOSING.with_origin(origin_of_request(request)))
        stats.count(self.crawler, stats.RETURNED)
        return copy_for_scheduler(request)

    def drop(
        self, request: Request, verdict: Verdict, judgement: Judgement | None = None
    ) -> RobotsTxtDisallowed:
        """Log and count the drop, and ``judgement``; return the exception to raise."""
        self.drops.report(request, verdict, judgement=judgement)
        if judgement is None:
            return RobotsTxtDisallowed(verdict)
        self.decider.usage_judge.report(request, judgement)
        return RobotsUsageDisallowed(verdict, judgement.usage, judgement.results)

    def _drop_disallowed(
        self, request: Request, decision: Decision, source: Source
    ) -> RobotsTxtDisallowed:
        verdict: Any = decision.verdict
        origin = decision.origin
        if decision.entry is not None:
            decision.entry.mark_used()
        if origin is not None:
            self._announcer.send_verdict(request, verdict, origin, decision)
        if verdict.reason is Reason.UNREACHABLE and source is Source.OVERDUE:
            stats.count(self.crawler, stats.DEFERRED_DROPPED)
        error = self.drop(request, verdict.with_origin(origin), decision.judgement)
        error.__cause__ = dns_error_of(verdict, origin)
        return error

    def drop_after_error(self, request: Request, error: Exception) -> None:
        """Log and count an error; raise what drops ``request``, or let it pass in a dry run."""
        is_dropped = self.dry_run is None
        self._logger.error(
            "Error while obeying robots.txt, the request is %s: %s",
            "dropped" if is_dropped else "sent, as this is a dry run",
            printable_request(request),
            exc_info=error,
        )
        stats.count(self.crawler, stats.ERROR_COUNT)
        if is_dropped:
            raise self.drop(request, Verdict(allowed=False, reason=Reason.ERROR)) from error
        store_grant(request, request.url)
