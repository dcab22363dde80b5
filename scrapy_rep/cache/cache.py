"""The memory of what each origin allows, and the way to find out what isn't in it."""

from __future__ import annotations

import logging
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.flights import Flights
from scrapy_rep.cache.lookup import Lookup
from scrapy_rep.cache.tdmrep import TdmrepCache
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Request

    from scrapy_rep.cache.lookup import LookupContext
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.product_tokens import Tokens
    from scrapy_rep.protocol.record import Record

    Parsed = Callable[[RobotsTxt, Request], Awaitable[None]]

logger = logging.getLogger(__name__)

_MANY_RETURNS: Final = 1_000
"""Look-ups of what was in memory before, at which the log tells that there are many."""
_MAX_OWN: Final = 10_000
"""Origins that a crawl could not come to, of which it holds that."""


class Census(NamedTuple):
    """The current numbers of origins and requests."""

    known: int
    """Origins whose robots.txt is known, or known to be unreachable."""
    waiting: int
    """Origins that are being looked up."""
    requests: int
    """Requests that wait for these lookups."""
    unreachable: int
    """Known origins whose robots.txt is unreachable."""


class _Found(NamedTuple):
    """What a look-up came to."""

    entry: Entry
    robots: RobotsTxt | None
    """The robots.txt whose rules hold."""
    is_news: bool = False
    """Whether ``robots_parsed`` is to tell of it."""


