"""The interface of stores, for crawls and for the commands that list and change records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy_rep.protocol.record import Record


class StoreError(Exception):
    """The store can't be read or written now. The crawl goes on without it."""


class ForeignKeyError(StoreError):
    """A key has a value of another program. All other keys can be used."""


class Held(NamedTuple):
    """What a store has under a key."""

    record: Record | None
    """The last record that was put; None if there is none, or if it can't be read."""
    holder: str | None
    """The holder of the lease, the right to fetch the file; None if there is none."""


class Turn(NamedTuple):
    """A reserved time for a request to a host with a delay."""

    seconds: float
    """Seconds from the call that reserved it."""
    mark: int
    """A number that identifies the turn among all turns of the host."""


class Store(Protocol):
    """Keeps records, leases of fetches, and turns of requests.

    The key of a record or lease is that of a :class:`~scrapy_rep.protocol.site_file.SiteFile`, that
    of a turn is a host, and pauses have a key of their own.

    Several workers may use a store at the same time: each sees what the others put or claim. Its
    data is not trusted: a record that can't be read counts as missing.
    """

    async def get(self, key: str) -> Held:
        """Return record and lease of ``key``. Raises StoreError."""

    async def claim(self, key: str, holder: str, seconds: float) -> Held:
        """Give ``holder`` the lease of ``key`` for ``seconds``, unless another holds it.

        Return record and lease afterwards. The record is read after the lease is claimed, so the
        new holder sees the record of the last one. Raises StoreError.
        """

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the one before. Raises StoreError.

        The lease ends too, if it is that of ``holder``.
        """

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if it is that of ``holder``. Raises StoreError."""

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``, ``seconds`` after the one before.

        Only the clock of the store counts, so workers are told how long to wait, not until when.
        ``unused`` is the mark of a turn that was not used: if it is still the last one, it becomes
        free again. Raises StoreError, and ForeignKeyError if ``key`` can't have turns.
        """

    async def close(self) -> None:
        """Finish all writes and close files and connections; later calls open them again."""


class BareStore(Store, Protocol):
    """A store without a guard: commands get its errors. They can list and remove records."""

    def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, also of those that can't be read.

        A key that is put or dropped meanwhile may be missing, and a key may come twice. Raises
        StoreError.
        """

    async def drop(self, key: str) -> bool:
        """Remove the record of ``key``; return whether there was one. Raises StoreError."""

    async def prune(self) -> int:
        """Remove the records that are too old or too many, as the store does by itself.

        Return their number. Raises StoreError.
        """
