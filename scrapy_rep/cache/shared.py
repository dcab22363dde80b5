"""The store, and the memory in front of it, that all crawls of a process share."""

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

_ALL: Final[WeakValueDictionary[Any, Shared]] = WeakValueDictionary()


class Shared:
    """A store and the in-memory level, for all crawlers that would make the same of a record.

    Both are closed and emptied with their last user, and serve again if another comes.
    """

    def __init__(self, options: Options) -> None:
        self.store = make_store(options.store_config)
        self.entries: BoundedCache[Origin, Entry] = BoundedCache(max_bytes=options.memory_max_bytes)
        self._users: set[object] = set()

    def join(self, user: object) -> None:
        """Tell of a user; twice is once."""
        self._users.add(user)

    async def leave(self, user: object) -> None:
        """Tell of a user's end."""
        if user not in self._users:
            return
        self._users.remove(user)
        if not self._users:
            self.entries.clear()
            await self.store.close()


def shared(options: Options) -> Shared:
    """Return what the crawlers with these options have in common."""
    # Whatever decides what an entry says, or how many there are: with another value of one of
    # these a crawler has a level of its own. Threads have event loops of their own.
    key = (
        threading.get_ident(),
        options.store_config,
        options.policy,
    )
    found = _ALL.get(key)
    if found is None:
        found = _ALL[key] = Shared(options)
    return found
