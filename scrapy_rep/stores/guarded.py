"""The guard of a store: an error of the store, or a store that hangs, does not stop the crawl.

Every call of the store has a time limit. After a failed call the store is not called for a second;
the time doubles with each further failure, up to 30 seconds. Meanwhile a store in memory, the
fallback store, is used: it keeps the records that could not be written, and leases that are valid
for this process only. When the store can be written again, the records in the fallback
store are written to it. Reading and writing are guarded separately, because a file on a full disk
can be read, but not written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar
from uuid import uuid4

from twisted.internet.defer import CancelledError

from scrapy_rep.protocol.record import Record
from scrapy_rep.stores.base import RecordAndLease, Store, StoreError, newer_record
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.bounded import MAX_ENTRIES, BoundedCache
from scrapy_rep.utils.concurrency import within
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted

T = TypeVar("T")

_PAUSE: Final = 1.0
"""Seconds without a call of the store after a failure; doubled with each further failure."""
_PAUSE_MAX: Final = 30.0
_QUIET: Final = 600.0
"""Minimum seconds between two warnings about a store that can't be used."""
_GRACE: Final = 0.5
"""Seconds by which the time limit of a call is longer than the store's own time limit. So the store
raises its own error first, whose message is clearer."""
_CLOSING: Final = 5.0
"""Time limit in seconds for the last writes of a crawl, and again for closing the store."""


class Breaker:
    """A circuit breaker: after a failed call, it allows no call for a pause, then a single one.

    The pause is a second after the first failure, and doubles with each further one, up to 30.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether the last call failed."""
        return self._pause > 0

    def allow_call(self) -> bool:
        """Return whether a call may be made now. If so, its end must be reported."""
        if self.is_open:
            if self._trying or self._clock() < self._until:
                return False
            self._trying = True
        return True

    def report_failure(self) -> None:
        self._pause = min(_PAUSE_MAX, self._pause * 2) or _PAUSE
        self._until = self._clock() + self._pause
        self._trying = False

    def report_success(self) -> bool:
        """Report that a call succeeded; return whether it is the first one after a failure."""
        first = self.is_open
        self._pause = 0.0
        self._trying = False
        return first

    def end_pause(self) -> None:
        """End the pause, so that the next call is allowed at once."""
        self._until = self._clock()

    def report_cancelled(self) -> None:
        self._trying = False


