"""The hook for scrapy-playwright: it checks the requests that a browser sends for a page."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.cache.cache import Cache
from scrapy_rep.decision.decider import SCHEMES, Decider
from scrapy_rep.exceptions import describe
from scrapy_rep.settings import Options
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request, without_credentials

_BLANK: Final = {"", "about:blank"}
"""URLs of a frame that has loaded nothing yet."""


def abort_disallowed(request: Any) -> bool:
    """Return whether robots.txt disallows ``request``, which a browser is about to send.

    With ``PLAYWRIGHT_ABORT_REQUEST = "scrapy_rep.abort_disallowed"`` scrapy-playwright calls this
    function before each request of a page. The page itself was checked before. If robots.txt is not
    known yet, or after an error, the result is true; in a dry run it is false. If several crawls
    run in one process, the request is checked for each crawl, because it is not known which of them
    has opened the page.
    """
    if _is_page(request):
        return False
    return any(crawl.must_abort(request.url) for crawl in tuple(open_crawls))


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

    def must_abort(self, url: str) -> bool:
        """Return whether ``url`` must not be fetched for a page, as ``abort_disallowed`` does.

        If the robots.txt of its origin is not known, a lookup begins for later requests.
        """
        if not url.startswith(SCHEMES):
            return False  # no request is sent for the URL (data:, blob:)
        try:
            request = Request(url)
            decision = self._decider.known_decision(request)
            if decision is None or (decision.verdict and decision.verdict.allowed):
                return False
            if decision.verdict is None:
                if self._cache.lookups.has_room:
                    self._decider.start_lookup(request, lambda _: None)
                stat, why = stats.SUBRESOURCE_UNKNOWN, "robots.txt is not known yet"
            else:
                why = describe(decision.verdict.with_origin(decision.origin))
                stat = stats.SUBRESOURCE_FORBIDDEN
            stats.count(self._crawler, stat)
            what = "Fetched" if self._dry_run else "Not fetched"
            self._logger.debug("%s by a browser: %s: %s", what, printable_request(request), why)
        except Exception:
            self._logger.exception(
                "Error while obeying robots.txt, the browser is not to fetch %a",
                without_credentials(url),
            )
            stats.count(self._crawler, stats.ERROR_COUNT)
        return not self._dry_run


open_crawls: Final[WeakSet[Subresources]] = WeakSet()
"""Those of the crawls of this process that have begun and not ended."""
