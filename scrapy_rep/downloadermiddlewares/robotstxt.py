"""The downloader middleware that lets no disallowed request out."""

from __future__ import annotations

import logging
import random
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import uuid4

from scrapy import signals
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.cache.cache import Keeper
from scrapy_rep.cache.shared import shared
from scrapy_rep.decision.overriding import Overriding
from scrapy_rep.decision.product_tokens import ProductTokens
from scrapy_rep.decision.spellings import as_parsed, rewriter, without_dots
from scrapy_rep.downloadermiddlewares.dryrun import DryRun
from scrapy_rep.downloadermiddlewares.startup import check_components, log_start
from scrapy_rep.exceptions import CrawlClosingError, RobotsTxtDisallowed, explain
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.protocol.origin import ROBOTSTXT, split_url, target_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robotparser import RobotParser
from scrapy_rep.robots import Robots
from scrapy_rep.scheduler.delays import Politeness
from scrapy_rep.scheduler.gate import FROM_KEY, FROM_QUEUE, FROM_SCHEDULER, SCHEMES, Gate
from scrapy_rep.settings import Options
from scrapy_rep.signals import META_KEY, Announcer, as_meta
from scrapy_rep.utils.concurrency import sleep, within
from scrapy_rep.utils.scrapy_internals import ClosingWatch, beside_the_pages
from scrapy_rep.utils.text import show

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.parser import RobotsTxt

logger = logging.getLogger(__name__)

_LEASE_SLACK: Final = 5.0
"""Seconds that a lease lasts beyond REP_TIMEOUT, in which the record is stored."""
_CLOSING_TIME: Final = 5.0
"""Seconds for what is still to be told to the store when the crawl is over."""
_RETURNED: Final = "_robotstxt_returned"
"""Meta key of a request that was given back: its own dont_filter and priority."""
_MAX_WAITING: Final = 16
"""How many requests of a scheduler wait here where CONCURRENT_REQUESTS sets no limit."""
_LESS: Final = 1_000
"""By how much the priority of a request is lower that was given back as too many waited."""
_PAUSE: Final = 1.0
_SHORT_PAUSE: Final = 0.05
"""Seconds that it waits before it is given back again: the scheduler has nothing better."""

