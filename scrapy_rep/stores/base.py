"""The interfaces of a store: for crawls (``Store``), and for commands too (``BareStore``).

A store keeps records, leases and turns. A record says how the last fetches of a file ended. A lease
is the right to fetch the file, for a limited time: other workers wait for the record of its holder.
A turn is a time that is reserved for one request, so that workers keep a site's delay together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy_rep.protocol.record import Record


class StoreError(Exception):
    """The store can't be read or written now; the crawl goes on without it."""


class ForeignKeyError(StoreError):
    """Another program has written one key; the rest of the store can be used."""


class RecordAndLease(NamedTuple):
    """The record and the lease of a key."""

    record: Record | None
    """The last record that was put; None if there is none, or it can't be read."""
    holder: str | None
    """The holder of the lease; None if there is no valid lease."""


class Turn(NamedTuple):
    """The time that is reserved for a request to a site with a delay."""

    seconds: float
    """Time until the turn, counted from the call that reserved it."""
    number: int
    """Identifies the turn among those of its key."""


class Store(Protocol):
    """Stores records, leases and turns by key.

    The key of a record is that of a :class:`~scrapy_rep.protocol.site_file.SiteFile`; the key of a
    turn is the name of a host; pauses have keys of their own. A store that outlives the process may
    be shared with others: each sees what the others put or claim. Its content is not trusted: a
    record that can't be read counts as missing.
    """

    async def get(self, key: str) -> RecordAndLease:
        """Return the record and the lease of ``key``. Raises StoreError."""

    async def claim(self, key: str, holder: str, seconds: float) -> RecordAndLease:
        """Give ``holder`` the lease of ``key`` for ``seconds``, unless another holds it.

        Return the record and the lease afterwards. The record is read after the lease is given, so
        a worker that gets it after another's fetch sees the new record. Raises StoreError.
        """

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the one before. Raises StoreError.

        This also ends the lease, if ``holder`` has it.
        """

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if ``holder`` has it. Raises StoreError."""

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``: ``seconds`` after the turn before.

        The result is a time to wait, because only the clock of the store is used. ``unused`` is the
        mark of a turn that was not used: if it is still the last one, its time is free again.
        Raises StoreError, and ForeignKeyError if another program has written ``key``.
        """

    async def close(self) -> None:
        """Finish all writes, and close connections and files; the next call opens them again."""


class BareStore(Store, Protocol):
    """A store without a guard, for commands that list and change records; its errors are raised."""

    def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, including those that can't be read.

        A key that is put or dropped meanwhile may be missing, and a key may come twice. Raises
        StoreError.
        """

    async def drop(self, key: str) -> bool:
        """Delete the record of ``key``; return whether there was one. Raises StoreError."""

    async def prune(self) -> int:
        """Delete records that are too old or too many, as the store also does by itself.

        Return how many. Raises StoreError.
        """
