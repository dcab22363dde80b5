"""Records of origins: from the store, or else from a fetch under a lease.

A record contains how the last fetches of a robots.txt ended. Of all workers that share a store,
only one fetches it. That worker gets the lease of the origin from the store, fetches robots.txt and
stores the record. The other workers read the store again and again until the record is there. A
lease ends after some time, so that another worker gets it if the worker with the lease was killed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from scrapy import Request
from scrapy.crawler import Crawler
from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.cache.log import LookupLog
from scrapy_rep.cache.lookup_limit import LookupLimit, Permit
from scrapy_rep.protocol.fetch_policy import Policy
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.outcome import Outcome, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.stores.base import Lease, RecordAndLease, Store, StoreError, newer_record
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import sleep
from scrapy_rep.utils.log import LimitedLogger

Fetch = Callable[[Origin, Request], Awaitable[Outcome]]
SendRecord = Callable[[Record, Record | None, Request], None]

_POLL: Final = 0.05
"""Seconds after which the store is read again the first time while another worker fetches."""
_POLL_MAX: Final = 1.0
"""Maximum seconds between two reads of the store while another worker fetches."""
_POLL_GROWTH: Final = 1.5
"""Factor by which the time between two reads grows while another worker fetches."""
_LOGGED_POLL: Final = 11
"""Number of reads, in some five seconds, after which it is logged for whom the lookup waits."""
_PATIENCE: Final = 3
"""Number of lease durations after which a worker that waits for the record fetches without a lease.
So it also waits if two workers get the lease, one after the other, and are killed."""


@dataclass(eq=False)
class Records:
    """Finds the records of robots.txt for a crawl: in the store, or by a fetch.

    After ``find``, ``store_fetched`` must be called: what was fetched is not stored before, and
    other workers wait for it. StoreError is logged, and not raised.
    """

    policy: Policy
    store: Store
    fetch: Fetch
    """Fetches a file and returns the outcome. Called with the file and the request that waits."""
    send_record: SendRecord
    """Called at the end of a lookup, with its record, the record before the lookup (None if there
    was none, the same object if nothing was fetched), and the request that waited."""
    clock: Clock
    jitter: Callable[[], float]
    """Returns a random number from 0 to 1."""
    limit: LookupLimit
    name: str
    """Name of this worker. It is unique among the workers with the same store."""
    lease: float
    """Duration of the lease under which a worker fetches, in seconds."""
    count: Callable[[str], None] = lambda _: None
    """Called with the name of a stat to increase."""
    crawler: Crawler | None = None
    """The crawl whose log lines these are; None without one."""

    def __post_init__(self) -> None:
        self._claims = 0
        self._began = self.clock.time()
        self._logger = LimitedLogger(__name__, self.crawler)
        self._log = LookupLog(self.policy, self._began, self.crawler)
        self._background = Background()
        self._being_stored: dict[Origin, tuple[Record, str]] = {}
        """Fetched records that are not stored yet, each with the holder of its lease."""
        self._unstored: BoundedCache[Origin, Record] = BoundedCache(max_entries=MAX_ENTRIES)
        """Records of fetches that failed on the route, for example at a proxy, or were redirected
        to a disallowed URL. They are not stored, because the fetch of another worker, with another
        proxy or other rules, may succeed."""

    async def find(self, origin: Origin, page: Request, permit: Permit | None) -> Record:
        """Return a valid record of ``origin``: from the store, from memory, or after a fetch.

        Then ``store_fetched`` must be called, which stores what was fetched, and ends its lease.
        ``page`` is the request that waits for the record. ``permit`` is released at the end; it is
        None if none was free. What was fetched, or found in the store, is logged and passed to
        ``send_record``.
        """
        self._claims += 1
        holder = f"{self.name}-{self._claims}"
        held = False
        since, pause, polls = self.clock.monotonic(), _POLL, 0
        try:
            permit = permit or await self.limit.acquire()
            # In one call, the record, or the lease to fetch a file that has no record.
            held, found = await self._claim(origin, holder, if_absent=True)
            while True:
                if self.is_fresh(found.record):
                    return self._report_stored(found.record, page)
                unstored = self._unstored.get(origin)
                if self.is_fresh(unstored):
                    return unstored
                impatient = self.clock.monotonic() - since >= self.lease * _PATIENCE
                if held or impatient:
                    record, will_be_stored = await self._fetch(origin, found.record, page, holder)
                    # The lease ends when the record is stored.
                    held = held and not will_be_stored
                    return record
                if found.holder is None:
                    held, found = await self._claim(origin, holder)
                    if held or self.is_fresh(found.record):
                        continue
                # Another worker fetches the file. It stores the record at the end.
                self._report_wait(origin, polls, found.lease)
                permit.release()
                await sleep(pause)
                pause, polls = min(_POLL_MAX, pause * _POLL_GROWTH), polls + 1
                found = await self._get_from_store(origin)
                permit = await self.limit.acquire()
        finally:
            if permit is not None:
                permit.release()
            if held:
                # So that other workers don't wait until it ends.
                self._background.start(self._release(str(origin), holder))

    async def stored(self, origin: Origin) -> Record | None:
        """Return the last record of ``origin``, from store or memory. Nothing is fetched."""
        if origin in self._being_stored:
            return self._being_stored[origin][0]
        return newer_record((await self._get_from_store(origin)).record, self._unstored.get(origin))

    async def finish(self) -> None:
        await self._background.finish()

    def is_fresh(self, record: Record | None) -> TypeGuard[Record]:
        """Return whether ``record`` is valid, so that nothing has to be fetched."""
        now = self.clock.time()
        return record is not None and not self.policy.is_due(record, now, self._began)

    def _report_stored(self, record: Record, page: Request) -> Record:
        """Count, log, announce and return a record from the store; forget the unstored one."""
        self.count(stats.STORE_FOUND)
        self._unstored.discard(record.origin)
        self._log.log_stored(record, self.clock.time())
        self.send_record(record, record, page)
        return record

    def _report_wait(self, origin: Origin, polls: int, lease: Lease | None) -> None:
        """Count the begin of a wait for another worker, and log a wait that has lasted long."""
        if polls == 0:
            self.count(stats.STORE_WAITED)
        if polls == _LOGGED_POLL and lease is not None:
            self._logger.info(
                "Waiting for robots.txt of %s: another worker fetches it, or was killed while it "
                "did; its lease ends in %.0f s at the latest",
                origin,
                lease.left,
            )

    async def _get_from_store(self, origin: Origin) -> RecordAndLease:
        """Return what the store has of ``origin``; after an error, which is logged, nothing."""
        try:
            return await self.store.get(str(origin))
        except StoreError as error:
            self._logger.debug("The store has no record of %s: %s", origin, error)
            return RecordAndLease(None, None)

    async def _claim(
        self, origin: Origin, holder: str, *, if_absent: bool = False
    ) -> tuple[bool, RecordAndLease]:
        """Claim the lease of ``origin``; return whether ``holder`` has it, and what the store has.

        After an error of the store, which is logged, ``holder`` counts as having it. If the call is
        cancelled, the lease is released.
        """
        key, seconds = str(origin), self.lease
        try:
            found = await self.store.claim(key, holder, seconds, if_absent=if_absent)
        except StoreError as error:
            self._logger.debug("No lease of %s: %s", origin, error)
            found = RecordAndLease(None, Lease(holder, seconds))
        except BaseException:
            # It may have been claimed nevertheless.
            self._background.start(self._release(key, holder))
            raise
        return found.holder == holder, found

    def _keep(self, record: Record, holder: str) -> bool:
        """Keep a record that was fetched; return whether ``store_fetched`` will store it.

        If its outcome is valid for another origin, too, it is stored for that in the background.
        """
        if not record.of_origin:
            # The record is not stored, because the fetch of another worker may succeed. The last
            # good copy remains in the store, and isn't needed in memory.
            self._unstored.put(record.origin, replace(record, copy=None))
            return False
        self._unstored.discard(record.origin)
        self._being_stored[record.origin] = record, holder
        other = _final_origin_of(record)
        if other is not None:
            self._background.start(self._store_for_other(other, record.last))
        return True

    async def _fetch(
        self, origin: Origin, previous: Record | None, page: Request, holder: str
    ) -> tuple[Record, bool]:
        """Fetch ``origin``; return its record, and whether ``store_fetched`` will store it.

        After a failed fetch, a valid record that another worker has stored meanwhile is returned.
        """
        outcome = await self.fetch(origin, page)
        if isinstance(outcome, Unreachable):
            # The lease may have ended, if this worker was stopped, or the store has failed before.
            stored = (await self._get_from_store(origin)).record
            if self.is_fresh(stored):
                return self._report_stored(stored, page), False
            previous = newer_record(previous, stored)
            if not outcome.of_origin:
                # The record of an earlier failure on the route is in memory only.
                previous = newer_record(previous, self._unstored.get(origin))
        record = self.policy.record_after(previous, origin, outcome, jitter=self.jitter())
        self._log.log_fetched(record, previous, self.clock.time())
        self.send_record(record, previous, page)
        return record, self._keep(record, holder)

    async def store_fetched(self, origin: Origin) -> None:
        """Store the record that was fetched, if there is one, and end its lease. Log errors.

        Called when the waiting requests have got the record, so that they don't wait for the store.
        """
        fetched = self._being_stored.get(origin)
        if fetched is None:
            return
        try:
            await self._put_in_store(*fetched)
        finally:
            if self._being_stored.get(origin) is fetched:
                del self._being_stored[origin]

    async def _put_in_store(self, record: Record, holder: str | None = None) -> None:
        """Store ``record``. An error is logged, and not raised."""
        try:
            await self.store.put(record, holder)
        except StoreError as error:
            self._logger.debug("robots.txt of %s was not stored: %s", record.origin, error)
        except CancelledError:  # in Twisted an Exception, which the next clause would catch
            raise
        except Exception:
            self._logger.exception("Error while a record was stored")

    async def _store_for_other(self, origin: Origin, outcome: Outcome) -> None:
        """Store ``outcome`` for ``origin``, unless that has a valid record, or a lease."""
        found = await self._get_from_store(origin)
        if not self.is_fresh(found.record) and found.holder is None:
            jitter = self.jitter()
            await self._put_in_store(
                self.policy.record_after(found.record, origin, outcome, jitter=jitter)
            )

    async def _release(self, key: str, holder: str) -> None:
        try:
            await self.store.release(key, holder)
        except StoreError as error:
            self._logger.debug("The lease of %s was not released: %s", key, error)


def _final_origin_of(record: Record) -> Origin | None:
    """Return another origin for which the outcome is valid, too; None if there is none.

    By RFC 9309 §2.3.1.2 the outcome is valid for the origin of the first request. If the redirects
    ended at the robots.txt of another origin, it is valid for that origin, too.
    """
    evidence = record.last.evidence
    if not evidence.hops or evidence.error is not None or isinstance(record.last, Unreachable):
        return None
    origin = origin_of(evidence.url)
    return origin if evidence.url == origin.robotstxt_url else None