class GuardedStore:
    """A store, and a fallback store in memory that is used while calls of the store fail.

    Each call of the store ends after at most ``timeout`` and half a second. Errors of the store are
    logged, and not raised.
    """

    def __init__(
        self,
        store: Store,
        fallback: MemoryStore,
        *,
        name: object,
        timeout: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._fallback = fallback
        self._name = name
        self._logger = LimitedLogger(__name__)
        self._timeout = timeout
        self._clock = clock
        self._reading = Breaker(clock)
        self._writing = Breaker(clock)
        self._holder = f"spare-{uuid4().hex}"
        self._quiet_until: float | None = None
        """When the next warning may be logged; None if the store could be used since the last."""
        self._holders: BoundedCache[str, str] = BoundedCache(max_entries=MAX_ENTRIES)
        """The holders of claims and of writes that failed, by key. The store may have given them
        the lease, or make such a claim later."""
        self._has_unwritten = False
        """Whether records were put in the fallback store since they were last moved from there."""
        self._being_written: dict[str, Record] = {}
        """The records, by key, for which a write to the store is under way."""

    async def get(self, key: str) -> RecordAndLease:
        found = await self._try_call(self._reading, partial(self._store.get, key))
        return _newest_of(found, await self._get_fallback(key))

    async def claim(
        self, key: str, holder: str, seconds: float, *, force: bool = False, if_absent: bool = False
    ) -> RecordAndLease:
        """Claim the lease in the store; after an error, one that is valid in this process only.

        The record is then still that of the store, if it can be read.
        """
        only = {"force": force, "if_absent": if_absent}
        found = await self._try_call(
            self._writing, partial(self._store.claim, key, holder, seconds, **only)
        )
        if found is not None:
            return _newest_of(found, await self._get_fallback(key))
        # The lease that ``holder`` gets is valid in this process only.
        self._holders.put(key, holder)
        if not self._reading.is_open:
            # A store that can't be written may still be readable, as with a full disk.
            found = await self._try_call(self._reading, partial(self._store.get, key))
        if not if_absent or found is None or found.record is None:
            await self._fallback.claim(key, holder, seconds, **only)
        fallback = await self._get_fallback(key)
        return _newest_of(found, fallback)._replace(lease=fallback.lease)

    async def pauses_left(self) -> Mapping[str, float]:
        """Return what both stores have, of each key the longer lease."""
        pauses = dict(await self._try_call(self._reading, self._store.pauses_left) or {})
        for key, left in (await self._fallback.pauses_left()).items():
            pauses[key] = max(left, pauses.get(key, 0.0))
        return pauses

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record``; after an error it is kept in memory, and the next success stores it."""
        key = str(record.origin)
        # From now on ``get`` returns this record, however long the store takes to write it.
        self._being_written[key] = record
        done = False
        try:
            is_failure = record.unreachable_since is not None
            if is_failure and holder is not None and holder == self._holders.get(key):
                # The claim failed, so it is not known whether the store has a last good copy.
                done = await self._merge_into_store(record, holder)
            else:
                done = await self._try_write(partial(self._store.put, record, holder))
        finally:
            if holder is not None and not done:
                self._holders.put(key, holder)
            if holder is not None:
                await self._fallback.release(key, holder)
            if self._being_written.get(key) is record:
                del self._being_written[key]
                # A record that can't be written is kept until the store can be written.
                if done:
                    await self._fallback.discard(key)
                else:
                    await self._fallback.put(record)
                    self._has_unwritten = True
        if done and self._has_unwritten:
            await self._copy_fallback_to_store()

    async def release(self, key: str, holder: str) -> None:
        await self._fallback.release(key, holder)
        await self._try_write(partial(self._store.release, key, holder))

    async def close(self) -> None:
        """Write the records that are still in memory, within a few seconds, and close the store.

        The number of records that could not be written is logged.
        """
        for breaker in (self._reading, self._writing):
            breaker.end_pause()  # without this, the pause might last longer than the crawl
        with suppress(TimeoutError):
            await within(_CLOSING, self._copy_fallback_to_store())
        lost = len(self._fallback)
        if lost:
            records = counted(lost, "record")
            self._logger.warning("%s: %s of robots.txt could not be stored", self._name, records)
        try:
            await within(_CLOSING, self._store.close())
        except Exception as error:  # noqa: BLE001 - an error must not disturb the end of the crawl
            self._warn(error)
        await self._fallback.close()

    async def _get_fallback(self, key: str) -> RecordAndLease:
        """Return what the fallback store has, or the record that is being written to the store."""
        found = await self._fallback.get(key)
        being_written = self._being_written.get(key)
        return found if being_written is None else found._replace(record=being_written)

    async def _copy_fallback_to_store(self) -> None:
        """Move the records of the fallback store to the store, until a call of that fails."""
        self._has_unwritten = False
        async for key in self._fallback.scan_keys():
            record = (await self._fallback.get(key)).record
            holder = self._holders.get(key) or self._holder
            if record is not None and await self._merge_into_store(record, holder):
                await self._fallback.discard(key)
            elif self._writing.is_open:
                self._has_unwritten = True
                return

    async def _merge_into_store(self, record: Record, holder: str) -> bool:
        """Store ``record``, or what is new in it; return whether that is done.

        The records are compared and written under the lease: without it, another worker could store
        a newer record meanwhile, which would be overwritten. If another worker has the lease,
        nothing is stored, as the record of that one will be newer.
        """
        key = str(record.origin)
        claim = partial(self._store.claim, key, holder, 2 * self._timeout)
        found = await self._try_call(self._writing, claim)
        if found is None or found.holder != holder:
            return False
        merged = newer_record(found.record, record)
        if merged is None or merged == found.record:
            write = partial(self._store.release, key, holder)
        else:
            write = partial(self._store.put, merged, holder)
        done = await self._try_write(write)
        if done:
            self._holders.discard(key)
        return done

    async def _try_write(self, write: Callable[[], Awaitable[None]]) -> bool:
        """Make a call that writes; return whether it succeeded."""

        async def call() -> bool:
            await write()
            return True

        return await self._try_call(self._writing, call) is not None

    async def _try_call(
        self, breaker: Breaker, call: Callable[[], Coroutine[Any, Any, T]]
    ) -> T | None:
        """Return the result of a call; None if it fails (logged), or ``breaker`` forbids it."""
        if not breaker.allow_call():
            return None
        try:
            result = await within(self._timeout + _GRACE, call())
        except (CancelledError, asyncio.CancelledError):
            # In Twisted a subclass of Exception, which the next clause would catch.
            breaker.report_cancelled()
            raise
        # Errors other than StoreError are caught, too: without a record, robots.txt is fetched once
        # more, which is better than a lookup that fails.
        except Exception as error:  # noqa: BLE001 - logged by _warn
            breaker.report_failure()
            self._warn(error)
            return None
        is_first = breaker.report_success()
        can_be_used = not (self._reading.is_open or self._writing.is_open)
        if is_first and can_be_used and self._quiet_until is not None:
            self._quiet_until = None
            self._logger.info("%s can be used again", self._name)
        return result

    def _warn(self, error: Exception) -> None:
        """Log ``error`` at DEBUG level; in an outage also every ten minutes as a warning."""
        self._logger.debug("%s: %s", self._name, error)
        if self._quiet_until is not None and self._clock() < self._quiet_until:
            return
        self._quiet_until = self._clock() + _QUIET
        why = str(error) if isinstance(error, StoreError | TimeoutError) else repr(error)
        line = "%s can't be used, records of robots.txt are kept in memory: %s"
        self._logger.warning(line, self._name, why)


def _newest_of(found: RecordAndLease | None, fallback: RecordAndLease) -> RecordAndLease:
    """Return the record that was fetched later, and the lease of the store if that has one."""
    if found is None:
        return fallback
    record = newer_record(found.record, fallback.record)
    return RecordAndLease(record, found.lease or fallback.lease)
