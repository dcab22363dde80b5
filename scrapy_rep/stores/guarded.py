"""The guard of a store: a store that fails or hangs does not fail or stop the crawl.

Every call has a time limit. After a failure the store is not called for a second, then for twice as
long, up to 30 seconds. Meanwhile a store in memory, the spare, takes its place: it has what could
not be written, and the leases and turns of this process. When the store is back, the records in the
spare are written to it. Reading and writing are guarded apart, because a full disk can still be
read.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from twisted.internet.defer import CancelledError

from scrapy_rep.stores.base import ForeignKeyError, RecordAndLease, StoreError
from scrapy_rep.utils.concurrency import within
from scrapy_rep.utils.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from scrapy_rep.protocol.record import Record
    from scrapy_rep.stores.base import Store, Turn
    from scrapy_rep.stores.memory import MemoryStore

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

_PAUSE: Final = 1.0
"""Seconds without a call after the first failure; doubled with each further one."""
_PAUSE_MAX: Final = 30.0
"""Maximum seconds without a call."""
_QUIET: Final = 600.0
"""Seconds between two warnings."""
_GRACE: Final = 0.5
"""Seconds added to the time limit of the store, so that its own error comes first."""
_CLOSING: Final = 5.0
"""Time limit for the last writes when a store closes, in seconds."""


class Breaker:
    """A circuit breaker: after a failure, it lets one call through after a pause."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether the last call failed."""
        return self._pause > 0

    def may_call(self) -> bool:
        """Return whether a call may be made now. The caller has to report how it ended."""
        if not self.is_open:
            return True
        if self._trying or self._clock() < self._until:
            return False
        self._trying = True
        return True

    def failed(self) -> None:
        """Report that a call failed."""
        self._pause = min(_PAUSE_MAX, self._pause * 2) or _PAUSE
        self._until = self._clock() + self._pause
        self._trying = False

    def succeeded(self) -> bool:
        """Report that a call succeeded; return whether it is the first one after a failure."""
        first = self.is_open
        self._pause = 0.0
        self._trying = False
        return first

    def try_now(self) -> None:
        """Let the next call through at once."""
        self._until = self._clock()

    def ended_without_result(self) -> None:
        """Report that a call ended without a result, for example because it was cancelled."""
        self._trying = False


