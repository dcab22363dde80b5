"""Responses that require a license (RSL 1.0): counted, logged once per origin, not retried."""

from __future__ import annotations

from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import stats
from scrapy_rep.decision.decider import Decider
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.usage.license import asks_for_license
from scrapy_rep.protocol.usage.statement import LICENSE
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.once import Once
from scrapy_rep.utils.text import printable, short, without_credentials

logger: Final = LimitedLogger(__name__)

STATUSES: Final = (401, 402, 403)
"""Statuses of responses that may require a license."""
_MAX_SHOWN: Final = 3
"""Maximum number of license URIs in a log line."""


class Licenses:
    """Finds responses that require a license."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._once = Once()

    def count_if_required(
        self, request: Request, response: Response, decider: Decider | None
    ) -> None:
        """Count ``response``, whose status is in STATUSES, if it requires a license.

        ``request`` is not retried then. The first response of each origin that requires a license
        is logged.
        """
        challenges = response.headers.getlist(b"WWW-Authenticate")
        if not any(asks_for_license(value.decode("latin-1")) for value in challenges):
            return
        stats.count(self._crawler, stats.LICENSE_REQUIRED.format(status=response.status))
        # RETRY_HTTP_CODES may have the status, but a retry changes nothing.
        request.meta["dont_retry"] = True
        try:
            origin = origin_of(request.url)
        except ValueError:
            return
        if not self._once.add_if_new(origin):
            return
        uris = _license_uris(Usage().with_header("Link", response.headers.getlist(b"Link")))
        if (
            not uris
            and decider is not None
            and (decision := decider.known_decision(request)) is not None
        ):
            uris = _license_uris(decider.usage_of(decision))
        logger.warning(
            "%s asks for a license (status %d): %s",
            origin,
            response.status,
            _join_printable(uris) or "no license is named",
            extra={"spider": self._crawler.spider},
        )


def _license_uris(usage: Usage) -> list[str]:
    return [statement.raw for statement in usage.statements if statement.source == LICENSE]


def _join_printable(uris: list[str]) -> str:
    text = ", ".join(short(printable(without_credentials(uri))) for uri in uris[:_MAX_SHOWN])
    return f"{text} and {len(uris) - _MAX_SHOWN} more" if len(uris) > _MAX_SHOWN else text
