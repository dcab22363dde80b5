"""What a store of records is: to a crawl, and to the commands that look into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy_rep.protocol.record import Record


class StoreError(Exception):
    """A store that can't be read or written just now: the crawl goes on without it."""


class ForeignKeyError(StoreError):
    """A key of one origin holds what others have put there: all others can be used."""


class Held(NamedTuple):
    """What a store holds of an origin."""

    record: Record | None
    """The last record that was put; None where there is none that can be read."""
    holder: str | None
    """Who holds the lease, the right to fetch the origin's robots.txt; None where nobody does."""


class Turn(NamedTuple):
    """When a request may be sent to an origin that asks for a delay."""

    seconds: float
    """After the call that reserved it."""
    mark: int
    """What tells it from all other turns of the origin."""


class Store(Protocol):
    """Where records live, who fetches a robots.txt just now, and whose turn it is.

    A key is that of a :class:`~scrapy_rep.protocol.site_file.SiteFile`; turns have the name of a
    host as their key, and pauses one of their own.

    One that outlives the process serves several at once: what one of them puts or claims, the
    others see. What it holds is not trusted: a record that can't be read is a miss, never a crash.
    """

    async def get(self, key: str) -> Held:
        """Return what is held of ``key``. Raises StoreError."""

    async def claim(self, key: str, holder: str, seconds: float) -> Held:
        """Give ``holder`` the lease of ``key`` for ``seconds``, unless another holds it.

        Return what is held afterwards: the record is not older than the lease, so who got it
        after another's fetch sees that one's record. Raises StoreError.
        """

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Keep ``record`` in place of what is held of its origin. Raises StoreError.

        The lease ends with it, if it is that of ``holder``.
        """

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if it is that of ``holder``. Raises StoreError."""

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Return the next turn of ``key`` that nobody has: ``seconds`` after the one before.

        By one clock, that of the store; who asks is told how long to wait. ``unused`` is the mark
        of a turn that was not used: if it is still the last one, its time is given back. Raises
        StoreError, and ForeignKeyError where it can keep no turns of ``key``.
        """

    async def close(self) -> None:
        """Write what is still to be written, and let go of everything that is open.

        A store may be used again after that.
        """


class BareStore(Store, Protocol):
    """A store that nothing guards: its errors come to who lists and changes what it holds."""

    def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, those that can't be read among them, page by page.

        One that is put or dropped meanwhile may be missing, and one may come twice. Raises
        StoreError.
        """

    async def drop(self, key: str) -> bool:
        """Let go of the record of ``key``; return whether there was one. Raises StoreError."""

    async def prune(self) -> int:
        """Let go of the records that are too old or too many, as the store does by itself.

        Return how many these were. Raises StoreError.
        """
