"""Lines in the log about what the look-up of an origin came to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.outcome import Unreachable
from scrapy_rep.protocol.policy import Grant
from scrapy_rep.protocol.usage.tdmrep import TDMREP_PATH
from scrapy_rep.utils.text import moment

if TYPE_CHECKING:
    from scrapy_rep.protocol.policy import Access
    from scrapy_rep.protocol.record import Record

logger = logging.getLogger(__name__)

_MAX_REMEMBERED: Final = 10
"""Origins that an earlier try could not reach, of which the log tells at INFO."""
_MEANWHILE: Final = {
    Grant.NONE: "its pages may not be fetched",
    Grant.RULES: "its last copy is used",
    Grant.ALL: "all its pages are allowed",
}
"""What unreachable means, in words."""


class LookupLog:
    """Tells of robots.txt as they come, and of those that don't."""

    def __init__(self) -> None:
        self._remembered = 0

    def fetched(self, record: Record, previous: Record | None, access: Access) -> None:
        """Tell how a fetch ended; ``previous`` is what was known before."""
        evidence = record.last.evidence
        if not isinstance(record.last, Unreachable):
            logger.debug(
                "%s: %s (%s, %d bytes, redirects: %d)",
                _file_of(record),
                type(record.last).__name__.lower(),
                evidence.summary,
                evidence.size,
                len(evidence.hops),
            )
            return
        # Of what was in the way the fetcher has told.
        first = record.of_origin and (previous is None or previous.unreachable_since is None)
        logger.log(
            logging.WARNING if first else logging.DEBUG,
            "%s is unreachable: %s; %s, next try in %.1f s",
            _file_of(record),
            evidence.summary,
            _meanwhile(record, access),
            (record.next_try or 0) - evidence.at,
        )

    def remembered(self, record: Record, access: Access) -> None:
        """Tell that an earlier try, of this crawl or of another, could not reach an origin."""
        if access.outage is None:
            return
        self._remembered += 1
        logger.log(
            logging.INFO if self._remembered <= _MAX_REMEMBERED else logging.DEBUG,
            "%s has been unreachable since %s, known from an earlier try: %s; %s, next try at %s%s",
            _file_of(record),
            moment(access.outage.since),
            access.outage.cause,
            _meanwhile(record, access),
            moment(access.outage.next_try),
            " - further ones are logged at DEBUG level"
            if self._remembered == _MAX_REMEMBERED
            else "",
        )


def _file_of(record: Record) -> str:
    is_tdmrep = record.origin.endswith(TDMREP_PATH)
    return record.origin if is_tdmrep else f"robots.txt of {record.origin}"


def _meanwhile(record: Record, access: Access) -> str:
    if record.origin.endswith(TDMREP_PATH) and access.grant is not Grant.RULES:
        return "what it reserves is unknown"
    return _MEANWHILE[access.grant]
