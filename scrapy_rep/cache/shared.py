"""The store, and the memory in front of it, that all crawls of a process share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from scrapy_rep.stores.registry import make_news, make_store
from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.settings import Options

_ALL: Final[WeakValueDictionary[Any, Shared]] = WeakValueDictionary()


class Shared:
    """A store and the in-memory level, for all crawlers that would make the same of a record.

    Both are closed and emptied with their last user, and serve again if another comes.
    """

    def __init__(self, options: Options) -> None:
        self.store = make_store(options.store_config)
        self.entries: BoundedCache[Origin, Entry] = BoundedCache(
            options.memory_max_origins, options.memory_max_bytes
        )
        self._news = make_news(options.store_config)
        self._users: dict[object, Callable[[Origin], None]] = {}

    def join(self, user: object, news: Callable[[Origin], None]) -> None:
        """Tell of a user; twice is once.

        ``news`` is called with an origin of which another worker has learned something.
        """
        if self._news is not None and not self._users:
            self._news.listen(self._heard)
        self._users[user] = news

    async def leave(self, user: object) -> None:
        """Tell of a user's end."""
        if user not in self._users:
            return
        del self._users[user]
        if not self._users:
            if self._news is not None:
                self._news.close()
            self.entries.clear()
            await self.store.close()

    async def tell(self, record: Record) -> None:
        """Tell the other workers of a record that says otherwise than the one before."""
        if self._news is not None:
            await self._news.tell(record.origin, record.last.evidence.at)

    def _heard(self, origin: Origin, at: float) -> None:
        entry = self.entries.get(origin)
        # What a crawl of this very process has told it knows.
        if entry is not None and entry.start != at:
            self.entries.drop(origin)
        for news in list(self._users.values()):
            news(origin)


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
