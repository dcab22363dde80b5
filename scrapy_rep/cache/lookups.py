"""Lookups: the record of robots.txt is read in the store, or else the file is fetched.

There is one lookup of an origin at a time, for all that wait for it. Those that begin within ten
milliseconds read the store together. A lookup whose record is fresh ends at once; else a task
fetches robots.txt, and what was fetched is written behind. Where other workers use the store, the
fetch needs the lease of the origin: without it, the lookup is done again until the record of the
other worker is there.

At most REP_CONCURRENT_FETCHES lookups are under way, without those that take longer than a second,
as sites that hang must not block other sites, and those that wait for another worker. Each may have
a connection open, so all together use at most half of the files that the process may open.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from scrapy import Request
from scrapy.utils.asyncio import call_later
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep import stats
from scrapy_rep.cache.cache import Cache, LookupResult
from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.lookup_log import LookupLog
from scrapy_rep.cache.records import Records, other_origin
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import Outcome, Unreachable
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.record import Record
from scrapy_rep.stores.base import Claim, Release
from scrapy_rep.stores.write_behind import Known, WriteBehind
from scrapy_rep.utils.concurrency import Background, Clock, Promise, Timer
from scrapy_rep.utils.log import LimitedLogger

if sys.platform != "win32":
    import resource

_SLOW: Final = 1.0
"""Seconds after which a fetch is slow."""
_POLL: Final = 0.05
"""Seconds after which the store is read again the first time while another worker fetches."""
_POLL_MAX: Final = 1.0
_POLL_GROWTH: Final = 1.5
_LOGGED_POLL: Final = 11
"""Number of reads, in some five seconds, after which it is logged for whom the lookup waits."""


Done = Callable[[LookupResult | None], object]
"""Called with the result of a lookup; with None after an error, or if the crawl closes."""


@dataclass(eq=False)
class Lookup:
    """A lookup that waits for its turn, or is under way."""

    origin: Origin
    page: Request
    """The request that has begun it."""
    began: float
    """When it began, in seconds since the epoch."""
    tokens: set[Tokens] = field(default_factory=set)
    """The product tokens of all that wait."""
    staying: list[Done] = field(default_factory=list)
    """Those that stay when the crawl closes."""
    leaving: list[Done] = field(default_factory=list)
    """Those that wait only until the crawl closes."""
    task: Deferred[object] | None = None
    has_lease: bool = False
    """Whether the lease of the origin was claimed, and not given to another worker."""
    is_alone: bool = False
    """Whether the last reading of the store has shown no other worker."""
    polls: int = 0
    """How often the lookup has found that another worker fetches."""
    timer: Timer | None = None
    is_over: bool = False

    def __post_init__(self) -> None:
        self.key: str = str(self.origin)
        """The key of the record, and of the lease, in the store."""


@dataclass(eq=False, repr=False)
class Lookups:
    """All lookups of a crawl. After ``close``, only those that something stays for go on.

    A lookup waits for one of ``permits`` places (``_waiting``). When it has one it is under way: it
    waits for the reading (``_to_read``), for its lease, or for its fetch. It gives up the place if
    the fetch is slow (``slow``), or another worker fetches: then it begins again.
    """

    cache: Cache
    store: WriteBehind
    fetch: Callable[[Origin, Request], Awaitable[Outcome]]
    """Fetches a robots.txt. Called with its origin and the request that waits."""
    send_record: Callable[[Record, Record | None, Request], None]
    """Called with the record of each lookup that has fetched, or found it in the store; the record
    before (the same object if nothing was fetched, None if there was none); and the request that
    waited."""
    jitter: Callable[[], float]
    """Returns a random number from 0 to 1."""
    permits: int
    """REP_CONCURRENT_FETCHES."""
    name: str
    """Name of this crawl, which no other crawl with the same store has."""
    lease: float
    """Duration of the lease under which a worker fetches, in seconds."""
    read_after: float = 0.01
    """Seconds in which lookups begin that read the store together: one by one costs more."""

    def __post_init__(self) -> None:
        self.clock: Clock = self.cache.clock
        self.on_room: Callable[[], None] = lambda: None
        """Called when ``has_room`` may have become true."""
        self.closing: bool = False
        """Whether the crawl has begun to close."""
        self._is_over = False
        """Whether it has ended: nothing is looked up any more."""
        self._all: dict[Origin, Lookup] = {}
        self._waiting: deque[Lookup] = deque()
        self._to_read: list[Lookup] = []
        """Those that read the store together, ``read_after`` seconds after the first began."""
        self._under_way: set[Lookup] = set()
        self.slow: set[Lookup] = set()
        """Those whose fetch takes long, at most ``_max_slow``."""
        self._max_slow = max(0.0, _max_open_files() / 2 - self.permits)
        policy = self.cache.policy
        self.records: Records = Records(self.store, policy, self.clock, self.jitter)
        self._log = LookupLog(policy, self.clock.time(), self.cache.crawler)
        self._logger = LimitedLogger(__name__, self.cache.crawler)
        self._tasks = Background()

    @property
    def has_room(self) -> bool:
        """Whether a lookup may be started now, and waits for no other."""
        return len(self._under_way) < self.permits and not self._waiting and not self.closing

    def join(
        self, origin: Origin, tokens: Tokens, page: Request, done: Done, *, stays: bool = False
    ) -> None:
        """Call ``done`` when the lookup that is under way, or a new one, has ended.

        The entry of its result has the rules for ``tokens``; a new one is made for ``page``. If the
        crawl closes, the lookup goes on only if something ``stays``. Raises CrawlClosingError if
        the crawl has ended.
        """
        if self._is_over:
            raise CrawlClosingError
        lookup = self._all.get(origin)
        if lookup is None:
            lookup = self._all[origin] = Lookup(origin, page, self.clock.time())
            self._waiting.append(lookup)
            self._begin()
        lookup.tokens.add(tokens)
        (lookup.staying if stays else lookup.leaving).append(done)

    async def result(
        self, origin: Origin, tokens: Tokens, page: Request, *, stays: bool = False
    ) -> LookupResult:
        """Return the result of ``join``.

        After an error, which is logged, the entry disallows all pages. Raises CrawlClosingError if
        the crawl is closing, or closes meanwhile, unless the caller ``stays``, and LookupError if
        there is no entry.
        """
        if self.closing and not stays:
            raise CrawlClosingError
        # One promise for each request: if one request is cancelled, all others must go on waiting.
        promise: Promise[LookupResult | None] = Promise()
        self.join(origin, tokens, page, promise.set_result, stays=stays)
        if (result := await promise) is None:
            raise CrawlClosingError if self.closing else LookupError(f"no result for {origin}")
        return result

    async def stored_entry(self, origin: Origin, tokens: Tokens) -> Entry | None:
        """Return an entry of ``origin`` from its valid record; None if there is no such record.

        Nothing is fetched, and no lookup is waited for. The entry, that in memory or a new one, has
        the rules for ``tokens``. A new one is not put there: this is left to a lookup, which also
        announces the record.
        """
        record = await self.records.read(origin)
        is_fresh = self.records.is_fresh
        return self.cache.result_of(record, tokens).entry if is_fresh(record) else None

    def join_store(self) -> None:
        """Tell the crawls of this process that use the store that this one has come."""
        for tell in self.store.users:
            tell()
        self.store.users.add(self.claim_fetched)

    async def leave_store(self) -> None:
        """Close the store, unless another crawl of this process uses it."""
        self.store.users.discard(self.claim_fetched)
        if not self.store.users:
            await self.store.close()

    def close(self, *, at_once: bool = False) -> None:
        """Cancel all lookups that nothing stays for, or all ``at_once``.

        Who waits for them, or doesn't stay, gets None.
        """
        self.closing, self._is_over = True, at_once
        self._waiting = deque(each for each in self._waiting if each.staying and not at_once)
        for lookup in list(self._all.values()):
            if lookup.staying and not at_once:
                self._tell(lookup, lookup.leaving, None)
                continue
            if lookup.task is not None:
                lookup.task.cancel()
            self._end(lookup, None)

    async def finish(self) -> None:
        await self._tasks.finish()

    def claim_fetched(self) -> None:
        """Claim the leases of what is fetched without one, as another worker has come."""
        without = [each for each in self._under_way if each.task is not None and not each.has_lease]
        if without:
            self.store.put(*map(self._claim, without))

    # Which lookups are under way.

    def _begin(self) -> None:
        """Begin as many lookups as there is room for. They soon read the store, together."""
        while self._waiting and len(self._under_way) < self.permits:
            lookup = self._waiting.popleft()
            self._under_way.add(lookup)
            if not self._to_read:
                call_later(self.read_after, self._read)
            self._to_read.append(lookup)

    def _make_slow(self, lookup: Lookup) -> None:
        """Let another lookup begin in place of one whose fetch takes long, at most _max_slow."""
        if len(self.slow) >= self._max_slow:
            lookup.timer = self.clock.call_later(_SLOW, self._make_slow, lookup)
            return
        # Alone it fetches without a lease, but by now another worker may have come.
        if not lookup.has_lease:
            self.store.put(self._claim(lookup))
        self._stop_counting(lookup)
        self.slow.add(lookup)

    def _stop_counting(self, lookup: Lookup) -> None:
        if lookup.timer is not None:
            lookup.timer.cancel()
        self.slow.discard(lookup)
        if lookup not in self._under_way:
            return
        self._under_way.remove(lookup)
        self._begin()
        if self.has_room:
            self.on_room()

    # What a lookup does.

    def _read(self) -> None:
        begun, self._to_read = self._to_read, []
        if self._is_over:
            return
        known = self.store.peek([lookup.key for lookup in begun])
        if known is None:
            self._tasks.start(self._read_in_thread(begun))
        else:
            self._decide_all(begun, known)

    async def _read_in_thread(self, begun: list[Lookup]) -> None:
        self._decide_all(begun, await self.store.read([lookup.key for lookup in begun]))

    def _decide_all(self, begun: list[Lookup], known: Known) -> None:
        """End the lookups with a fresh record; fetch the others, or first claim their leases."""
        for lookup in begun:
            lookup.is_alone = known.is_complete and not known.has_others
        due = [each for each in begun if not (each.is_over or self._end_if_fresh(each, known))]
        if not known.has_others:
            for lookup in due:
                self._start_fetch(lookup, known)
            return
        self.claim_fetched()
        if due:
            self._tasks.start(self._claim_all(due))

    def _end_if_fresh(self, lookup: Lookup, known: Known) -> bool:
        """End ``lookup`` if nothing has to be fetched for its page; return whether it has ended."""
        record = self.records.last(lookup.origin, known)
        if record is None:
            return False
        # After a fetch that failed, a record that has expired is not used.
        is_for_first_page = lookup.task is None and self.cache.is_for_first_page(record)
        if not (is_for_first_page or self.records.is_fresh(record)):
            return False
        if self.records.is_stored(record):
            self.records.forget_unstored(record.origin)
            self.cache.count(stats.STORE_FOUND)
            self._log.log_stored(record, self.clock.time())
            self.send_record(record, record, lookup.page)
        self._end(lookup, record)
        return True

    async def _claim_all(self, lookups: list[Lookup]) -> None:
        """Claim the leases; fetch where this worker has got it, else wait for the other worker."""
        leases = await self.store.change(*map(self._claim, lookups))
        # What another worker stored before its lease ended is there now.
        known = await self.store.read([lookup.key for lookup in lookups])
        for lookup, lease in zip(lookups, leases, strict=True):
            lookup.has_lease = lease is None or lease.holder == self.name
            if lookup.is_over or self._end_if_fresh(lookup, known):
                self._release(lookup)
            elif lease is None or lookup.has_lease:
                self._start_fetch(lookup, known)
            else:
                self._wait_for_other(lookup, lease.left)

    def _claim(self, lookup: Lookup) -> Claim:
        lookup.has_lease = True
        return Claim(lookup.key, self.name, self.lease)

    def _release(self, lookup: Lookup) -> None:
        if lookup.has_lease:
            lookup.has_lease = False
            self.store.put(Release(lookup.key, self.name))

    def _wait_for_other(self, lookup: Lookup, left: float) -> None:
        """Do the lookup again in a while; it doesn't count until then."""
        if lookup.polls == 0:
            self.cache.count(stats.STORE_WAITED)
        if lookup.polls == _LOGGED_POLL:
            self._logger.info(
                "Waiting for robots.txt of %s: another worker fetches it, or was killed while it "
                "did; its lease ends in %.0f s at the latest",
                lookup.origin,
                left,
            )
        pause = min(_POLL_MAX, _POLL * _POLL_GROWTH**lookup.polls)
        lookup.polls += 1
        self._stop_counting(lookup)
        self.clock.call_later(pause, self._begin_again, lookup)

    def _begin_again(self, lookup: Lookup) -> None:
        if not lookup.is_over:
            self._waiting.appendleft(lookup)
            self._begin()

    def _start_fetch(self, lookup: Lookup, known: Known) -> None:
        lookup.timer = self.clock.call_later(_SLOW, self._make_slow, lookup)
        lookup.task = self._tasks.start(self._fetch(lookup, known))

    async def _fetch(self, lookup: Lookup, known: Known) -> None:
        origin, page = lookup.origin, lookup.page
        try:
            outcome = await self.fetch(origin, page)
            if isinstance(outcome, Unreachable):
                # The lease may have ended, if this worker was stopped, or the store has failed.
                known = await self.store.read([lookup.key])
                if self._end_if_fresh(lookup, known):
                    return
            previous = self.records.previous(origin, known, outcome)
            record = self.records.after(previous, origin, outcome, known)
            self._log.log_fetched(record, previous, self.clock.time())
            self.send_record(record, previous, page)
            self.records.keep(record)
            self._release(lookup)
            self._end(lookup, record)
            other = other_origin(outcome)
            if other is not None and other not in self._all:
                await self.records.keep_for_other(other, outcome)
        except (CancelledError, asyncio.CancelledError):
            self._end(lookup, None)
            if not self.closing:
                raise
        except Exception as error:
            if lookup.is_over:
                raise  # and it is logged
            self._end(lookup, error)
        finally:
            self._release(lookup)

    # How a lookup ends.

    def _end(self, lookup: Lookup, end: Record | Exception | None) -> None:
        """Pass what is made of a record or an error to all that wait; None if the crawl closes."""
        if lookup.is_over:
            return
        lookup.is_over = True
        del self._all[lookup.origin]
        result = None
        try:
            if end is not None:
                of_lookup = lookup.tokens, lookup.page, lookup.began
                result = self.cache.put_result(lookup.origin, end, *of_lookup)
                result.entry.mark_looked_up(self.clock.time(), is_alone=lookup.is_alone)
        except Exception:
            self._logger.exception("Error after the lookup of %s", lookup.origin)
        self._tell(lookup, lookup.staying + lookup.leaving, result)
        self._stop_counting(lookup)

    def _tell(self, lookup: Lookup, waiters: list[Done], result: LookupResult | None) -> None:
        lookup.leaving = []
        for done in waiters:
            try:
                done(result)
            except Exception:  # noqa: PERF203 - the others are to get it
                self._logger.exception("Error after the lookup of %s", lookup.origin)


def _max_open_files() -> float:
    """Return how many files this process may open; infinity without a limit."""
    if sys.platform == "win32":
        return 1_024
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft
