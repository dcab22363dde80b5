"""The downloader middleware that lets no disallowed request out."""

from __future__ import annotations

import logging
import random
from time import time
from typing import TYPE_CHECKING, Final, NoReturn

from scrapy import signals
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from scrapy_rep import stats
from scrapy_rep.engine import ClosingWatch, beside_the_pages
from scrapy_rep.exceptions import RobotsTxtDisallowed, explain
from scrapy_rep.fetcher import Fetcher, RobotsTxtFetchMiddleware
from scrapy_rep.gate import FROM_KEY, FROM_QUEUE, FROM_SCHEDULER, SCHEMES, Gate
from scrapy_rep.keeper import CrawlClosingError, Keeper
from scrapy_rep.politeness import Politeness
from scrapy_rep.protocol import limits
from scrapy_rep.protocol.agents import is_product_token
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robotparser import RobotParser
from scrapy_rep.settings import Options, SettingsError, unknown_settings
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.useragent import ProductTokens

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.parser import RobotsTxt

logger = logging.getLogger(__name__)

_RETURNED: Final = "_robotstxt_returned"
_PUT_OFF: Final = "_robotstxt_put_off"
"""Meta key for the priority of a request that was given back as too many waited."""
_MAX_WAITING: Final = 16
"""How many requests of a scheduler wait here where CONCURRENT_REQUESTS sets no limit."""
_LESS: Final = 1_000
"""By how much the priority of such a request is lower until it passes."""
_PAUSE: Final = 1.0
_SHORT_PAUSE: Final = 0.05
"""Seconds that it waits before it is given back again: the scheduler has nothing better."""

_ROBOTS_PARSED: Final = getattr(signals, "robots_parsed", None)
"""The built-in's signal, which came with Scrapy 2.18."""
_CLOSING: Final = Verdict(allowed=False, reason=Reason.CLOSING)
_ERROR: Final = Verdict(allowed=False, reason=Reason.ERROR)


