"""The cache of the entries of origins in memory, and the lookups that make new entries.

An entry contains the compiled rules for the product tokens of the crawl, and the times between
which they are valid. If an origin has no valid entry, a lookup reads its record (how the last
fetches of robots.txt ended, with the text) in the store. If the record has expired too, the lookup
fetches robots.txt. Crawls of one process may share the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final
from weakref import WeakValueDictionary

from scrapy import Request

from scrapy_rep import stats
from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.lookups import Lookup, LookupResult, Lookups
from scrapy_rep.protocol.access_policy import Access
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.stores.uri import make_write_behind
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.log import LimitedLogger

Parsed = Callable[[RobotsTxt, Request], object]
_ERROR: Final = Verdict(allowed=False, reason=Reason.ERROR)


class Cache:
    """Returns the entries of origins from memory, or after a lookup.

    ``parsed`` is called with each robots.txt that is new in memory, and the request that waited.
    If the crawl is closing, lookups raise CrawlClosingError.
    """

    def __init__(
        self, lookups: Lookups, entries: BoundedCache[Origin, Entry], parsed: Parsed
    ) -> None:
        self.lookups: Lookups = lookups
        lookups.make = self._result_of
        self._policy = lookups.policy
        self._entries = entries
        self._entry_of = entries.get
        self._parsed = parsed
        self._time = lookups.clock.time
        self._began = self._time()
        self._logger = LimitedLogger(__name__, lookups.crawler)

    def known_entry(self, origin: Origin) -> Entry | None:
        """Return the entry of ``origin`` in memory; None if there is none, or it is not valid.

        Also returned is one that has expired, but is valid for its first page.
        """
        now = self._time()
        entry = self._entry_of(origin)
        # As entry.is_valid(now), in less time.
        return entry if entry is not None and entry.start <= now < entry.valid_until else None

    async def entry(self, origin: Origin, tokens: Tokens, page: Request) -> Entry:
        """Look up ``origin``, even if in memory; return its entry with the rules for ``tokens``.

        After an error, which is logged, the entry disallows all pages. Raises CrawlClosingError.
        """
        return (await self.lookups.result(origin, tokens, page)).entry

    async def robotstxt(self, origin: Origin, tokens: Tokens, page: Request) -> RobotsTxt | None:
        """Look up ``origin``; return the robots.txt whose rules are valid; None if no rules are."""
        return (await self.lookups.result(origin, tokens, page)).robots

    async def stored_entry(self, origin: Origin, tokens: Tokens) -> Entry | None:
        """Return an entry of ``origin`` from its valid record; None if there is no such record.

        Nothing is fetched, and no lookup is waited for. The entry has the rules for ``tokens``. It
        is not put in memory: this is left to a lookup, which also announces the record.
        """
        record = await self.lookups.stored(origin)
        return self._entry_for(record, (tokens,)).entry if self.lookups.is_fresh(record) else None

    def _result_of(self, lookup: Lookup, end: Record | Exception) -> LookupResult:
        origin = lookup.origin
        try:
            if isinstance(end, Exception):
                raise end  # noqa: TRY301 - as if it had been raised here
            known, fetched = self.known_entry(origin), end.last.evidence.at
            if known is None and self._entries.evicted and self._began <= fetched < lookup.began:
                self.lookups.count(stats.MEMORY_MISSES)
            is_known = known is not None and known.start == fetched
            result = self.put_record(origin, end, *lookup.tokens)
        except Exception:
            self._logger.exception("Error while looking up robots.txt of %s", origin)
            now = self._time()
            entry = Entry(Access(_ERROR, None, now, now + self._policy.retry_delay))
            self._entries.put(origin, entry, entry.nbytes)
            return LookupResult(entry, None)
        # If the origin had a valid entry, its robots.txt was only parsed again for other tokens.
        if result.robots is not None and end.copy is end.last and not is_known:
            self._parsed(result.robots, lookup.page)
        return result

    def put_record(self, origin: Origin, record: Record, *tokens: Tokens) -> LookupResult:
        """Put the entry for ``record``, with the rules for each of ``tokens``, in memory.

        An entry that is there stays, with rules for more tokens, if ``record`` has changed nothing.
        After a failure on the route, for example at a proxy, a valid entry stays.
        """
        result = self._entry_for(record, tokens)
        if record.of_origin or self.known_entry(origin) is None:
            self._entries.put(origin, result.entry, result.entry.nbytes)
        return result

    def _entry_for(self, record: Record, token_lists: Iterable[Tokens]) -> LookupResult:
        access = self._policy.access(record, self._time())
        known = self._entries.get(record.origin)
        entry = known if known is not None and known.is_from(access) else Entry(access)
        robots = None
        if access.copy is not None:
            robots = RobotsTxt.parse(access.copy.body)
            for tokens in token_lists:
                entry.add_rules(tokens, robots)
        return LookupResult(entry, robots)


_STORES: Final[WeakValueDictionary[Any, WriteBehind]] = WeakValueDictionary()


def shared_store(options: Options) -> WriteBehind:
    """Return the store of all crawls of this thread with the same store and policy options."""
    # These options determine the content of the records. Threads don't share a store,
    # because each thread has an event loop of its own.
    config = options.store, options.memory_max_bytes
    key = threading.get_ident(), config, options.policy
    found = _STORES.get(key)
    if found is None:
        found = _STORES[key] = make_write_behind(*config)
    return found
