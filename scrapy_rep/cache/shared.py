"""The store and the in-memory entries, which crawls of a process share."""

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
    """A store and the in-memory entries of crawlers with the same options of store and policy.

    When the last user leaves, the store is closed and the entries are removed. Both can be used
    again by the next one.
    """

    def __init__(self, options: Options) -> None:
        self.store: Store = make_store(options.store_config)
        self.entries: BoundedCache[Origin, Entry] = BoundedCache(max_bytes=options.memory_max_bytes)
        self._users: set[object] = set()

    def join(self, user: object) -> None:
        """Add a user, unless it has been added already."""
        self._users.add(user)

    async def leave(self, user: object) -> None:
        """Remove a user; close the store after the last one."""
        if user not in self._users:
            return
        self._users.remove(user)
        if not self._users:
            self.entries.clear()
            await self.store.close()


def shared(options: Options) -> Shared:
    """Return the store and the entries for crawlers with these options."""
    # The options that determine the content of entries, and their number. Threads are kept apart,
    # because they have event loops of their own.
    key = (
        threading.get_ident(),
        options.store_config,
        options.policy,
    )
    found = _ALL.get(key)
    if found is None:
        found = _ALL[key] = Shared(options)
    return found
