"""What a store of records is, and which one a URI names."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.settings import shown_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy_rep.protocol.record import Record
    from scrapy_rep.settings import Options
    from scrapy_rep.stores.memory import MemoryStore


class StoreError(Exception):
    """A store that can't be read or written just now: the crawl goes on without it."""


class Held(NamedTuple):
    """What a store holds of an origin."""

    record: Record | None
    """The last record that was put; None where there is none that can be read."""
    holder: str | None
    """Who holds the lease, the right to fetch the origin's robots.txt; None where nobody does."""


class Store(Protocol):
    """Where records live, and who fetches the robots.txt of an origin just now.

    What it holds is not trusted: a record that can't be read is a miss, never a crash.
    """

    async def get(self, origin: str) -> Held:
        """Return what is held of ``origin``. Raises StoreError."""

    async def claim(self, origin: str, holder: str, seconds: float) -> Held:
        """Give ``holder`` the lease of ``origin`` for ``seconds``, unless another holds it.

        Return what is held afterwards: the record is not older than the lease, so who got it
        after another's fetch sees that one's record. Raises StoreError.
        """

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Keep ``record`` in place of what is held of its origin. Raises StoreError.

        The lease ends with it, if it is that of ``holder``.
        """

    async def release(self, origin: str, holder: str) -> None:
        """End the lease of ``origin``, if it is that of ``holder``. Raises StoreError."""

    def origins(self) -> AsyncIterator[str]:
        """Yield the origins of all records, those that can't be read among them, page by page.

        One that is put or dropped meanwhile may be missing, and one may come twice. Raises
        StoreError.
        """

    async def drop(self, origin: str) -> bool:
        """Let go of the record of ``origin``; return whether there was one. Raises StoreError."""

    async def prune(self) -> int:
        """Let go of the records that are too old or too many, as the store does by itself.

        Return how many these were. Raises StoreError.
        """

    async def close(self) -> None:
        """Write what is still to be written, and let go of everything that is open.

        A store may be used again after that.
        """


def from_uri(options: Options) -> Store:
    """Return the store that REP_STORE names, kept from failing. Nothing is opened before its use.

    Raises SettingsError where what it needs isn't installed, or the URI can't be read.
    """
    if options.store == "memory://":
        return _memory(options)
    from scrapy_rep.stores.guarded import GuardedStore  # noqa: PLC0415 - they import this module

    return GuardedStore(
        bare_from_uri(options),
        _memory(options),
        name=shown_store(options.store),
        timeout=options.store_timeout,
    )


def bare_from_uri(options: Options, *, set_aside: bool = True) -> Store:
    """Return the store that REP_STORE names, whose errors come to who asks it.

    ``set_aside`` tells whether a file that is none of ours is renamed, so that another can take its
    place. Raises SettingsError as from_uri does.
    """
    if options.store == "memory://":
        return _memory(options)
    if options.store.startswith("sqlite:"):
        from scrapy_rep.stores.sqlite import SQLiteStore, path_of  # noqa: PLC0415 - imports this

        return SQLiteStore(
            path_of(options.store),
            max_size=options.max_size,
            max_age=options.store_max_age,
            max_bytes=options.store_max_bytes,
            timeout=options.store_timeout,
            clock=time,
            set_aside=set_aside,
        )
    try:
        from scrapy_rep.stores.redis import RedisStore  # noqa: PLC0415 - needs redis-py
    except ImportError:
        raise SettingsError(
            f"REP_STORE is {shown_store(options.store)!r}: it takes redis-py, which isn't "
            "installed: pip install scrapy-rep[redis]"
        ) from None
    return RedisStore(
        options.store,
        prefix=options.store_prefix,
        max_size=options.max_size,
        max_age=options.store_max_age,
        timeout=options.store_timeout,
    )


def _memory(options: Options) -> MemoryStore:
    from scrapy_rep.stores.memory import MemoryStore  # noqa: PLC0415 - imports this

    return MemoryStore(
        max_origins=options.memory_max_origins,
        max_bytes=options.memory_max_bytes,
        max_size=options.max_size,
    )