class RobotsTxtMiddleware:
    """Drops every request that the robots.txt of its origin disallows."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._options = options = Options.from_settings(crawler.settings)
        _check_components(crawler)
        self._crawler = crawler
        # Scrapy's own scheduler forgets everything at the end of a crawl without a JOBDIR.
        self._scheduler_keeps = bool(crawler.settings.get("JOBDIR")) or (
            load_object(crawler.settings["SCHEDULER"]) is not Scheduler
        )
        self._tokens = ProductTokens(crawler, options)
        self._keeper = Keeper(
            policy=options.policy,
            store=MemoryStore(
                max_origins=options.memory_max_origins,
                max_bytes=options.memory_max_bytes,
                max_size=options.max_size,
            ),
            fetch=Fetcher(crawler, options).fetch,
            parsed=self._parsed,
            clock=time,
            jitter=random.random,
            max_origins=options.memory_max_origins,
            max_bytes=options.memory_max_bytes,
            concurrent_fetches=options.concurrent_fetches,
        )
        self._politeness = Politeness(crawler, options) if options.crawl_delay else None
        self.gate = Gate(crawler, self._keeper, self._tokens, options, self._politeness)
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

    def process_request(  # noqa: C901, PLR0911 - every way out of the hot path, in one place
        self, request: Request
    ) -> Awaitable[Request | None] | None:
        """Let ``request`` pass, or raise RobotsTxtDisallowed.

        An awaitable comes back only where the origin isn't known yet, or its answer has expired.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return None
        meta = request.meta
        returned = meta.pop(_RETURNED, None)
        if returned is not None:
            request.dont_filter = returned
        source = meta.pop(FROM_KEY, None)
        put_off = meta.pop(_PUT_OFF, None)
        if put_off is not None:
            request.priority = put_off
        try:
            if not request.url.startswith(SCHEMES):
                return None
            origin, target = origin_of(request.url), target_of(request.url)
            if target == "/robots.txt":  # SPEC S-9
                return None
            tokens = self._tokens.of(request)
            entry = self._keeper.known(origin)
            verdict = None if entry is None else entry.verdict(target, tokens)
            if verdict is None and returned is not None and self._keeper.closing:
                # It was no request of the scheduler's: who waits for it must not wait for ever.
                verdict = _CLOSING
            if verdict is None:
                if source == FROM_SCHEDULER and self._waiting >= self._max_waiting:
                    self.gate.find_out(origin, request)
                    return self._put_off(request, again=put_off is not None)
                return self._wait(request, origin, target, tokens, source)
            if self._keeps(verdict, origin, source):
                return _now(self._given_back(request))
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
        self._decide(request, verdict, origin, tokens, source)
        return None

    async def _wait(
        self,
        request: Request,
        origin: Origin,
        target: str,
        tokens: tuple[str, ...],
        source: str | None,
    ) -> Request | None:
        self._count(stats.WAITED)
        self._waiting += 1
        try:
            with beside_the_pages(self._crawler):
                verdict = await self._keeper.verdict(origin, target, tokens, request)
            if self._keeps(verdict, origin, source):
                return self._given_back(request)
        except CrawlClosingError:
            return self._return(request, origin)
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
        finally:
            self._waiting -= 1
        self._decide(request, verdict, origin, tokens, source)
        return None

    def _decide(
        self,
        request: Request,
        verdict: Verdict,
        origin: Origin,
        tokens: tuple[str, ...],
        source: str | None,
    ) -> None:
        """Drop ``request`` if ``verdict`` says so, else see to it that it isn't sent too soon."""
        if not verdict.allowed:
            if verdict.reason is Reason.UNREACHABLE and source == FROM_QUEUE:
                self._count_deferred()
            self._drop(request, verdict, origin)
        if self._politeness is not None:
            entry = self._keeper.known(origin)
            if entry is not None:
                self._politeness.obey(request, origin, entry.delay(tokens))

    def _keeps(self, verdict: Verdict, origin: Origin, source: str | None) -> bool:
        """Return whether a request waits in our queue, though it has left it just now."""
        return (
            verdict.reason is Reason.UNREACHABLE
            and source == FROM_QUEUE
            and self.gate.keeps(origin)
        )

    def _count_deferred(self) -> None:
        if self._options.unreachable_action == "defer":
            self._count(stats.DEFERRED_DROPPED)

    async def _put_off(self, request: Request, *, again: bool) -> Request:
        """Give ``request`` back to its scheduler, as too many wait already.

        It gets a lower priority, so that those of known origins come first. When it comes back at
        once the scheduler has nothing better; then it waits before it goes, so that the two don't
        keep each other busy. Up to half of CONCURRENT_REQUESTS wait longer, the others shortly.
        """
        self._count(stats.PUT_OFF)
        if again:
            long = 2 * self._pausing < self._max_waiting - 1
            self._pausing += long
            try:
                await _sleep(_PAUSE if long else _SHORT_PAUSE)
            finally:
                self._pausing -= long
        returned = self._given_back(request)
        returned.meta[_PUT_OFF] = request.priority
        returned.priority = request.priority - _LESS
        return returned

    def _return(self, request: Request, origin: Origin) -> Request:
        """Give ``request`` back to the scheduler where that keeps it, else drop it."""
        if not self._scheduler_keeps:
            self._drop(request, _CLOSING, origin)
        logger.debug("Not known before the crawl closed, back to the scheduler: %s", _show(request))
        return self._given_back(request)

    def _given_back(self, request: Request) -> Request:
        """Return what the engine is to give back to the scheduler in place of ``request``."""
        self._count(stats.RETURNED)
        # It is in the dupefilter already.
        meta = {**request.meta, _RETURNED: request.dont_filter}
        return request.replace(dont_filter=True, meta=meta)

    def _fail(self, request: Request, error: Exception) -> NoReturn:
        """Drop ``request`` because of an error of ours: nothing else is safe."""
        logger.error(
            "Error while obeying robots.txt, the request is dropped: %s",
            _show(request),
            exc_info=error,
        )
        self._count(stats.ERROR_COUNT)
        self._drop(request, _ERROR, None)

    def _drop(self, request: Request, verdict: Verdict, origin: Origin | None) -> NoReturn:
        if origin is not None:
            verdict = verdict._replace(robotstxt_url=origin.robotstxt_url)
        self._count(stats.FORBIDDEN)
        self._count(stats.FORBIDDEN_REASON_COUNT.format(reason=verdict.reason.value))
        logger.debug(
            "Forbidden by robots.txt: %(request)s: %(verdict)s",
            {"request": _show(request), "verdict": explain(verdict)},
            extra={"spider": self._crawler.spider},
        )
        raise RobotsTxtDisallowed(verdict)

    async def _parsed(self, robots: RobotsTxt, request: Request) -> None:
        if _ROBOTS_PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=_ROBOTS_PARSED, robotparser=RobotParser(robots), request=request
            )

    def _spider_opened(self, spider: Spider) -> None:
        self._watch.start()
        if not self.gate.in_use:
            self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        tokens = self._tokens.of_crawl()
        extra = {"spider": spider}
        changed = {k: v for k, v in self._options.changed().items() if k != "ROBOTSTXT_USER_AGENT"}
        logger.info(
            "Obeying robots.txt as %s, records in %s%s",
            ", ".join(map(ascii, tokens)) or "a crawler without a product token ('*' alone)",
            self._options.store,
            "".join(f", {name}={value!r}" for name, value in changed.items()),
            extra=extra,
        )
        if not tokens:
            logger.warning(
                "The User-Agent names no crawler, and so only the '*' groups of robots.txt are "
                "obeyed: set ROBOTSTXT_USER_AGENT or a USER_AGENT with a name of your own",
                extra=extra,
            )
        for token in tokens:
            if not is_product_token(token):
                logger.warning(
                    "No robots.txt can name %a by RFC 9309 §2.2.1, which takes letters, '_' and "
                    "'-' alone: set ROBOTSTXT_USER_AGENT",
                    token,
                    extra=extra,
                )
        if self._options.max_size < limits.MAX_BODY_BYTES:
            logger.warning(
                "REP_MAX_SIZE is %d: RFC 9309 §2.5 asks for at least 500 KiB (%d)",
                self._options.max_size,
                limits.MAX_BODY_BYTES,
                extra=extra,
            )
        for name in unknown_settings(self._crawler.settings):
            logger.warning("%s is no setting of this version of scrapy-rep", name, extra=extra)

    def _spider_closed(self) -> None:
        self._watch.stop()
        self._close()

    def _close(self) -> None:
        self.gate.close()
        self._keeper.close()

    @staticmethod
    def _scheduled(request: Request) -> None:
        # Only what comes from a scheduler may be given back to it.
        request.meta[FROM_KEY] = FROM_SCHEDULER

    def _count(self, name: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(name)


async def _now(request: Request) -> Request:
    return request


async def _sleep(seconds: float) -> None:
    over: Deferred[None] = Deferred()
    timer = call_later(seconds, over.callback, None)
    try:
        await maybe_deferred_to_future(over)
    finally:
        timer.cancel()


def _show(request: Request) -> str:
    """Return a request for a log line, without the credentials that its URL may hold."""
    scheme, slashes, rest = request.url.partition("://")
    authority = rest[: min((i for i in map(rest.find, "/?#") if i >= 0), default=len(rest))]
    return f"<{request.method} {scheme}{slashes}{rest[authority.rfind('@') + 1 :]}>"


def _check_components(crawler: Crawler) -> None:
    """Raise SettingsError where the answers of robots.txt would not come to the fetcher."""
    places = crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES")
    components = [load_object(path) for path, place in places.items() if place is not None]
    if not any(
        isinstance(component, type) and issubclass(component, RobotsTxtFetchMiddleware)
        for component in components
    ):
        raise SettingsError(
            "DOWNLOADER_MIDDLEWARES has scrapy_rep.RobotsTxtMiddleware alone: it takes "
            "scrapy_rep.fetcher.RobotsTxtFetchMiddleware at 595 too; "
            "ADDONS = {'scrapy_rep.Addon': 500} sets both"
        )