class GuardedStore:
    """A store, and a spare one in memory that takes its place while the store fails.

    Every call ends within ``timeout`` and half a second.
    """

    def __init__(
        self,
        store: Store,
        spare: MemoryStore,
        *,
        name: object,
        timeout: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._spare = spare
        self._name = name
        self._timeout = timeout
        self._clock = clock
        self._reading = Breaker(clock)
        self._writing = Breaker(clock)
        self._holder = f"spare-{uuid4().hex}"
        self._quiet_until = -_QUIET
        self._has_warned = False
        self._being_written: dict[str, Record] = {}
        """Records that are being written."""

    async def get(self, key: str) -> RecordAndLease:
        """Return record and lease of ``key``."""
        found = await self._try(self._reading, partial(self._store.get, key))
        return self._with_spare(found, await self._get_spare(key))

    async def claim(self, key: str, holder: str, seconds: float) -> RecordAndLease:
        """Give ``holder`` the lease of ``key``, unless another holds it.

        While the store can't be written, leases are those of this process.
        """
        found = await self._try(self._writing, partial(self._store.claim, key, holder, seconds))
        if found is not None:
            return self._with_spare(found, await self._get_spare(key))
        await self._spare.claim(key, holder, seconds)
        spare = await self._get_spare(key)
        if not self._reading.is_open:
            # A store that can't be written may still be read, as a full disk can.
            found = await self._try(self._reading, partial(self._store.get, key))
        return self._with_spare(found, spare)._replace(holder=spare.holder)

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Keep ``record`` in place of the record of its file."""
        key = record.file.key
        # Seen from now on, whatever the store does and however long it takes.
        self._being_written[key] = record
        was_open = self._writing.is_open
        done = None
        try:
            done = await self._try(self._writing, partial(self._put, record, holder))
        finally:
            if holder is not None:
                await self._spare.release(key, holder)
            if self._being_written.get(key) is record:
                del self._being_written[key]
                await (self._spare.drop(key) if done else self._spare.put(record))
        if done and was_open:
            await self._write_spare()

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if it is that of ``holder``."""
        await self._spare.release(key, holder)
        await self._try(self._writing, partial(self._release, key, holder))

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``.

        While the store can't be written, or not for ``key``, turns are those of this process.
        """
        asked = self._clock()
        call = partial(self._store.reserve, key, seconds, unused)
        turn = await self._try(self._writing, call)
        if turn is not None:
            return turn
        turn = await self._spare.reserve(key, seconds, unused)
        return turn._replace(seconds=turn.seconds + self._clock() - asked)

    async def close(self) -> None:
        """Write what is still to be written, as far as that can be done in a few seconds."""
        for breaker in (self._reading, self._writing):
            breaker.try_now()  # there is no later
        with suppress(TimeoutError):
            await within(_CLOSING, self._write_spare())
        lost = len(self._spare)
        if lost:
            records = counted(lost, "record")
            logger.warning("%s: %s of robots.txt could not be stored", self._name, records)
        try:
            await within(_CLOSING, self._store.close())
        except Exception as error:  # noqa: BLE001 - nothing that is left to do can help
            self._warn(error)
        await self._spare.close()

    async def _get_spare(self, key: str) -> RecordAndLease:
        """Return record and lease of ``key`` in the store in memory."""
        found = await self._spare.get(key)
        being_written = self._being_written.get(key)
        return found if being_written is None else found._replace(record=being_written)

    async def _write_spare(self) -> None:
        """Write what could not be written before, unless the store has got something newer.

        Under leases, as between a look and a write another worker could store what is newer.
        """
        async for key in self._spare.scan_keys():
            claim = partial(self._store.claim, key, self._holder, 2 * self._timeout)
            found = await self._try(self._writing, claim)
            if found is None:
                return
            if found.holder != self._holder:
                continue  # another fetches it just now
            record = (await self._spare.get(key)).record
            if record is not None and _newer(found.record, record) is record:
                done = await self._try(self._writing, partial(self._put, record, self._holder))
            else:
                release = partial(self._release, key, self._holder)
                done = await self._try(self._writing, release)
            if done is None:
                return
            await self._spare.drop(key)

    async def _try(self, breaker: Breaker, call: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return the result of a call; None if it fails, or is not made."""
        if not breaker.may_call():
            return None
        try:
            result = await within(self._timeout + _GRACE, call())
        except ForeignKeyError:
            breaker.ended_without_result()
            return None
        except (CancelledError, asyncio.CancelledError):
            # An Exception in one mode, none in the others.
            breaker.ended_without_result()
            raise
        # Also an error that is none of a store's: one fetch too many does no harm, no answer does.
        except Exception as error:  # noqa: BLE001 - told by _warn
            breaker.failed()
            self._warn(error)
            return None
        if breaker.succeeded() and not (self._reading.is_open or self._writing.is_open):
            self._log_recovery()
        return result

    def _warn(self, error: Exception) -> None:
        logger.debug("%s: %s", self._name, error)
        if self._clock() < self._quiet_until:
            return
        self._quiet_until = self._clock() + _QUIET
        self._has_warned = True
        why = str(error) if isinstance(error, StoreError | TimeoutError) else repr(error)
        logger.warning(
            "%s can't be used, records of robots.txt are kept in memory: %s",
            self._name,
            why,
        )

    def _log_recovery(self) -> None:
        if self._has_warned:
            self._has_warned = False
            logger.info("%s can be used again", self._name)

    async def _release(self, key: str, holder: str) -> bool:
        await self._store.release(key, holder)
        return True

    async def _put(self, record: Record, holder: str | None) -> bool:
        await self._store.put(record, holder)
        return True

    @staticmethod
    def _with_spare(found: RecordAndLease | None, spare: RecordAndLease) -> RecordAndLease:
        if found is None:
            return spare
        return RecordAndLease(_newer(found.record, spare.record), found.holder or spare.holder)


def _newer(stored: Record | None, ours: Record | None) -> Record | None:
    if stored is None or ours is None:
        return stored or ours
    return ours if ours.last.evidence.at > stored.last.evidence.at else stored
