"""Records in the memory of this process, for one crawl."""

from __future__ import annotations

from scrapy_rep.lru import BoundedCache
from scrapy_rep.protocol.record import Record, RecordError


class MemoryStore:
    """Records as any other store keeps them, encoded, and bounded by entries and bytes."""

    def __init__(self, *, max_origins: int, max_bytes: int, max_size: int) -> None:
        self._records: BoundedCache[str, bytes] = BoundedCache(max_origins, max_bytes)
        self._max_size = max_size

    async def get(self, origin: str) -> Record | None:
        """Return the record of ``origin``, or None."""
        data = self._records.get(origin)
        if data is None:
            return None
        try:
            return Record.decode(data, origin, max_size=self._max_size)
        except RecordError:
            return None

    async def put(self, record: Record) -> None:
        """Keep ``record`` in place of what is held of its origin."""
        data = record.encode()
        self._records.put(record.origin, data, len(data) + len(record.origin))

    async def close(self) -> None:
        """Nothing is open."""
