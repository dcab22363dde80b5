"""The downloader middleware that lets no disallowed request out."""

from __future__ import annotations

import logging
import random
from time import monotonic, time
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import uuid4

from scrapy import signals
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.engine import ClosingWatch
from scrapy_rep.exceptions import RobotsTxtDisallowed, explain
from scrapy_rep.fetcher import Fetcher, RobotsTxtFetchMiddleware
from scrapy_rep.keeper import CrawlClosingError, Keeper
from scrapy_rep.protocol import limits
from scrapy_rep.protocol.agents import is_product_token
from scrapy_rep.protocol.matcher import ROBOTSTXT
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robotparser import RobotParser
from scrapy_rep.settings import Options, SettingsError, shown_store, unknown_settings
from scrapy_rep.shared import shared
from scrapy_rep.threads import within
from scrapy_rep.useragent import ProductTokens
from scrapy_rep.wire import as_parsed, rewriter, without_dots

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.parser import RobotsTxt

logger = logging.getLogger(__name__)

_SHOWN_ANYWAY: Final = {"ROBOTSTXT_USER_AGENT", "REP_STORE"}
_LEASE_SLACK: Final = 5.0
"""Seconds that a lease lasts beyond REP_TIMEOUT, in which the record is stored."""
_CLOSING_TIME: Final = 5.0
"""Seconds for what is still to be told to the store when the crawl is over."""
_RETURNED: Final = "_robotstxt_returned"
_SCHEMES: Final = ("http:", "https:", "ftp:")

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
        _check_components(crawler)
        self._crawler = crawler
        # Scrapy's own scheduler forgets everything at the end of a crawl without a JOBDIR.
        self._scheduler_keeps = bool(crawler.settings.get("JOBDIR")) or not issubclass(
            load_object(crawler.settings["SCHEDULER"]), Scheduler
        )
        self._rewritten = rewriter(crawler.settings)
        self._tokens = ProductTokens(crawler, options)
        self._shared = shared(options)
        self._keeper = Keeper(
            policy=options.policy,
            entries=self._shared.entries,
            store=self._shared.store,
            fetch=Fetcher(crawler, options).fetch,
            parsed=self._parsed,
            count=self._count,
            clock=time,
            timer=monotonic,
            jitter=random.random,
            concurrent_fetches=options.concurrent_fetches,
            name=uuid4().hex,
            lease=options.timeout + _LEASE_SLACK,
        )
        self._watch = ClosingWatch(crawler, self._keeper.close)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises SettingsError, and NotConfigured without ROBOTSTXT_OBEY."""
        return cls(crawler)

    def process_request(  # noqa: C901, PLR0912 - the hot path: a call for each step would cost
        self, request: Request
    ) -> Awaitable[Request | None] | None:
        """Let ``request`` pass, or raise RobotsTxtDisallowed.

        An awaitable comes back only where the origin isn't known yet, or its answer has expired.
        """
        url, meta = request.url, request.meta
        if meta.get("dont_obey_robotstxt"):
            return None
        returned = _RETURNED in meta
        if returned:
            request.dont_filter = meta.pop(_RETURNED)
        if not url.startswith(_SCHEMES):
            url = as_parsed(url)
            if not url.lower().startswith(_SCHEMES):
                return None
        origin = None
        try:
            origin = origin_of(url)
            target = target_of(url)
            tokens = self._tokens.of(request)
            entry = self._keeper.known(origin)
            verdict = None if entry is None else entry.verdict(target, tokens)
            if verdict is None:
                if target == ROBOTSTXT:
                    return None
                if not (returned and self._keeper.closing):
                    return self._wait(request, origin, target, tokens)
                # It was no request of the scheduler's: who waits for it must not wait for ever.
                verdict = _CLOSING
            elif entry is not None and verdict.allowed and ("/." in target or "%" in target):
                for spelling in self._spellings(request, target):
                    verdict = entry.verdict(spelling, tokens) or verdict
                    if not verdict.allowed:
                        break
        except ValueError as error:
            if origin is not None:
                self._fail(request, error)
            verdict = _NO_ORIGIN
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
        if not verdict.allowed:
            self._drop(request, verdict, origin)
        return None

    def _spellings(self, request: Request, target: str) -> set[str]:
        """Return what else may become of the target of ``request`` on its way."""
        targets = {target, target_of(as_parsed(request.url))}
        if self._rewritten is not None and not request.meta.get("verbatim_url"):
            targets.add(target_of(self._rewritten(request.url)))
        return (targets | set(map(without_dots, targets))) - {target}

    async def _wait(
        self, request: Request, origin: Origin, target: str, tokens: tuple[str, ...]
    ) -> Request | None:
        self._count(stats.WAITED)
        try:
            verdict = await self._keeper.verdict(origin, target, tokens, request)
            for spelling in self._spellings(request, target) if verdict.allowed else ():
                verdict = await self._keeper.verdict(origin, spelling, tokens, request)
                if not verdict.allowed:
                    break
        except CrawlClosingError:
            return self._return(request, origin)
        except CancelledError:  # an Exception in Twisted
            raise
        except Exception as error:  # noqa: BLE001 - logged there
            self._fail(request, error)
        if not verdict.allowed:
            self._drop(request, verdict, origin)
        return None

    def _return(self, request: Request, origin: Origin) -> Request:
        """Give ``request`` back to the scheduler where that keeps it, else drop it."""
        if not self._scheduler_keeps:
            self._drop(request, _CLOSING, origin)
        self._count(stats.RETURNED)
        logger.debug("Not known before the crawl closed, back to the scheduler: %s", _show(request))
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
        self._count(_REASON_COUNTS[verdict.reason])
        if logger.isEnabledFor(logging.DEBUG):
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
        self._shared.join(self)
        self._watch.start()
        tokens = self._tokens.of_crawl()
        extra = {"spider": spider}
        changed = {k: v for k, v in self._options.changed().items() if k not in _SHOWN_ANYWAY}
        logger.info(
            "Obeying robots.txt as %s, records in %s%s",
            ", ".join(map(ascii, tokens)) or "a crawler without a product token ('*' alone)",
            shown_store(self._options.store),
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

    async def _spider_closed(self) -> None:
        self._watch.stop()
        self._keeper.close()
        try:
            await within(_CLOSING_TIME, self._keeper.finish())
        except TimeoutError:
            logger.warning("Some records of robots.txt may not have been stored")
        finally:
            await self._shared.leave(self)

    def _count(self, name: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(name)


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
