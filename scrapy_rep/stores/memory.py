"""The store in the memory of this process, for the time of a crawl."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.record import Record, RecordError
from scrapy_rep.stores.base import RecordAndLease, Turn
from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_MAX_LEASES: Final = 10_000
"""Number of leases, or of turns, at which ended leases or past turns are removed."""
_RECORD_BYTES: Final = 350
"""Approximate bytes of memory for a record, in addition to its key and the encoded record."""
_MICROSECONDS: Final = 1_000_000


class MemoryStore:
    """A store in memory. Records are encoded as in other stores.

    Above ``max_bytes`` the least recently used records are removed. A record whose text has more
    than ``max_size`` bytes is not returned. Leases and turns use the times of ``clock``.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        max_size: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._records: BoundedCache[str, bytes] = BoundedCache(max_bytes=max_bytes)
        self._leases: dict[str, tuple[str, float]] = {}
        self._turns: dict[str, int] = {}
        """When the next free turn of each key begins, in microseconds of ``clock``."""
        self._max_size = max_size
        self._clock = clock

    def __len__(self) -> int:
        return len(self._records)

    async def get(self, key: str) -> RecordAndLease:
        """Return the record and the lease of ``key``."""
        return RecordAndLease(self._record(key), self._holder(key))

    async def claim(self, key: str, holder: str, seconds: float) -> RecordAndLease:
        """Give ``holder`` the lease of ``key`` for ``seconds``, unless another worker holds it."""
        if self._holder(key) is None:
            now = self._clock()
            if len(self._leases) >= _MAX_LEASES:
                self._leases = {k: lease for k, lease in self._leases.items() if lease[1] > now}
            self._leases[key] = holder, now + seconds
        return RecordAndLease(self._record(key), self._holder(key))

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the former record of its file."""
        key, data = record.file.key, record.encode()
        self._records.put(key, data, _RECORD_BYTES + len(data) + len(key))
        if holder is not None:
            await self.release(key, holder)

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if ``holder`` has it."""
        if key in self._leases and self._leases[key][0] == holder:
            del self._leases[key]

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``; the turn after it is ``seconds`` later."""
        now, step = round(self._clock() * _MICROSECONDS), round(seconds * _MICROSECONDS)
        if len(self._turns) >= _MAX_LEASES:
            self._turns = {k: begin for k, begin in self._turns.items() if begin > now}
        begin = self._turns.get(key, now)
        begin = max(now, begin - step if begin == unused else begin)
        self._turns[key] = begin + step
        return Turn((begin - now) / _MICROSECONDS, begin + step)

    async def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, the least recently used first."""
        for key in list(self._records):
            yield key

    async def discard(self, key: str) -> bool:
        """Delete the record of ``key``; return whether there was one."""
        found = key in self._records
        self._records.discard(key)
        return found

    async def prune(self) -> int:
        """Return 0: records above the limit of memory are removed when a record is put."""
        return 0

    async def close(self) -> None:
        """Remove all records, leases and turns."""
        self._records.clear()
        self._leases.clear()
        self._turns.clear()

    def _record(self, key: str) -> Record | None:
        data = self._records.get(key)
        if data is None:
            return None
        try:
            return Record.decode(data, key, max_size=self._max_size)
        except RecordError:
            return None

    def _holder(self, key: str) -> str | None:
        holder, end = self._leases.get(key, (None, 0.0))
        return holder if self._clock() < end else None