class Cache:
    """Knows, or finds out, what may be fetched of each origin.

    ``entries``, like the store, may be shared with other crawls of the process. ``parsed`` is
    awaited with every robots.txt that is read; ``count`` is called with the names of stats.
    """

    def __init__(
        self,
        context: LookupContext,
        entries: BoundedCache[Origin, Entry],
        parsed: Parsed,
        count: Callable[[str], None],
    ) -> None:
        self._policy = context.policy
        self._entries = entries
        # What an earlier crawl of the process could not reach may be well again: the store has it.
        for origin, entry in list(zip(entries, entries.values(), strict=True)):
            if entry.is_unreachable:
                entries.discard(origin)
        self._entry_of = entries.get
        self._own: BoundedCache[Origin, Entry] = BoundedCache(max_entries=_MAX_OWN)
        """Entries of tries of which not the origin decided, which say nothing to other crawls."""
        self._parsed = parsed
        self._count = count
        self._time = context.clock.time
        self._began = self._time()
        self._returns = 0
        self._limit = context.limit
        self._flights: Flights[_Found] = Flights(self._look_up, self._landed)
        self._lookup = Lookup(context, ROBOTSTXT, self.known_entry, count)
        self.tdmrep = TdmrepCache(context, entries.max_bytes)
        """The same of tdmrep.json, which is asked for where usage is judged by it."""

    @property
    def closing(self) -> bool:
        """Whether the crawl is closing, and nothing is looked up any more."""
        return self._flights.closing

    @property
    def room(self) -> int:
        """How many look-ups more may begin."""
        return self.most_look_ups - len(self._flights) - self.tdmrep.fetching

    @property
    def most_look_ups(self) -> int:
        """How many may be under way; those of slow sites, and of other workers, don't count."""
        return 2 * self._limit.places + self._limit.slow + self._lookup.waiting

    def when_slow(self, call: Callable[[], None]) -> None:
        """Let ``call`` be called when there may be room: a fetch takes long, or is another's."""
        self._limit.when_slow = call

    def known_entry(self, origin: Origin) -> Entry | None:
        """Return what is known of ``origin`` and still holds, or None. Nothing is awaited."""
        entry = self._entry_of(origin)
        if entry is not None and entry.start <= self._time() < entry.end:
            return entry
        if len(self._own):
            own = self._own.get(origin)
            if own is not None and own.start <= self._time() < own.end:
                return own
        return None

    async def entry(self, origin: Origin, tokens: Tokens, page: Request) -> Entry:
        """Return what is known of ``origin``, with the rules for ``tokens``, when it is.

        ``page`` is the request that waits. Raises CrawlClosingError.
        """
        found = await self._flights.join(origin, tokens, page)
        if found.robots is not None and not found.entry.has(tokens):
            self._hold(origin, found.entry, tokens, found.robots)
        return found.entry

    async def robotstxt(self, origin: Origin, tokens: Tokens, page: Request) -> RobotsTxt | None:
        """Return the robots.txt whose rules hold for ``origin``, if any does, when it is known.

        Nothing is fetched that holds. Raises CrawlClosingError.
        """
        return (await self._flights.join(origin, tokens, page)).robots

    async def record(self, origin: Origin) -> Record | None:
        """Return what the store holds of ``origin``. Nothing is fetched."""
        return await self._lookup.stored(origin)

    def census(self) -> Census:
        """Return how many origins are known, looked up just now, and unreachable."""
        now = self._time()
        held = chain(self._entries.values(), self._own.values())
        entries = [entry for entry in held if entry.start <= now < entry.end]
        return Census(
            known=len(entries),
            waiting=len(self._flights),
            requests=self._flights.waiters,
            unreachable=sum(entry.is_unreachable for entry in entries),
        )

    def close(self) -> None:
        """End every look-up; whoever waits gets CrawlClosingError."""
        self._flights.close()
        self.tdmrep.close()

    async def finish(self) -> None:
        """Wait until the store has been told of everything."""
        await self._flights.finish()
        await self._lookup.finish()
        await self.tdmrep.finish()

    async def _look_up(self, origin: Origin, tokens: Tokens, page: Request) -> _Found:
        try:
            asked = self._time()
            record = await self._lookup.record(origin, page)
            if self._entries.evicted and self._began <= record.last.evidence.at < asked:
                self._count_return()
            is_known = self.known_entry(origin) is not None
            entry, robots = self.remember(origin, record, tokens)
        except Exception as error:
            if self.closing and isinstance(error, CancelledError):
                raise
            logger.exception("Error while looking up robots.txt of %s", origin)
            return _Found(self._shut(origin), None)
        # Of what is known already only the rules of other tokens were asked.
        is_news = robots is not None and record.copy is record.last and not is_known
        return _Found(entry, robots, is_news)

    def _count_return(self) -> None:
        """Count a look-up of what this crawl knew already, before it left the memory."""
        self._count(stats.MEMORY_MISSES)
        self._returns += 1
        if self._returns == _MANY_RETURNS:
            logger.info(
                "The robots.txt rules of %d sites fill REP_MEMORY_MAX_BYTES (%d). Those used least "
                "recently are removed, and read from REP_STORE again when they are needed: %d "
                "times so far. Increase REP_MEMORY_MAX_BYTES to save that",
                len(self._entries),
                self._entries.max_bytes,
                self._returns,
            )

    async def _landed(self, origin: Origin, found: _Found | None, page: Request) -> None:
        await self._lookup.store_fetched(origin)
        # When nobody waits any more: a handler may ask for pages of this very origin.
        if found is not None and found.robots is not None and found.is_news:
            await self._parsed(found.robots, page)

    def remember(
        self, origin: Origin, record: Record, tokens: Tokens
    ) -> tuple[Entry, RobotsTxt | None]:
        """Hold in memory what ``record`` says; return it, and the robots.txt whose rules hold."""
        access = self._policy.access(record, self._time())
        entry = self._entries.get(origin)
        if entry is None or not entry.is_of(access):
            entry = Entry(access)
        if not record.of_origin:
            entry = Entry(access)
            self._own.put(origin, entry)
            return entry, None
        self._own.discard(origin)
        robots = None if access.copy is None else RobotsTxt.parse(access.copy.body)
        self._hold(origin, entry, tokens, robots)
        return entry, robots

    def _hold(self, origin: Origin, entry: Entry, tokens: Tokens, robots: RobotsTxt | None) -> None:
        if robots is not None:
            entry.add(tokens, robots)
        self._entries.put(origin, entry, entry.nbytes)

    def _shut(self, origin: Origin) -> Entry:
        """Hold that nothing of ``origin`` may be fetched, as an error of ours kept us from it."""
        now = self._time()
        end = now + self._policy.retry_delay
        entry = Entry(Access(Grant.NONE, Reason.ERROR, None, now, end))
        self._hold(origin, entry, (), None)
        return entry
