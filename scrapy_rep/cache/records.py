"""The records of robots.txt that a crawl has: in its store, and those that are not stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.outcome import Outcome, Unreachable
from scrapy_rep.protocol.record import Record, RecordError
from scrapy_rep.stores.base import Put
from scrapy_rep.stores.write_behind import Known, WriteBehind
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.concurrency import Clock


class Records:
    """Finds the last record of an origin, and keeps the next one."""

    def __init__(
        self, store: WriteBehind, policy: Policy, clock: Clock, jitter: Callable[[], float]
    ) -> None:
        """``jitter`` returns a random number from 0 to 1."""
        self._store = store
        self._policy = policy
        self._clock = clock
        self._jitter = jitter
        self._began = clock.time()
        self._unstored: BoundedCache[Origin, Record] = BoundedCache(max_entries=MAX_ENTRIES)
        """Records that are not stored: of failures on the route, for example at a proxy, of
        redirects to a disallowed URL, as the fetch of another worker, with another proxy or other
        rules, may succeed; of failures while the store can't be read, as it may know more."""

    async def read(self, origin: Origin) -> Record | None:
        """Return the last record of ``origin``, from store or memory."""
        return self.last(origin, await self._store.read([str(origin)]))

    def last(self, origin: Origin, known: Known) -> Record | None:
        """Return the last record that is known. A failure in memory has the copy of the store."""
        stored, unstored = _stored(origin, known), self._unstored.get(origin)
        if stored is None or unstored is None:
            return stored or unstored
        if stored.last.evidence.at >= unstored.last.evidence.at:
            return stored
        copies = [copy for copy in (unstored.copy, stored.copy) if copy is not None]
        return replace(unstored, copy=max(copies, key=lambda copy: copy.evidence.at, default=None))

    def previous(self, origin: Origin, known: Known, outcome: Outcome) -> Record | None:
        """Return the record that ``outcome`` follows.

        After a failure on the route it is the last one; else the last one of the origin, unless
        the store has an outage that began earlier.
        """
        last, stored = self.last(origin, known), _stored(origin, known)
        if last is None or (isinstance(outcome, Unreachable) and not outcome.of_origin):
            return last
        began = None if stored is None else stored.unreachable_since
        is_earlier = began is not None and began < (last.unreachable_since or 0.0)
        return last if last.of_origin and not is_earlier else stored

    def is_fresh(self, record: Record | None) -> TypeGuard[Record]:
        """Return whether ``record`` is valid, so that nothing has to be fetched."""
        now = self._clock.time()
        return record is not None and not self._policy.is_due(record, now, self._began)

    def is_stored(self, record: Record) -> bool:
        """Return whether ``record``, the last one of its origin, is in the store."""
        unstored = self._unstored.get(record.origin)
        return unstored is None or unstored.last is not record.last

    def forget_unstored(self, origin: Origin) -> None:
        self._unstored.discard(origin)

    def after(
        self, previous: Record | None, origin: Origin, outcome: Outcome, known: Known
    ) -> Record:
        """Return the record after a fetch that ended with ``outcome``."""
        record = self._policy.record_after(previous, origin, outcome, jitter=self._jitter())
        may_have_copy = record.unreachable_since is not None and not known.is_complete
        return replace(record, may_have_copy=True) if may_have_copy else record

    def keep(self, record: Record) -> None:
        """Store a record that was fetched; or keep it in memory, if it is not to be stored."""
        if not record.of_origin or record.may_have_copy:
            copy = record.copy if record.of_origin else None
            self._unstored.put(record.origin, replace(record, copy=copy))
            return
        self._unstored.discard(record.origin)
        self._put(record)

    async def keep_for_other(self, origin: Origin, outcome: Outcome) -> None:
        """Store an outcome also for the ``origin`` at the end of its redirects, if it needs one."""
        known = await self._store.read([str(origin)])
        previous = self.last(origin, known)
        if not self.is_fresh(previous):
            self._put(self.after(previous, origin, outcome, known))

    def _put(self, record: Record) -> None:
        state, body = record.encode()
        self._store.put(Put(str(record.origin), state, body, record.last.evidence.at))


def _stored(origin: Origin, known: Known) -> Record | None:
    key = str(origin)
    if key not in known.records:
        return None
    try:
        return Record.decode(*known.records[key], key)
    except RecordError:
        return None


def other_origin(outcome: Outcome) -> Origin | None:
    """Return the origin whose robots.txt the redirects of a fetch ended at; else None.

    By RFC 9309 §2.3.1.2 the outcome is valid for the origin of the first request. It is valid for
    that origin, too.
    """
    evidence = outcome.evidence
    if not evidence.hops or evidence.error is not None or isinstance(outcome, Unreachable):
        return None
    origin = origin_of(evidence.url)
    return origin if evidence.url == origin.robotstxt_url else None
