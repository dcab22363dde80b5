"""The store in the memory of this process, for the time of a crawl."""

import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Final

from scrapy_rep.protocol.record import Record, RecordError
from scrapy_rep.stores.base import PAUSE, Lease, RecordAndLease
from scrapy_rep.utils.bounded import BoundedCache, ExpiringDict

_MAX_LEASES: Final = 10_000
"""Number of leases at which ended leases are removed."""
_RECORD_BYTES: Final = 350
"""Approximate bytes of memory for a record, in addition to its key and the encoded record."""


class MemoryStore:
    """A store in memory. Records are encoded as in other stores.

    Above ``max_bytes`` the least recently used records are removed. A record whose text has more
    than ``max_size`` bytes is not returned. Leases use the times of ``clock``.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        max_size: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._records: BoundedCache[str, bytes] = BoundedCache(max_bytes=max_bytes)
        self._leases: ExpiringDict[str, tuple[str, float]] = ExpiringDict(
            _MAX_LEASES, lambda lease: lease[1] <= clock()
        )
        self._paused: dict[str, None] = {}
        """Keys whose leases ``PAUSE`` holds, or has held."""
        self._max_size = max_size
        self._clock = clock

    def __len__(self) -> int:
        return len(self._records)

    async def get(self, key: str) -> RecordAndLease:
        return RecordAndLease(self._record(key), self._lease(key))

    async def claim(
        self, key: str, holder: str, seconds: float, *, force: bool = False, if_absent: bool = False
    ) -> RecordAndLease:
        lease = self._lease(key)
        if if_absent and key in self._records:
            return RecordAndLease(self._record(key), lease)
        if lease is not None and force:
            seconds = max(seconds, lease.left)
        if lease is None or force or lease.holder == holder:
            self._leases.put(key, (holder, self._clock() + seconds))
            if holder == PAUSE:
                self._paused[key] = None
        return RecordAndLease(self._record(key), self._lease(key))

    async def pauses_left(self) -> Mapping[str, float]:
        pauses = {
            key: lease.left
            for key in self._paused
            if (lease := self._lease(key)) is not None and lease.holder == PAUSE
        }
        self._paused = dict.fromkeys(pauses)
        return pauses

    async def put(self, record: Record, holder: str | None = None) -> None:
        key, data = str(record.origin), record.encode()
        self._records.put(key, data, _RECORD_BYTES + len(data) + len(key))
        if holder is not None:
            await self.release(key, holder)

    async def release(self, key: str, holder: str) -> None:
        if key in self._leases and self._leases[key][0] == holder:
            del self._leases[key]

    async def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, the least recently used first."""
        for key in list(self._records):
            yield key

    async def discard(self, key: str) -> bool:
        found = key in self._records
        self._records.discard(key)
        return found

    async def prune(self) -> int:
        """Return 0: records above the limit of memory are removed when a record is put."""
        return 0

    async def close(self) -> None:
        """Remove all records and leases."""
        self._records.clear()
        self._leases.clear()

    def _record(self, key: str) -> Record | None:
        """Return the record of ``key``; None without one, or if it can't be decoded."""
        data = self._records.get(key)
        if data is not None:
            with suppress(RecordError):
                return Record.decode(data, key, max_size=self._max_size)
        return None

    def _lease(self, key: str) -> Lease | None:
        holder, end = self._leases.get(key, ("", -math.inf))
        left = end - self._clock()
        return Lease(holder, left) if left > 0 else None
