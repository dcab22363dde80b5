"""The hook for scrapy-playwright: it checks the requests that a browser sends for a page."""

from __future__ import annotations

from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.decision.decider import SCHEMES
from scrapy_rep.exceptions import describe
from scrapy_rep.settings import Options
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import open_crawls
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
    return any(_must_abort(crawler, request.url) for crawler in tuple(open_crawls))


def _is_page(request: Any) -> bool:
    """Return whether ``request`` is for the page that Scrapy has requested from the browser."""
    if not request.is_navigation_request():
        return False
    try:
        frame = request.frame
    except Exception:  # noqa: BLE001 - of Playwright, which may not be installed
        return False  # sent by a service worker, or by a window that is just opening
    return frame.parent_frame is None and frame.url in _BLANK


def _must_abort(crawler: Crawler, url: str) -> bool:
    """Return whether ``crawler`` forbids a browser, that of any crawl, to fetch ``url``.

    If the robots.txt of its origin is not known, a lookup begins for later requests.
    """
    admission = Admission.of(crawler)
    if admission is None or not url.startswith(SCHEMES):
        return False  # no request is sent for the URL (data:, blob:)
    logger = LimitedLogger(__name__, crawler)
    dry_run = Options.of(crawler).dry_run
    try:
        request = Request(url)
        decision = admission.decider.known_decision(request)
        if decision is None:
            return False
        origin, verdict, stat = decision.origin, decision.verdict, stats.SUBRESOURCE_FORBIDDEN
        if verdict is None:
            if admission.unknown.lookups.has_room:
                admission.decider.start_lookup(request, lambda _: None)
            stat, why = stats.SUBRESOURCE_UNKNOWN, "robots.txt is not known yet"
        elif not verdict.allowed:
            why = describe(verdict.with_origin(origin))
        elif origin is not None and admission.hosts.pause_under_way(origin.host):
            why = "its host has answered 429 or 503"
        else:
            if decision.entry is not None:
                decision.entry.mark_used()
            return False
        stats.count(crawler, stat)
        what = "Fetched" if dry_run else "Not fetched"
        logger.debug("%s by a browser: %s: %s", what, printable_request(request), why)
    except Exception:
        logger.exception(
            "Error while obeying robots.txt, the browser is not to fetch %a",
            without_credentials(url),
        )
        stats.count(crawler, stats.ERROR_COUNT)
    return not dry_run
