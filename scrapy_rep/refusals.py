"""Responses with which sites refuse requests that may be sent. They are counted by site."""

from __future__ import annotations

from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import stats
from scrapy_rep.decision.decider import Decider
from scrapy_rep.drops import Tally
from scrapy_rep.fetch.is_from_origin import intermediary_error, mitigation_in
from scrapy_rep.signals import META_KEY, Announcer, robotstxt_refused
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted, printable, printable_request, short

POSSIBLE_REFUSALS: Final = frozenset({202, 402, 403, 405, 429, 503})
"""Statuses of responses that may refuse a request."""
_REFUSING: Final = frozenset({402, 403, 429})
"""Statuses that refuse a request whatever the headers of the response are."""
_ALLOWED_BUT_REFUSED: Final = "Allowed by robots.txt, but refused by the site: %s: %s"
_ONLY_REFUSED: Final = "Refused by the site: %s: %s"
_PRICE: Final = "crawler-price"
"""Header with the price of a page, with status 402 (Cloudflare's pay per crawl)."""


class Refusals:
    """Counts and announces the responses that refuse an allowed request."""

    def __init__(self, crawler: Crawler, decider: Decider, announcer: Announcer) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._decider = decider
        self._announcer = announcer
        self._sites = Tally()

    def report(self, request: Request, response: Response) -> None:
        """Count and announce ``response``, one of POSSIBLE_REFUSALS, if it refuses ``request``.

        It does if it has status 402, 403 or 429, or a header of a bot protection, ``request`` was
        allowed, and neither a cache nor a proxy has answered in place of the site. The first
        refusal of each site is logged, with whether robots.txt allows the request.
        """
        verdict, cause = request.meta.get(META_KEY) or {}, _cause_of(response)
        if (
            cause is None
            or "cached" in response.flags
            or not verdict.get("allowed")
            or intermediary_error(response, proxied=bool(request.meta.get("proxy")))
        ):
            return
        decision = self._decider.known_decision(request)
        if decision is None or (origin := decision.origin) is None:
            return
        stats.count(self._crawler, stats.REFUSED_COUNT.format(status=response.status))
        if self._sites.add(origin, lambda: f"{origin}: {cause}"):
            # Where robots.txt was refused, too, nobody knows what it allows.
            is_known = decision.entry is not None and decision.entry.is_known
            line = _ALLOWED_BUT_REFUSED if is_known else _ONLY_REFUSED
            self._logger.info(line, printable_request(request), cause)
        self._announcer.send(robotstxt_refused, request=request, origin=origin, cause=cause)

    def log_summary(self) -> None:
        """Log how many requests were refused, and by which sites most; nothing if none was."""
        if total := self._sites.total:
            sites = counted(len(self._sites), "site")
            self._logger.info("Requests refused by %s: %d%s", sites, total, self._sites.table())


def _cause_of(response: Response) -> str | None:
    mitigation, price = mitigation_in(response), response.headers.get(_PRICE)
    if response.status not in _REFUSING and mitigation is None:
        return None
    shown = f"{_PRICE}: {price.decode('latin-1')}" if price else None
    causes = f"status {response.status}", mitigation, shown
    return short(printable(", ".join(filter(None, causes))))
