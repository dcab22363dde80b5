"""The cache of the entries of origins in memory.

An entry contains the compiled rules for the product tokens of the crawl, and the times between
which they are valid. If an origin has no valid entry, a lookup makes one. Crawls of one process may
share the store of the lookups.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.cache.entry import MAX_UNUSED, Entry
from scrapy_rep.protocol.access_policy import Access, Policy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.stores.uri import make_write_behind
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.log import LimitedLogger


class LookupResult(NamedTuple):
    """The result of a lookup."""

    entry: Entry
    robots: RobotsTxt | None
    """The robots.txt whose rules are valid; None if no rules are valid."""


@dataclass(eq=False, repr=False)
class Cache:
    """Keeps the entries of origins in memory."""

    entries: BoundedCache[Origin, Entry]
    policy: Policy
    clock: Clock
    parsed: Callable[[RobotsTxt, Request], object]
    """Called with each robots.txt that is new in memory, and the request that waited."""
    count: Callable[[str], None] = lambda _: None
    crawler: Crawler | None = None
    """The crawl whose log lines these are; None without one."""

    def __post_init__(self) -> None:
        self._entry_of = self.entries.get
        self._time = self.clock.time
        self._began = self._time()
        self._logger = LimitedLogger(__name__, self.crawler)

    def known_entry(self, origin: Origin) -> Entry | None:
        """Return the entry of ``origin`` in memory; None if there is none, or it is not valid."""
        now = self._time()
        entry = self._entry_of(origin)
        # As entry.is_valid(now), in less time.
        return entry if entry is not None and entry.start <= now < entry.valid_until else None

    def is_for_first_page(self, record: Record) -> bool:
        """Return whether ``record`` may decide on a first page, even if it has expired.

        It may if the entry in memory is unused, not newer, and at most MAX_UNUSED seconds old.
        """
        entry, now = self.entries.get(record.origin), self._time()
        if entry is None or not entry.is_unused:
            return False
        is_in_time = entry.start <= record.last.evidence.at <= now < entry.start + MAX_UNUSED
        return is_in_time and self.policy.access(record, now).may_allow

    def put_result(
        self,
        origin: Origin,
        end: Record | Exception,
        token_lists: Iterable[Tokens],
        page: Request,
        began: float,
    ) -> LookupResult:
        """Put the entry of a lookup that ``began`` then for ``page`` in memory; return the result.

        After an error, which is logged, the entry disallows all pages.
        """
        try:
            if isinstance(end, Exception):
                raise end  # noqa: TRY301 - as if it had been raised here
            known, fetched = self.entries.get(origin), end.last.evidence.at
            if known is None and self.entries.evicted and self._began <= fetched < began:
                self.count(stats.MEMORY_MISSES)
            is_known = known is not None and known.start == fetched
            result = self.put_record(origin, end, *token_lists)
        except Exception:
            self._logger.exception("Error while looking up robots.txt of %s", origin)
            now, verdict = self._time(), Verdict(allowed=False, reason=Reason.ERROR)
            entry = Entry(Access(verdict, None, now, now + self.policy.retry_delay))
            self.entries.put(origin, entry, entry.nbytes)
            return LookupResult(entry, None)
        # With the entry of this record, robots.txt was only parsed again for other tokens.
        if result.robots is not None and end.copy is end.last and not is_known:
            self.parsed(result.robots, page)
        return result

    def put_record(self, origin: Origin, record: Record, *tokens: Tokens) -> LookupResult:
        """Put the entry for ``record``, with the rules for each of ``tokens``, in memory.

        An entry that is there stays, with rules for more tokens, if ``record`` has changed nothing.
        After a failure on the route, for example at a proxy, a valid entry stays.
        """
        result = self.result_of(record, *tokens)
        if record.of_origin or self.known_entry(origin) is None:
            self.entries.put(origin, result.entry, result.entry.nbytes)
        return result

    def result_of(self, record: Record, *token_lists: Tokens) -> LookupResult:
        """Return the result for ``record``; an entry that is new is not put in memory."""
        access = self.policy.access(record, self._time())
        known = self.entries.get(record.origin)
        entry = known if known is not None and known.is_from(access) else Entry(access)
        robots = None
        if access.copy is not None:
            robots = RobotsTxt.parse(access.copy.body)
            for tokens in token_lists:
                entry.add_rules(tokens, robots, len(token_lists))
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
