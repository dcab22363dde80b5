"""The downloader middleware that lets no disallowed request out."""

from __future__ import annotations

import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from scrapy import signals
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.shared import shared
from scrapy_rep.decision.decider import Decider
from scrapy_rep.decision.usage import note
from scrapy_rep.downloadermiddlewares.dryrun import DryRun
from scrapy_rep.downloadermiddlewares.events import Events
from scrapy_rep.downloadermiddlewares.guard import DECIDED_KEY, judges
from scrapy_rep.downloadermiddlewares.startup import (
    check_components,
    log_loss,
    log_start,
    read_overrides,
)
from scrapy_rep.downloadermiddlewares.subresources import Subresources
from scrapy_rep.downloadermiddlewares.transitions import TRANSITIONS, Action, Situation
from scrapy_rep.drops import Drops
from scrapy_rep.exceptions import CrawlClosingError, RobotsTxtDisallowed, RobotsUsageDisallowed
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.fetch.transfer import META_KEY as TRANSFER_KEY
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robotparser import RobotParser
from scrapy_rep.robots import Robots
from scrapy_rep.scheduler.delays import Delays
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.source import DIRECT, Note, Source, note_returned, note_source, read_note
from scrapy_rep.scheduler.source import META_KEY as NOTE_KEY
from scrapy_rep.scheduler.turns import Turns
from scrapy_rep.settings import Options
from scrapy_rep.signals import META_KEY, Announcer
from scrapy_rep.stores.registry import outlives_the_process
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import sleep, within
from scrapy_rep.utils.scrapy_internals import ClosingWatch, beside_the_pages

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_rep.decision.decider import Decision
    from scrapy_rep.decision.usage import Judgement
    from scrapy_rep.protocol.parser import RobotsTxt

logger = logging.getLogger(__name__)

_LEASE_SLACK: Final = 5.0
"""Seconds that a lease lasts beyond REP_TIMEOUT, in which the record is stored."""
_CLOSING_TIME: Final = 5.0
"""Seconds for what is still to be told to the store when the crawl is over."""
_MAX_WAITING: Final = 16
"""How many requests of a scheduler wait here where CONCURRENT_REQUESTS sets no limit."""
_LESS: Final = 1_000
"""By how much the priority of a request is lower that was given back as too many waited."""
_PAUSE: Final = 1.0
_SHORT_PAUSE: Final = 0.05
"""Seconds that it waits before it is given back again: the scheduler has nothing better."""
_ROBOTS_PARSED: Final = getattr(signals, "robots_parsed", None)
"""The built-in's signal, which came with Scrapy 2.18."""
_IN_TURN: Final = (Source.QUEUE, Source.OVERDUE)
"""Where requests come from that have waited for their turn already, if the queue does so."""
_CLOSING: Final = Verdict(allowed=False, reason=Reason.CLOSING)
_ERROR: Final = Verdict(allowed=False, reason=Reason.ERROR)


