"""The store and the in-memory entries that crawls of one process share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from scrapy_rep.stores.registry import make_store
from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.settings import Options
    from scrapy_rep.stores.base import Store

_ALL: Final[WeakValueDictionary[Any, Shared]] = WeakValueDictionary()


class Shared:
    """The store and the entries of all crawls with the same options.

    When the last crawl leaves, the store is closed and the entries are removed. A later crawl may
    join again.
    """

    def __init__(self, options: Options) -> None:
        self.store: Store = make_store(options.store_config)
        self.entries: BoundedCache[Origin, Entry] = BoundedCache(max_bytes=options.memory_max_bytes)
        self._users: set[object] = set()

    def join(self, user: object) -> None:
        """Add a crawl; adding it twice has no effect."""
        self._users.add(user)

    async def leave(self, user: object) -> None:
        """Remove a crawl; close the store after the last one."""
        if user not in self._users:
            return
        self._users.remove(user)
        if not self._users:
            self.entries.clear()
            await self.store.close()


def shared(options: Options) -> Shared:
    """Return what the crawls with these options share."""
    # The options that affect entries. Each thread has its own event loop, so nothing is shared
    # between threads.
    key = (
        threading.get_ident(),
        options.store_config,
        options.policy,
    )
    found = _ALL.get(key)
    if found is None:
        found = _ALL[key] = Shared(options)
    return found
