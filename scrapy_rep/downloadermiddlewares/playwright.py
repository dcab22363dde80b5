"""Hooks for scrapy-playwright: they check the requests that a browser sends for a page."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.lookup import log_lookup_error
from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.entry import Entry
from scrapy_rep.decision.decider import SCHEMES, Decider
from scrapy_rep.downloadermiddlewares.decide_again import DecideAgain
from scrapy_rep.exceptions import describe
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.settings import Options
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import parts_of_all_crawls
from scrapy_rep.utils.text import printable, printable_request, without_credentials

Answer = tuple[str, dict[str, Any]]

logger: Final = LimitedLogger(__name__)

_BLANK: Final = {"", "about:blank"}
"""URLs of a frame that has loaded nothing yet."""
_EVERYTHING: Final = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}
_CONTINUE: Final[Answer] = ("Fetch.continueRequest", {})
_REFUSE: Final[Answer] = ("Fetch.failRequest", {"errorReason": "BlockedByClient"})
_refused_redirects: Final[WeakKeyDictionary[Request, tuple[Verdict, str]]] = WeakKeyDictionary()
"""The verdict and the URL of the redirect that was not followed, for the request of a page."""


def pop_refused_redirect(request: Request) -> tuple[Verdict, str] | None:
    """Return verdict and URL of a redirect that a browser didn't follow, once; else None."""
    return _refused_redirects.pop(request, None) if _refused_redirects else None


def abort_disallowed(request: Any) -> bool:
    """Return whether robots.txt disallows ``request``, which a browser is about to send.

    With ``PLAYWRIGHT_ABORT_REQUEST = "scrapy_rep.abort_disallowed"`` scrapy-playwright calls this
    function before each request of a page. The page itself was checked before. If robots.txt is not
    known yet, or after an error, the result is true; in a dry run it is false. If several crawls
    run in one process, the request is checked for each crawl, because it is not known which of them
    has opened the page.
    """
    return not _is_page(request) and _must_abort(request.url)


def _must_abort(url: str, page: Request | None = None) -> bool:
    return any(crawl.must_abort(url, page) for crawl in parts_of_all_crawls(Subresources))


def _is_page(request: Any) -> bool:
    """Return whether ``request`` is for the page that Scrapy has requested from the browser."""
    if not request.is_navigation_request():
        return False
    try:
        frame = request.frame
    except Exception:  # noqa: BLE001 - of Playwright, which may not be installed
        return False  # sent by a service worker, or by a window that is just opening
    return frame.parent_frame is None and frame.url in _BLANK


class Subresources:
    """Decides for one crawl which requests of browsers, also those of other crawls, are sent."""

    def __init__(self, crawler: Crawler, decider: Decider, cache: Cache, options: Options) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._decider = decider
        self._cache = cache
        self._dry_run = options.dry_run

    def must_abort(self, url: str, page: Request | None = None) -> bool:
        """Return whether ``url`` must not be fetched for ``page``, without waiting.

        If the robots.txt of its origin is not known, the result is true, and a lookup begins for
        later requests. Both this and what is disallowed is logged and counted. After an error the
        result is true. In a dry run it is false.
        """
        if not url.startswith(SCHEMES):
            return False  # no request is sent for the URL (data:, blob:)
        try:
            request = Request(url, headers=None if page is None else page.headers)
            decision = self._decider.known_decision(request)
            if decision is None or (decision.verdict and decision.verdict.allowed):
                return False
            if decision.verdict is None:
                self._look_up(request, origin_of(url))
                stat = stats.SUBRESOURCE_UNKNOWN
                why = "robots.txt is not known yet"
            else:
                stat = stats.SUBRESOURCE_FORBIDDEN
                why = describe(decision.verdict.with_origin(decision.origin))
            stats.count(self._crawler, stat)
            self._logger.debug(
                "%s by a browser: %s: %s",
                "Fetched" if self._dry_run else "Not fetched",
                printable_request(request),
                why,
            )
        except Exception:
            self._logger.exception(
                "Error while obeying robots.txt, the browser is not to fetch %a",
                without_credentials(url),
            )
            stats.count(self._crawler, stats.ERROR_COUNT)
        return not self._dry_run

    def _look_up(self, request: Request, origin: Origin) -> None:
        """Begin a lookup, if there is room for it now and the crawl isn't closing."""

        def done(entry: Entry | None, error: Exception) -> None:
            if entry is None:
                log_lookup_error(self._crawler, origin, error)

        if self._cache.limit.has_room and not self._cache.closing:
            self._decider.start_lookup(request, done)


async def keep_from_disallowed(page: Any, request: Request) -> None:
    """Prevent a page of Chromium from sending requests to disallowed URLs, also after redirects.

    With ``meta["playwright_page_init_callback"] = "scrapy_rep.keep_from_disallowed"`` each request
    of the page is checked, as with ``abort_disallowed``. Redirects, which Playwright does not
    report, are checked, too. If the page itself is redirected to an unknown origin, it waits for
    the robots.txt of that origin. If it is redirected to a disallowed URL, its request is dropped
    with RobotsTxtDisallowed. This requires a protocol that only Chromium supports. A page that
    cannot be checked is closed, and its request fails. With ``dont_obey_robotstxt`` in the meta of
    ``request`` nothing is checked.
    """
    if request.meta.get("dont_obey_robotstxt"):
        return
    try:
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        watch = _Watch(session, request, tree["frameTree"]["frame"]["id"])
        session.on("Fetch.requestPaused", watch.request_paused)
        await session.send("Fetch.enable", _EVERYTHING)
    except Exception:
        await page.close()
        raise


class _Watch:
    """Decides on each request that Chromium pauses in the session of one page."""

    def __init__(self, session: Any, request: Request, frame: str) -> None:
        self._session = session
        self._request = request
        self._frame = frame
        """The identifier of the main frame, which has the page itself, not a part of it."""
        self._begun = False
        self._tasks = Background()

    def request_paused(self, event: dict[str, Any]) -> None:
        self._tasks.start(self._continue_or_refuse(event))

    async def _continue_or_refuse(self, event: dict[str, Any]) -> None:
        """Answer Chromium; after an error the request is refused. No error is raised."""
        try:
            method, arguments = await self._decide(event)
        except Exception:
            logger.exception("Error while obeying robots.txt, a browser's request is not sent")
            method, arguments = _REFUSE
        try:
            await self._session.send(method, {"requestId": event["requestId"], **arguments})
        except Exception as error:  # noqa: BLE001 - of Playwright: the page was closed
            logger.debug("A browser was not answered: %s", printable(str(error)))

    async def _decide(self, event: dict[str, Any]) -> Answer:
        """Return the answer to Chromium; keep a refused redirect for ``pop_refused_redirect``."""
        url = event["request"]["url"]
        if event["resourceType"] != "Document" or event["frameId"] != self._frame:
            return _REFUSE if _must_abort(url, self._request) else _CONTINUE
        if not self._begun:  # the first request of the page, which was checked before
            self._begun = True
            return _CONTINUE
        verdict = await self._refusal_of(url)
        if verdict is None:
            return _CONTINUE
        _refused_redirects[self._request] = verdict, url
        return _REFUSE

    async def _refusal_of(self, url: str) -> Verdict | None:
        """Return the first refusal by a crawl, after the lookup; None if the page may be sent."""
        try:
            hop = Request(url, headers=self._request.headers, meta=self._request.meta)
        except ValueError:  # a URL for which the browser sends no request (data:, blob:)
            return None
        for again in parts_of_all_crawls(DecideAgain):
            verdict = await again.refusal_of(hop)
            if verdict is not None:
                return verdict
        return None
