"""The store in the memory of this process, for the time of a crawl."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import ClassVar, Final

from scrapy_rep.stores.base import PAUSE, Change, Claim, Found, Lease, Put, Stored
from scrapy_rep.utils.bounded import BoundedCache

_MANY_LEASES: Final = 10_000
"""Number of leases above which those that have ended are removed."""
_RECORD_BYTES: Final = 350
"""Approximate bytes of memory for a record, in addition to its key and its bytes."""


class MemoryStore:
    """A store in memory. Above ``max_bytes`` the least recently used records are removed.

    Leases use the times of ``clock``, in seconds.
    """

    is_shared: ClassVar[bool] = False

    def __init__(self, *, max_bytes: int, clock: Callable[[], float] = monotonic) -> None:
        self._records: BoundedCache[str, Stored] = BoundedCache(max_bytes=max_bytes)
        self._leases: dict[str, tuple[str, float]] = {}
        """The holder of each lease, and when it ends."""
        self._max_leases = _MANY_LEASES
        self._clock = clock

    def peek(self, keys: Sequence[str]) -> Found:
        return Found({key: found for key in keys if (found := self._records.get(key)) is not None})

    read = peek

    def write(self, changes: Sequence[Change]) -> list[Lease | None]:
        if len(self._leases) > self._max_leases:
            now = self._clock()
            self._leases = {key: lease for key, lease in self._leases.items() if lease[1] > now}
            self._max_leases = max(_MANY_LEASES, 2 * len(self._leases))
        return [self._change(change) for change in changes]

    def _change(self, change: Change) -> Lease | None:
        key = change.key
        if isinstance(change, Put):
            stored = self._records.get(key)
            body = change.body if change.body is not None else stored.body if stored else b""
            nbytes = _RECORD_BYTES + len(key) + len(change.state) + len(body)
            self._records.put(key, Stored(change.state, body), nbytes)
            return None
        lease = self._lease(key)
        if isinstance(change, Claim):
            if lease is None or change.force or lease.holder == change.holder:
                least = lease.left if lease is not None and change.force else 0.0
                lease = Lease(change.holder, max(change.seconds, least))
                self._leases[key] = lease.holder, self._clock() + lease.left
            return lease
        if lease is not None and lease.holder == change.holder:
            del self._leases[key]
        return None

    def pauses_left(self) -> Mapping[str, float]:
        now = self._clock()
        return {
            key: end - now
            for key, (holder, end) in self._leases.items()
            if holder == PAUSE and end > now
        }

    def keys(self) -> Iterator[str]:
        return iter(list(self._records))

    def delete(self, key: str) -> bool:
        found = key in self._records
        self._records.discard(key)
        return found

    def close(self) -> None:
        """Remove all records and leases."""
        self._records.clear()
        self._leases.clear()

    def _lease(self, key: str) -> Lease | None:
        holder, end = self._leases.get(key, ("", -math.inf))
        left = end - self._clock()
        return Lease(holder, left) if left > 0 else None
