"""Responses with which sites refuse requests that their robots.txt allows.

They are counted by site. Those that require a license (RSL 1.0) are not retried.
"""

from __future__ import annotations

from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import stats
from scrapy_rep.decision.decider import Decider
from scrapy_rep.drops import Tally
from scrapy_rep.fetch.route_failures import intermediary_error
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.usage.readers import asks_for_license
from scrapy_rep.protocol.usage.statement import LICENSE
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.signals import META_KEY, Announcer, robotstxt_refused
from scrapy_rep.utils.bounded import Once
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import origin_of_request
from scrapy_rep.utils.text import counted, printable, printable_request, short, without_credentials

POSSIBLE_REFUSALS: Final = frozenset({202, 401, 402, 403, 405, 429, 503})
"""Statuses of responses that may refuse a request."""
_REFUSING: Final = frozenset({402, 403, 429})
"""Statuses that refuse a request whatever the headers of the response are."""
_LICENSE_STATUSES: Final = frozenset({401, 402, 403})
_MITIGATIONS: Final = ("cf-mitigated", "x-amzn-waf-action", "x-vercel-mitigated")
"""Headers with which the bot protections of Cloudflare, AWS and Vercel mark the pages that they
send in place of those of the site. AWS sends them with status 202 and 405."""
_PRICE: Final = "crawler-price"
"""Header with the price of a page, with status 402 (Cloudflare's pay per crawl)."""
_MAX_URIS: Final = 3


class Refusals:
    """Counts and announces the responses that refuse an allowed request, or require a license."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._announcer = Announcer(crawler)
        self._once = Once()
        self._sites = Tally()

    def report(self, request: Request, response: Response, decider: Decider | None) -> None:
        """Count and announce ``response``, one of POSSIBLE_REFUSALS, if it refuses ``request``.

        It does if it has status 402, 403 or 429, or a header of a bot protection, ``request`` was
        allowed, and no proxy has answered in place of the site. The first refusal of each site is
        logged. If ``response`` requires a license, this is counted in any case, and ``request`` is
        not retried. ``decider``, if given, finds the license in robots.txt.
        """
        try:
            origin = origin_of_request(request)
        except ValueError:
            return
        requires_license = response.status in _LICENSE_STATUSES and any(
            asks_for_license(value.decode("latin-1"))
            for value in response.headers.getlist(b"WWW-Authenticate")
        )
        if requires_license:
            self._count_license(request, response, origin, decider)
        verdict = request.meta.get(META_KEY) or {}
        cause = _cause_of(response)
        if (
            cause is None
            or not verdict.get("allowed")
            or intermediary_error(response, proxied=bool(request.meta.get("proxy")))
        ):
            return
        stats.count(self._crawler, stats.REFUSED_COUNT.format(status=response.status))
        if self._sites.add(origin, lambda: f"{origin}: {cause}") and not requires_license:
            self._logger.info(
                "Allowed by robots.txt, but refused by the site: %s: %s",
                printable_request(request),
                cause,
            )
        self._announcer.send(robotstxt_refused, request=request, origin=origin, cause=cause)

    def log_summary(self) -> None:
        """Log how many requests were refused, and by which sites most; nothing if none was."""
        if not self._sites.total:
            return
        self._logger.info(
            "Requests allowed by robots.txt, but refused by %s: %d%s",
            counted(len(self._sites), "site"),
            self._sites.total,
            self._sites.table(),
        )

    def _count_license(
        self, request: Request, response: Response, origin: Origin, decider: Decider | None
    ) -> None:
        """Count ``response``, keep ``request`` from retries, and warn once of its origin."""
        stats.count(self._crawler, stats.LICENSE_REQUIRED.format(status=response.status))
        # RETRY_HTTP_CODES may have the status, but a retry changes nothing.
        request.meta["dont_retry"] = True
        if not self._once.add_if_new(origin):
            return
        uris = _license_uris(Usage().with_header("Link", response.headers.getlist(b"Link")))
        if (
            not uris
            and decider is not None
            and (decision := decider.known_decision(request)) is not None
        ):
            uris = _license_uris(decider.usage_of(decision))
        self._logger.warning(
            "%s asks for a license (status %d): %s",
            origin,
            response.status,
            _join_printable(uris) or "no license is named",
        )


def _cause_of(response: Response) -> str | None:
    """Return the status and headers with which ``response`` refuses; None if it doesn't."""
    named = [(name, response.headers.get(name)) for name in (*_MITIGATIONS, _PRICE)]
    shown = [f"{name}: {value.decode('latin-1')}" for name, value in named if value]
    if response.status not in _REFUSING and not any(value for _, value in named[:-1]):
        return None
    return short(printable(", ".join((f"status {response.status}", *shown))))


def _license_uris(usage: Usage) -> list[str]:
    return [statement.raw for statement in usage.statements if statement.source == LICENSE]


def _join_printable(uris: list[str]) -> str:
    text = ", ".join(short(printable(without_credentials(uri))) for uri in uris[:_MAX_URIS])
    return f"{text} and {len(uris) - _MAX_URIS} more" if len(uris) > _MAX_URIS else text