_ROBOTS_PARSED: Final = getattr(signals, "robots_parsed", None)
"""The built-in's signal, which came with Scrapy 2.18."""
_REASON_COUNTS: Final = {
    reason: stats.FORBIDDEN_REASON_COUNT.format(reason=reason.value) for reason in Reason
}
_CLOSING: Final = Verdict(allowed=False, reason=Reason.CLOSING)
_NO_ORIGIN: Final = Verdict(allowed=False, reason=Reason.NO_ORIGIN)
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
        self._rewritten = rewriter(crawler.settings)
        self._tokens = ProductTokens(crawler, options)
        self._announcer = Announcer(crawler)
        self._overriding = Overriding(crawler, options, self._announcer)
        self._has_overrides = bool(self._overriding.overrides)
        self._shared = shared(options)
        self._keeper = Keeper(
            policy=options.policy,
            entries=self._shared.entries,
            store=self._shared.store,
            fetch=Fetcher(crawler, options).fetch,
            parsed=self._parsed,
            learned=self._announcer.learned,
            count=partial(stats.count, crawler),
            clock=time,
            timer=monotonic,
            jitter=random.random,
            concurrent_fetches=options.concurrent_fetches,
            name=uuid4().hex,
            lease=options.timeout + _LEASE_SLACK,
        )
        polite = options.crawl_delay and not options.dry_run
        self._politeness = Politeness(crawler, options) if polite else None
        self._dry_run = DryRun(crawler, self._keeper, self._announcer) if options.dry_run else None
        self.robots = Robots(
            crawler, self._keeper, self._tokens, self._overriding.overrides, self._spellings
        )
        """What robots.txt says, for others than requests."""
        self.gate = Gate(
            crawler=crawler,
            keeper=self._keeper,
            tokens=self._tokens,
            options=options,
            politeness=self._politeness,
            overriding=self._overriding,
        )
        """What the queue asks before it lets a request go."""
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._max_waiting = limit if limit > 0 else _MAX_WAITING
        self._waiting = 0
        self._pausing = 0
        self._watch = ClosingWatch(crawler, self._close, self.gate.look)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises SettingsError, and NotConfigured without ROBOTSTXT_OBEY."""
        return cls(crawler)

    def process_request(  # noqa: C901, PLR0911, PLR0912 - the hot path: calls would cost
        self, request: Request
    ) -> Awaitable[Request | None] | None:
        """Let ``request`` pass, or raise RobotsTxtDisallowed.

        An awaitable comes back only where the origin isn't known yet, or its answer has expired,
        and in a dry run.
        """
        url, meta = request.url, request.meta
        if meta.get("dont_obey_robotstxt"):
            # It may come from the page before.
            meta.pop(META_KEY, None)
            return None
        source = meta.pop(FROM_KEY, None)
        returned = meta.pop(_RETURNED, None)
        put_off = False
        if returned is not None:
            put_off = request.priority != returned[1]
            request.dont_filter, request.priority = returned
        if not url.startswith(SCHEMES):
            url = as_parsed(url)
            if not url.lower().startswith(SCHEMES):
                meta.pop(META_KEY, None)
                return None
        origin = entry = verdict = None
        try:
            origin, target = split_url(url)
            tokens = self._tokens.of(request)
            if self._has_overrides:
                verdict, tokens = self._overriding.decide(
                    request, origin, target, tokens, again=returned is not None
                )
            if verdict is None:
                entry = self._keeper.known(origin)
                verdict = None if entry is None else entry.verdict(target, tokens)
            if verdict is None:
                if target == ROBOTSTXT:
                    return None
                if returned is None or not self._keeper.closing:
                    if source == FROM_SCHEDULER and self._waiting >= self._max_waiting:
                        self.gate.find_out(origin, request)
                        return self._put_off(request, again=put_off)
                    return self._wait(request, origin, target, tokens, source)
                # It was no request of the scheduler's: who waits for it must not wait for ever.
                verdict = _CLOSING
            elif entry is not None and verdict.allowed and ("/." in target or "%" in target):
                for spelling in self._spellings(request, target):
                    verdict = entry.verdict(spelling, tokens) or verdict
                    if not verdict.allowed:
                        break
            if self._dry_run is not None:
                return self._dry_run.tell(request, verdict, origin)
            if not verdict.allowed and self._keeps(verdict, origin, source):
                return _now(self._given_back(request))
            self._announcer.verdict(request, verdict, origin)
        except ValueError as error:
            if origin is not None:
                self._fail(request, error)
                return None
            verdict = _NO_ORIGIN
            if self._dry_run is not None:
                return None
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
            return None
        if not verdict.allowed:
            self._drop(request, verdict, origin, source)
        if entry is not None and self._politeness is not None and origin is not None:
            self._politeness.obey(request, origin, entry.delay(tokens))
        return None

    def _spellings(self, request: Request, target: str) -> set[str]:
        """Return what else may become of the target of ``request`` on its way."""
        url, parsed = request.url, as_parsed(request.url)
        targets = {target}
        if parsed is not url:
            targets.add(target_of(parsed))
        if self._rewritten is not None and not request.meta.get("verbatim_url"):
            rewritten = self._rewritten(url)
            if rewritten != url:
                targets.add(target_of(rewritten))
        targets |= {without_dots(spelling) for spelling in targets if "/." in spelling}
        return targets - {target}

    async def _wait(
        self,
        request: Request,
        origin: Origin,
        target: str,
        tokens: tuple[str, ...],
        source: str | None,
    ) -> Request | None:
        stats.count(self._crawler, stats.WAITED)
        self._waiting += 1
        try:
            with beside_the_pages(self._crawler):
                verdict = await self._keeper.verdict(origin, target, tokens, request)
                for spelling in self._spellings(request, target) if verdict.allowed else ():
                    verdict = await self._keeper.verdict(origin, spelling, tokens, request)
                    if not verdict.allowed:
                        break
            if self._dry_run is not None:
                await self._dry_run.tell(request, verdict, origin)
                return None
            if self._keeps(verdict, origin, source):
                return self._given_back(request)
            self._announcer.verdict(request, verdict, origin)
        except CrawlClosingError:
            return self._return(request, origin)
        except CancelledError:  # an Exception in Twisted
            raise
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
            return None
        finally:
            self._waiting -= 1
        if not verdict.allowed:
            self._drop(request, verdict, origin, source)
        entry: Entry | None = self._keeper.known(origin)
        if entry is not None and self._politeness is not None:
            self._politeness.obey(request, origin, entry.delay(tokens))
        return None

    def _keeps(self, verdict: Verdict, origin: Origin, source: str | None) -> bool:
        """Return whether a request waits in our queue, though it has left it just now."""
        return (
            verdict.reason is Reason.UNREACHABLE
            and source == FROM_QUEUE
            and self.gate.keeps(origin)
        )

    async def _put_off(self, request: Request, *, again: bool) -> Request:
        """Give ``request`` back to its scheduler, as too many wait already.

        It gets a lower priority, so that those of known origins come first. When it comes back at
        once the scheduler has nothing better; then it waits before it goes, so that the two don't
        keep each other busy. Up to half of CONCURRENT_REQUESTS wait longer, the others shortly.
        """
        stats.count(self._crawler, stats.PUT_OFF)
        if again:
            long = 2 * self._pausing < self._max_waiting - 1
            self._pausing += long
            try:
                await sleep(_PAUSE if long else _SHORT_PAUSE)
            finally:
                self._pausing -= long
        returned = self._given_back(request)
        returned.priority -= _LESS
        return returned

    def _return(self, request: Request, origin: Origin) -> Request:
        """Give ``request`` back to the scheduler where that keeps it, else drop it."""
        if not self._scheduler_keeps:
            self._drop(request, _CLOSING, origin)
        logger.debug("Not known before the crawl closed, back to the scheduler: %s", show(request))
        return self._given_back(request)

    def _given_back(self, request: Request) -> Request:
        """Return what the engine is to give back to the scheduler in place of ``request``."""
        stats.count(self._crawler, stats.RETURNED)
        # It is in the dupefilter already.
        meta = {**request.meta, _RETURNED: [request.dont_filter, request.priority]}
        return request.replace(dont_filter=True, meta=meta)

    def _fail(self, request: Request, error: Exception) -> None:
        """Drop ``request`` because of an error of ours: nothing else is safe."""
        logger.error(
            "Error while obeying robots.txt, the request is %s: %s",
            "dropped" if self._dry_run is None else "sent, as this is a dry run",
            show(request),
            exc_info=error,
        )
        stats.count(self._crawler, stats.ERROR_COUNT)
        if self._dry_run is None:
            self._drop(request, _ERROR, None)

    def _drop(
        self, request: Request, verdict: Verdict, origin: Origin | None, source: str | None = None
    ) -> NoReturn:
        verdict = verdict.of(origin)
        request.meta[META_KEY] = as_meta(verdict)
        stats.count(self._crawler, stats.FORBIDDEN)
        stats.count(self._crawler, _REASON_COUNTS[verdict.reason])
        if (
            verdict.reason is Reason.UNREACHABLE
            and source == FROM_QUEUE
            and self._options.unreachable_action == "defer"
        ):
            stats.count(self._crawler, stats.DEFERRED_DROPPED)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "Forbidden by robots.txt: %(request)s: %(verdict)s",
                {"request": show(request), "verdict": explain(verdict)},
                extra={"spider": self._crawler.spider},
            )
        self._announcer.forbidden(request, verdict, dropped=True)
        raise RobotsTxtDisallowed(verdict)

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
        log_start(self._crawler, self._options, self._tokens.of_crawl())
        self._overriding.warn_of_expired()

    async def _spider_closed(self) -> None:
        self._watch.stop()
        self._close()
        try:
            await within(_CLOSING_TIME, self._keeper.finish())
        except TimeoutError:
            logger.warning("Some records of robots.txt may not have been stored")
        finally:
            await self._shared.leave(self)

    def _close(self) -> None:
        self.gate.close()
        self._keeper.close()

    @staticmethod
    def _scheduled(request: Request) -> None:
        # Only what comes from a scheduler may be given back to it.
        request.meta[FROM_KEY] = FROM_SCHEDULER


async def _now(request: Request) -> Request:
    return request