class RobotsTxtMiddleware:
    """Drops every request that the robots.txt of its origin disallows."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._options = options = Options.from_settings(crawler.settings)
        check_components(crawler)
        self._crawler = crawler
        # Scrapy's own scheduler forgets everything at the end of a crawl without a JOBDIR.
        self._scheduler_keeps = bool(crawler.settings.get("JOBDIR")) or not issubclass(
            load_object(crawler.settings["SCHEDULER"]), Scheduler
        )
        clock = Clock()
        overrides = read_overrides(options, clock)
        self._announcer = Announcer(crawler)
        self._drops = Drops(crawler, self._announcer, is_interactive=options.interactive)
        self._events = Events(crawler, self._announcer, overrides)
        self._shared = shared(options)
        self._cache = Cache(
            policy=options.policy,
            entries=self._shared.entries,
            store=self._shared.store,
            fetch=Fetcher(crawler, options).fetch,
            parsed=self._parsed,
            learned=self._announcer.learned,
            learned_tdmrep=self._announcer.learned_tdmrep,
            count=partial(stats.count, crawler),
            clock=clock,
            jitter=random.random,
            concurrent_fetches=options.concurrent_fetches,
            name=uuid4().hex,
            lease=options.timeout + _LEASE_SLACK,
        )
        self.decider = Decider(crawler, options, self._cache, overrides)
        """What it decides by."""
        polite = options.crawl_delay and not options.dry_run
        reserves = polite and outlives_the_process(options.store)
        self._delays = Delays(crawler, options, reserved=reserves, clock=clock) if polite else None
        self._turns = (
            Turns(crawler, self._shared.store, self.decider.known, self._delays, clock)
            if self._delays is not None and reserves
            else None
        )
        self._dry_run = (
            DryRun(crawler, options, self._cache, self._announcer) if options.dry_run else None
        )
        self._looks_closer = options.dry_run or bool(overrides)
        self.robots = Robots(crawler, self._cache, self.decider)
        """What robots.txt says, for others than requests."""
        self.gate = Gate(
            crawler=crawler,
            cache=self._cache,
            decider=self.decider,
            options=options,
            delays=self._delays,
            turns=self._turns,
            clock=clock,
        )
        """What the queue asks before it lets a request go."""
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._max_waiting = limit if limit > 0 else _MAX_WAITING
        self._waiting = 0
        self._pausing = 0
        self._watch = ClosingWatch(crawler, self._close, self.gate.idle.look)
        self._subresources = Subresources(crawler, self.decider, self._cache, options)
        judges.put(crawler, self)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises SettingsError, and NotConfigured without ROBOTSTXT_OBEY."""
        return cls(crawler)

    def process_request(
        self, request: Request, *, in_turn: bool = False
    ) -> Awaitable[Request | None] | None:
        """Let ``request`` pass, or raise RobotsTxtDisallowed.

        An awaitable comes back only where the origin isn't known yet, or its answer has expired,
        where the origin asks for a delay, and in a dry run. ``in_turn`` tells that the request has
        waited for that delay, or is to wait for none.
        """
        meta = request.meta
        noted = meta.pop(NOTE_KEY, None)
        if meta.get("dont_obey_robotstxt"):
            if TRANSFER_KEY not in meta:
                self._drops.exempt()
                meta[DECIDED_KEY] = request.url, None
            return self._pass_ungoverned(request)
        try:
            note = DIRECT if noted is None else read_note(request, noted)
            decision = self.decider.known(request)
            if decision is None:
                return self._pass_ungoverned(request)
            verdict = decision.verdict
            entry = decision.entry
            waits = self._turns is not None and entry is not None and entry.asks_for_delay
            if verdict is None or not verdict.allowed or self._looks_closer or waits:
                in_turn = in_turn or (note.source in _IN_TURN and self.gate.gives_turns)
                return self._act(request, decision, note, in_turn=in_turn)
            self._pass(request, decision, verdict)
        except RobotsTxtDisallowed:
            raise
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
        return None

    def _act(
        self, request: Request, decision: Decision, note: Note, *, in_turn: bool
    ) -> Awaitable[Request | None] | None:
        """Do what the table says of a request that may not simply pass."""
        self._events.overridden(request, decision.override, again=note.returned)
        situation = self._situation(request, decision, note)
        action = TRANSITIONS[situation][note.source]
        if action is Action.WAIT:
            return self._wait(request, decision, note)
        if action is Action.PUT_OFF and decision.origin is not None:
            self.gate.find_out(decision.origin, request)
            return self._put_off(request, note)
        if self._dry_run is not None:
            request.meta[DECIDED_KEY] = request.url, decision.tokens
            return self._dry_run.tell(request, decision)
        seconds = 0.0 if in_turn else self._seconds_before(request, decision)
        if seconds:
            return self._take_turn(request, decision, note, seconds)
        returned = self._settle(request, decision, note, situation)
        return None if returned is None else _now(returned)

    def _situation(self, request: Request, decision: Decision, note: Note) -> Situation:
        verdict = decision.verdict
        if verdict is None:
            if self._cache.closing:
                return Situation.CLOSING_AGAIN if note.returned else Situation.CLOSING
            is_crowded = self._waiting >= self._max_waiting
            return Situation.CROWDED if is_crowded else Situation.UNKNOWN
        if verdict.allowed:
            return Situation.ALLOWED
        if verdict.reason is Reason.UNREACHABLE and self.gate.defers(
            note.source, request, decision.entry
        ):
            return Situation.DEFERRED
        return Situation.FORBIDDEN

    def _settle(
        self, request: Request, decision: Decision, note: Note, situation: Situation
    ) -> Request | None:
        """Let ``request`` pass, give it back or drop it; nothing is left to wait for."""
        action = TRANSITIONS[situation][note.source]
        if action is Action.GIVE_BACK or (
            action is Action.GIVE_BACK_IF_KEPT and self._scheduler_keeps
        ):
            return self._given_back(request)
        verdict = decision.verdict
        if verdict is None:
            raise self._dropped(request, _CLOSING.of(decision.origin))
        if action is Action.PASS:
            self._pass(request, decision, verdict)
            return None
        if decision.origin is not None:
            self._announcer.verdict(request, verdict, decision.origin, decision)
        if verdict.reason is Reason.UNREACHABLE and note.source is Source.OVERDUE:
            stats.count(self._crawler, stats.DEFERRED_DROPPED)
        dropped = self._dropped(request, verdict.of(decision.origin))
        if decision.usage is not None:
            raise self._unwelcome(request, dropped.verdict, decision.usage)
        raise dropped

    async def _wait(self, request: Request, decision: Decision, note: Note) -> Request | None:
        """Do what the table says when the verdict on ``request`` is known."""
        # Whoever waits was let in before the close, whatever it was given back for until then.
        situation = Situation.CLOSING
        try:
            while True:
                has_tried = decision.verdict is not None
                decision = await self._found_out(request, decision)
                if self._dry_run is not None:
                    request.meta[DECIDED_KEY] = request.url, decision.tokens
                    await self._dry_run.tell(request, decision)
                    return None
                situation = self._situation(request, decision, note)
                if has_tried or TRANSITIONS[situation][note.source] is not Action.WAIT:
                    break
        except CrawlClosingError:
            if self._dry_run is not None:
                return None
        except CancelledError:  # an Exception in Twisted
            raise
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
            return None
        seconds = self._seconds_before(request, decision)
        if seconds:
            return await self._take_turn(request, decision, note, seconds)
        return self._settle(request, decision, note, situation)

    def _seconds_before(self, request: Request, decision: Decision) -> float:
        """Return the delay that the fleet keeps before ``request``."""
        return 0.0 if self._turns is None else self._turns.seconds_before(request, decision)

    async def _take_turn(
        self, request: Request, decision: Decision, note: Note, seconds: float
    ) -> Request | None:
        """Let ``request`` pass when it is this worker's turn."""
        situation = Situation.ALLOWED
        if self._turns is not None and decision.origin is not None:
            try:
                await self._turns.take(request, decision.origin, seconds)
            except CrawlClosingError:
                situation = Situation.CLOSING_AGAIN if note.returned else Situation.CLOSING
                decision = decision._replace(verdict=None)
        return self._settle(request, decision, note, situation)

    async def _found_out(self, request: Request, decision: Decision) -> Decision:
        stats.count(self._crawler, stats.WAITED)
        self._waiting += 1
        try:
            with beside_the_pages(self._crawler):
                if decision.verdict and decision.entry and decision.origin:
                    await self.gate.next_try(decision.origin, decision.entry, request)
                return await self.decider.find_out(request, decision)
        finally:
            self._waiting -= 1

    async def _put_off(self, request: Request, note: Note) -> Request:
        """Give ``request`` back to its scheduler, as too many wait already.

        It gets a lower priority, so that those of known origins come first. When it comes back at
        once the scheduler has nothing better; then it waits before it goes, so that the two don't
        keep each other busy. Up to half of CONCURRENT_REQUESTS wait longer, the others shortly.
        """
        stats.count(self._crawler, stats.PUT_OFF)
        if note.put_off:
            long = 2 * self._pausing < self._max_waiting - 1
            self._pausing += long
            try:
                await sleep(_PAUSE if long else _SHORT_PAUSE)
            finally:
                self._pausing -= long
        return self._given_back(request, less=_LESS)

    def _given_back(self, request: Request, *, less: int = 0) -> Request:
        """Return what the engine is to give back to the scheduler in place of ``request``."""
        stats.count(self._crawler, stats.RETURNED)
        return note_returned(request, less=less)

    def _pass(self, request: Request, decision: Decision, verdict: Verdict) -> None:
        request.meta[DECIDED_KEY] = request.url, decision.tokens
        self._announcer.verdict(request, verdict, decision.origin, decision)
        if decision.usage is not None:
            note(request, decision.usage)
        entry = decision.entry
        if entry is not None and self._delays is not None and decision.origin is not None:
            self._delays.obey(request, decision.origin, entry.delay(decision.tokens))

    @staticmethod
    def _pass_ungoverned(request: Request) -> None:
        request.meta.pop(META_KEY, None)  # it may come from the page before

    def _fail(self, request: Request, error: Exception) -> None:
        """Drop ``request`` because of an error of ours: nothing else is safe."""
        self._events.failed(request, error, dry_run=self._dry_run is not None)
        if self._dry_run is None:
            raise self._dropped(request, _ERROR) from error
        request.meta[DECIDED_KEY] = request.url, None

    def _dropped(self, request: Request, verdict: Verdict) -> RobotsTxtDisallowed:
        self._drops.add(request, verdict)
        return RobotsTxtDisallowed(verdict)

    def _unwelcome(
        self, request: Request, verdict: Verdict, usage: Judgement
    ) -> RobotsUsageDisallowed:
        note(request, usage)
        self.decider.usage.tell(request, usage)
        return RobotsUsageDisallowed(verdict, usage.usage, usage.results)

    async def _parsed(self, robots: RobotsTxt, request: Request) -> None:
        if _ROBOTS_PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=_ROBOTS_PARSED, robotparser=RobotParser(robots), request=request
            )

    def _spider_opened(self, spider: Spider) -> None:  # noqa: ARG002 - of the signal
        self._shared.join(self)
        self._watch.start()
        if not self.gate.in_use:
            self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        log_start(self._crawler, self._options, self.decider.tokens.of_crawl())
        if self.gate.loses:
            log_loss(self._crawler)
        self._events.expired()

    async def _spider_closed(self) -> None:
        self._watch.stop()
        self._close()
        self._subresources.close()
        self._drops.summarise()
        judges.remove(self._crawler)
        try:
            await within(_CLOSING_TIME, self._cache.finish())
        except TimeoutError:
            logger.warning("Some records of robots.txt may not have been stored")
        finally:
            await self._shared.leave(self)

    def _close(self) -> None:
        deferred = self.gate.close()
        if deferred and not self._scheduler_keeps:
            logger.info(
                "Deferred requests lost, because JOBDIR is not set: %d",
                deferred,
                extra={"spider": self._crawler.spider},
            )
        self._cache.close()

    @staticmethod
    def _scheduled(request: Request) -> None:
        # Only what comes from a scheduler may be given back to it.
        note_source(request, Source.SCHEDULER)


async def _now(request: Request) -> Request:
    return request
