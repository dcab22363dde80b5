"""The policy: by a record, when robots.txt is fetched again, and what may be fetched meanwhile."""

import math
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple

from scrapy_rep.protocol import limits
from scrapy_rep.protocol.header_times import delta_seconds, max_age, retry_after
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import Available, Outcome, Unavailable, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Outage, Reason, Verdict

_MAX_DOUBLINGS: Final = 32
_UNAVAILABLE: Final = Verdict(allowed=True, reason=Reason.UNAVAILABLE)


class Access(NamedTuple):
    """Which pages of an origin may be fetched, and between which times this is valid."""

    verdict: Verdict | None
    """The verdict on all pages; None if it depends on rules."""
    copy: Available | None
    """The robots.txt with the valid rules; None if there is a verdict on all pages."""
    start: float
    """In seconds since the epoch. If it is in the future, the clock was set back: not valid."""
    end: float
    """In seconds since the epoch; infinity if there is no next try."""
    is_absent: bool = False
    """Whether the site said that it has no robots.txt."""

    @property
    def may_allow(self) -> bool:
        """Whether pages may be allowed. If none may, only another try can change that."""
        return self.verdict is None or self.verdict.allowed


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of the policy, in seconds, and what follows from them."""

    cache_ttl: float = limits.CACHE_TTL
    cache_ttl_min: float = limits.CACHE_TTL_MIN
    cache_ttl_max: float = limits.CACHE_TTL_MAX
    unreachable_stale_after: float = limits.UNREACHABLE_STALE_AFTER
    unreachable_allow_after: float = limits.UNREACHABLE_ALLOW_AFTER
    retry_delay: float = limits.RETRY_DELAY
    retry_delay_max: float = limits.RETRY_DELAY_MAX

    def is_due(self, record: Record | None, now: float, crawl_start: float = -math.inf) -> bool:
        """Return whether robots.txt has to be fetched before pages of its origin.

        It has without a record, or if this has expired or is from the future. A new crawl tries an
        unreachable one already ``retry_delay`` after the last try, unless that had a Retry-After.
        """
        if record is None or not record.last.evidence.at <= now < self._next_fetch_at(record):
            return True
        evidence = record.last.evidence
        return (
            evidence.at < crawl_start
            and record.unreachable_since is not None
            and now - evidence.at >= self.retry_delay
            and retry_after(evidence.retry_after, evidence.at) is None
        )

    def access(self, record: Record, now: float) -> Access:
        """Return which pages may be fetched according to ``record``, even if it has expired.

        RFC 9309 §2.3.1.1 (available: rules), §2.3.1.3 (unavailable: all), §2.3.1.4 (unreachable:
        none; after a long time the rules of the last copy, or all if there is none).
        """
        start, end = record.last.evidence.at, self._next_fetch_at(record)
        if record.unreachable_since is None:
            if isinstance(record.last, Available):
                return Access(None, record.last, start, end)
            is_absent = isinstance(record.last, Unavailable) and record.last.is_absent
            return Access(_UNAVAILABLE, None, start, end, is_absent)
        outage = Outage(record.last.evidence.summary, record.unreachable_since, end)
        has_copy, until = record.copy is not None, math.inf
        patience = self.unreachable_stale_after if has_copy else self.unreachable_allow_after
        left = patience - record.unreachable_for
        # Above the largest gap that counts, it takes another failed try.
        is_known = has_copy or not record.may_have_copy
        if record.of_origin and is_known and left <= limits.UNREACHABLE_GAP_MAX:
            until = start + left
        if now < until:
            verdict = Verdict(allowed=False, reason=Reason.UNREACHABLE, outage=outage)
            return Access(verdict, None, start, min(end, until))
        if record.copy is None:
            verdict = Verdict(allowed=True, reason=Reason.UNREACHABLE_LONG, outage=outage)
            return Access(verdict, None, start, end)
        return Access(None, record.copy, start, end)

    def record_after(
        self, previous: Record | None, origin: Origin, outcome: Outcome, *, jitter: float
    ) -> Record:
        """Return the record of ``origin`` after a fetch that ended with ``outcome``.

        ``jitter``, a random number from 0 to 1, keeps many crawlers from trying at the same time.
        After a failed fetch the last good copy stays. The time between two failed fetches is added
        to that of the outage, unless one of them failed on the route, such as at a proxy.
        """
        if isinstance(outcome, Available):
            return Record(origin, outcome, outcome)
        if isinstance(outcome, Unavailable):
            return Record(origin, outcome)
        at = outcome.evidence.at
        copy = None if previous is None else previous.copy
        since, seconds, tries = at, 0.0, 1
        if previous is not None and previous.unreachable_since is not None:
            since = min(at, previous.unreachable_since)
            # The gap is limited, as the clock may have been set forward or back.
            gap = min(max(0.0, at - previous.last.evidence.at), limits.UNREACHABLE_GAP_MAX)
            gap = gap if outcome.of_origin and previous.of_origin else 0.0
            seconds, tries = previous.unreachable_for + gap, previous.tries + 1
        next_try = None if outcome.permanent else at + self._retry_delay(outcome, tries, jitter)
        return Record(origin, outcome, copy, since, seconds, tries, next_try)

    def _next_fetch_at(self, record: Record) -> float:
        """Return when a valid record expires, or the next try; infinity if there is none."""
        evidence = record.last.evidence
        if record.unreachable_since is not None:
            if record.next_try is None:
                return math.inf
            # The time is limited, as a record from a store may have any value.
            return min(record.next_try, evidence.at + self.retry_delay_max)
        # SPEC F-11, RFC 9309 §2.4: max-age without Age (RFC 9111 §4.2.3), within the limits.
        lifetime = max_age(evidence.cache_control)
        if lifetime is None:
            return evidence.at + min(self.cache_ttl, self.cache_ttl_max)
        left = lifetime - (delta_seconds(evidence.age or "") or 0)
        return evidence.at + max(self.cache_ttl_min, min(self.cache_ttl_max, left))

    def _retry_delay(self, outcome: Unreachable, tries: int, jitter: float) -> float:
        """Return Retry-After, within the limits; else doubled delays with jitter, half if 503."""
        evidence = outcome.evidence
        asked = retry_after(evidence.retry_after, evidence.at)
        if asked is not None:
            return max(self.retry_delay, min(self.retry_delay_max, asked))
        delay = min(self.retry_delay_max, self.retry_delay * 2.0 ** min(tries - 1, _MAX_DOUBLINGS))
        # Google's documentation: a 503 "results in fairly frequent retrying".
        if evidence.status == HTTPStatus.SERVICE_UNAVAILABLE:
            delay /= 2
        # Jitter makes the delay longer, never shorter, so that no try is too early.
        return min(self.retry_delay_max, delay * (1 + jitter / 4))
