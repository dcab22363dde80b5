"""What a store of records is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scrapy_rep.protocol.record import Record


class StoreError(Exception):
    """A store that can't be read or written just now: the crawl goes on without it."""


class Store(Protocol):
    """Where records live.

    What it holds is not trusted: a record that can't be read is a miss, never a crash.
    """

    async def get(self, origin: str) -> Record | None:
        """Return the record of ``origin``, or None. Raises StoreError."""

    async def put(self, record: Record) -> None:
        """Keep ``record`` in place of what is held of its origin. Raises StoreError."""

    async def close(self) -> None:
        """Let go of everything that is open."""
