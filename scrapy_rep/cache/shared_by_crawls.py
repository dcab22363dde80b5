"""The store and the entries in memory, which several crawls of a process may share."""

from __future__ import annotations

import threading
from typing import Any, Final
from weakref import WeakValueDictionary

from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import Options
from scrapy_rep.stores.keeper import Keeper
from scrapy_rep.stores.uri import make_keeper
from scrapy_rep.utils.bounded import BoundedCache

_ALL: Final[WeakValueDictionary[Any, Shared]] = WeakValueDictionary()


class Shared:
    """The store and the entries in memory of all crawls with the same store and policy options.

    Each crawl joins as a user. When the last user has left, the store is closed and the entries are
    removed. A later user can use the same object again.
    """

    def __init__(self, options: Options) -> None:
        self.store: Keeper = make_keeper(options.store_config)
        self.entries: BoundedCache[Origin, Entry] = BoundedCache(max_bytes=options.memory_max_bytes)
        self._users: set[Lookups[Any]] = set()

    def add_user(self, user: Lookups[Any]) -> None:
        for other in self._users:
            other.claim_fetched()
        self._users.add(user)
        self.store.users = len(self._users)

    async def remove_user(self, user: Lookups[Any]) -> None:
        """If it was the last user, remove the entries and close the store."""
        if user not in self._users:
            return
        self._users.remove(user)
        self.store.users = len(self._users)
        if not self._users:
            self.entries.clear()
            await self.store.close()


def get_shared(options: Options) -> Shared:
    """Return what crawls of this thread with the same store and policy share, while one has it."""
    # These options determine the content and the number of entries. Threads don't share a store,
    # because each thread has an event loop of its own.
    key = threading.get_ident(), options.store_config, options.policy
    found = _ALL.get(key)
    if found is None:
        found = _ALL[key] = Shared(options)
    return found
