"""The interfaces of a store: ``Store`` for crawls, ``BareStore`` for commands.

A store keeps records, leases and turns. A record contains how the last fetches of a file
(robots.txt or tdmrep.json) ended. A lease is the right to fetch the file, for a limited time: only
one worker has it, and all others wait until that worker has put the record. A turn is a time
reserved for one request to a host with a delay, so that all workers together keep the delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy_rep.protocol.record import Record


class StoreError(Exception):
    """Raised if a store can't be read or written now. The crawl continues without the store."""


class ForeignKeyError(StoreError):
    """Raised if another program has written a key. All other keys of the store can be used."""


class RecordAndLease(NamedTuple):
    """The record of a key, and the holder of its lease (the right to fetch the file)."""

    record: Record | None
    """The last record that was put; None if there is no record, or none that can be decoded."""
    holder: str | None
    """The name of the worker that holds the lease; None if there is no valid lease."""


class Turn(NamedTuple):
    """A turn: the time reserved for one request to a host with a delay."""

    seconds: float
    """Seconds from the call of ``reserve`` to the turn."""
    number: int
    """A number that identifies the turn among all turns of its key."""


class Store(Protocol):
    """Stores records, leases and turns by key.

    A lease is the right of one worker to fetch a file, for a limited time. A turn is a time
    reserved for one request to a site with a delay. The key of a record and of its lease is that of
    a :class:`~scrapy_rep.protocol.site_file.SiteFile`; the key of a turn is the name of a host. A
    pause of a host (a time without requests after 429 or 503) is a lease with a key of its own. A
    store that outlives the process may be shared by several processes: each process gets the
    records, leases and turns of all processes. The content of a store is not trusted: a record that
    ``Record.decode`` refuses counts as missing. It refuses records above ``max_encoded_size``, so a
    store doesn't check the size, but should not load larger values into memory.
    """

    async def get(self, key: str) -> RecordAndLease:
        """Return the record and the lease of ``key``.

        Raises StoreError if the store can't be read.
        """

    async def claim(self, key: str, holder: str, seconds: float) -> RecordAndLease:
        """Give ``holder`` the lease of ``key`` for ``seconds``, unless another worker holds it.

        Return the record and the lease as they are afterwards. The record is read after the lease
        was given, so a worker that gets the lease after another worker's fetch gets the new record.
        Raises StoreError if the store can't be written.
        """

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the former record of its file.

        This also ends the lease of the file, if ``holder`` has it. Raises StoreError if the store
        can't be written.
        """

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if ``holder`` has it.

        Raises StoreError if the store can't be written.
        """

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``; no other turn begins in the ``seconds`` after it.

        The result contains a time to wait, not a time of day: the times of turns are compared by
        the clock of the store only. ``unused`` is the number of a turn that was reserved and not
        used: if no turn was reserved after it, its time is free again. Raises ForeignKeyError if
        another program has written ``key``, and StoreError if the store can't be written.
        """

    async def close(self) -> None:
        """Finish all writes, and close connections and files. A later call opens them again."""


class BareStore(Store, Protocol):
    """A store whose errors are raised, for commands that list and change records.

    Crawls use a store with a guard (``stores/guarded.py``), which raises no errors.
    """

    def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, including records that can't be decoded.

        A key whose record is put or dropped during the iteration may be missing, and a key may be
        yielded twice. Raises StoreError if the store can't be read.
        """

    async def discard(self, key: str) -> bool:
        """Delete the record of ``key``; return whether there was one.

        Raises StoreError if the store can't be written.
        """

    async def prune(self) -> int:
        """Delete records that are too old, or too many; return the number of deleted records.

        The store also does so during crawls. Raises StoreError if the store can't be written.
        """
