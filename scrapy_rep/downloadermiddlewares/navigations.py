"""A hook for scrapy-playwright that checks each request of a page, and each redirect."""

from __future__ import annotations

import logging
from typing import Any, Final

from scrapy import Request

from scrapy_rep.downloadermiddlewares.guard import REFUSED_KEY
from scrapy_rep.downloadermiddlewares.recheck import Recheck
from scrapy_rep.downloadermiddlewares.subresources import Subresources
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.per_crawl import parts_of_all_crawls
from scrapy_rep.utils.text import printable

Answer = tuple[str, dict[str, Any]]

logger: Final = logging.getLogger(__name__)

_EVERYTHING: Final = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}
_CONTINUE: Final[Answer] = ("Fetch.continueRequest", {})
_REFUSE: Final[Answer] = ("Fetch.failRequest", {"errorReason": "BlockedByClient"})


async def keep_from_disallowed(page: Any, request: Request) -> None:
    """Prevent a page of Chromium from sending requests to disallowed URLs, also after redirects.

    With ``meta["playwright_page_init_callback"] = "scrapy_rep.keep_from_disallowed"`` each request
    of the page is checked, as with ``abort_disallowed``. Redirects, which Playwright does not
    report, are checked, too. If the page itself is redirected to an unknown origin, it waits for
    the robots.txt of that origin. If it is redirected to a disallowed URL, its request is dropped
    with RobotsTxtDisallowed. This requires a protocol that only Chromium supports. A page that
    cannot be checked is closed, and its request fails.
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
        url = event["request"]["url"]
        if event["resourceType"] != "Document" or event["frameId"] != self._frame:
            return _REFUSE if self._aborts(url) else _CONTINUE
        if not self._begun:  # the first request of the page, which was checked before
            self._begun = True
            return _CONTINUE
        verdict = await self._refusal_of(url)
        if verdict is None:
            return _CONTINUE
        self._request.meta[REFUSED_KEY] = (verdict, url)
        return _REFUSE

    def _aborts(self, url: str) -> bool:
        return any(
            crawl.decide_to_abort(url, self._request) for crawl in parts_of_all_crawls(Subresources)
        )

    async def _refusal_of(self, url: str) -> Verdict | None:
        try:
            hop = Request(url, headers=self._request.headers, meta=self._request.meta)
        except ValueError:  # a URL for which the browser sends no request (data:, blob:)
            return None
        for recheck in parts_of_all_crawls(Recheck):
            verdict = await recheck.refusal_of(hop)
            if verdict is not None:
                return verdict
        return None
