"""What is known of each origin: memory, then store, then fetch; one flight per fleet."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep import stats
from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.fetch_limit import Place, Slots
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import origin_of, split_url
from scrapy_rep.protocol.outcome import Unreachable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.stores.base import Held, StoreError
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.concurrency import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeGuard

    from scrapy import Request
    from twisted.python.failure import Failure

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outcome import Outcome
    from scrapy_rep.protocol.policy import Policy
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.stores.base import Store
    from scrapy_rep.utils.lru import BoundedCache

    Tokens = tuple[str, ...]
    Fetch = Callable[[Origin, Request, Callable[[str], bool]], Awaitable[Outcome]]
    Parsed = Callable[[RobotsTxt, Request], Awaitable[None]]
    Learned = Callable[[Origin, Record, Record | None, Request], None]

logger = logging.getLogger(__name__)

_POLL: Final = 0.05
"""Seconds to the first look whether another worker has finished its fetch."""
_POLL_MAX: Final = 1.0
"""Seconds between two such looks at most."""
_POLL_GROWTH: Final = 1.5
_PATIENCE: Final = 3
"""Leases after which a worker fetches without one, whatever the store says: two workers that died
one after the other, and a little."""

_MEANWHILE: Final = {
    Grant.NONE: "its pages are not fetched",
    Grant.RULES: "its last copy is used",
    Grant.ALL: "all of it is allowed by now",
}
"""What unreachable means, in words."""


@dataclass(eq=False)
class _Flight:
    """The one look-up of an origin that is under way, and who waits for it."""

    waiters: list[Deferred[tuple[Entry, RobotsTxt | None]]] = field(default_factory=list)
    task: Deferred[None] | None = None
    news: RobotsTxt | None = None
    """What ``robots_parsed`` is to tell of."""


class Census(NamedTuple):
    """Counts of a moment."""

    known: int
    """Origins of which it is known what may be fetched."""
    waiting: int
    """Origins that are looked up just now."""
    requests: int
    """Requests that wait for these."""
    unreachable: int
    """Known origins of which nothing may be fetched until a later try."""


class Keeper:
    """Knows, or finds out, what may be fetched of each origin.

    It is driven from outside: ``clock`` gives seconds since the epoch, ``timer`` seconds that only
    grow, ``jitter`` a number from 0 to 1, ``fetch`` an outcome; ``parsed`` is awaited with every
    robots.txt that is read, ``count`` is told the names of stats. ``entries`` and ``store`` may
    belong to other keepers too; ``name`` tells this one from all others that use the store.
    ``lease`` is for how many seconds the fetch of an origin is this keeper's own.
    ``learned`` is called with what a look-up came to, and what was stored before: the same record
    where nothing was fetched.
    """

    def __init__(  # noqa: PLR0913 - all that it depends on, each by name
        self,
        *,
        policy: Policy,
        entries: BoundedCache[Origin, Entry],
        store: Store,
        fetch: Fetch,
        parsed: Parsed,
        learned: Learned = lambda *_: None,
        count: Callable[[str], None],
        clock: Callable[[], float],
        timer: Callable[[], float],
        jitter: Callable[[], float],
        concurrent_fetches: int,
        name: str,
        lease: float,
    ) -> None:
        self._policy = policy
        self._entries = entries
        self._store = store
        self._fetch = fetch
        self._parsed = parsed
        self._learned = learned
        self._count = count
        self._clock = clock
        self._timer = timer
        self._jitter = jitter
        self._name = name
        self._lease = lease
        self._claims = 0
        self._flights: dict[Origin, _Flight] = {}
        self._slots = Slots(concurrent_fetches)
        self._background = Background()
        self._being_kept: dict[Origin, Record] = {}
        """Records on their way to the store."""
        self.closing = False
        """Whether the crawl is closing, and nothing is looked up any more."""

    @property
    def has_room(self) -> bool:
        """Whether another look-up would soon come to its fetch."""
        return len(self._flights) - self._slots.slow < 2 * self._slots.places

    @property
    def flights(self) -> int:
        """How many look-ups are under way."""
        return len(self._flights)

    def when_slow(self, call: Callable[[], None]) -> None:
        """Let ``call`` be called when there may be room as a fetch takes long."""
        self._slots.when_slow = call

    def known(self, origin: Origin) -> Entry | None:
        """Return what is known of ``origin`` and still holds, or None. Nothing is awaited."""
        entry = self._entries.get(origin)
        if entry is None or not entry.start <= self._clock() < entry.end:
            return None
        return entry

    async def verdict(self, origin: Origin, target: str, tokens: Tokens, page: Request) -> Verdict:
        """Return the verdict on ``target`` of ``origin``, when its robots.txt is known.

        ``page`` is the request that waits. Raises CrawlClosingError.
        """
        entry, robots = await self._join(origin, tokens, page)
        verdict = entry.verdict(target, tokens)
        if verdict is None and robots is not None:
            self._hold(origin, entry, tokens, robots)
            verdict = entry.verdict(target, tokens)
        if verdict is None:
            raise LookupError(f"no rules of {origin} for {tokens}")
        return verdict

    async def robotstxt(self, origin: Origin, tokens: Tokens, page: Request) -> RobotsTxt | None:
        """Return the robots.txt whose rules hold for ``origin``, if any does, when it is known.

        Nothing is fetched that holds. Raises CrawlClosingError.
        """
        return (await self._join(origin, tokens, page))[1]

    async def record(self, origin: Origin) -> Record | None:
        """Return what the store holds of ``origin``. Nothing is fetched."""
        if origin in self._being_kept:
            return self._being_kept[origin]
        return (await self._held(origin)).record

    def census(self) -> Census:
        """Return how many origins are known, looked up just now, and unreachable."""
        now = self._clock()
        entries = [entry for entry in self._entries.values() if entry.start <= now < entry.end]
        return Census(
            known=len(entries),
            waiting=len(self._flights),
            requests=sum(len(flight.waiters) for flight in self._flights.values()),
            unreachable=sum(entry.is_unreachable for entry in entries),
        )

    async def _join(
        self, origin: Origin, tokens: Tokens, page: Request
    ) -> tuple[Entry, RobotsTxt | None]:
        if self.closing:
            raise CrawlClosingError
        flight = self._flights.get(origin)
        if flight is None:
            flight = self._flights[origin] = _Flight()
            waiter = self._wait(flight)
            flight.task = deferred_from_coro(self._fly(flight, origin, tokens, page))
            flight.task.addErrback(_trap_cancelled)
        else:
            waiter = self._wait(flight)
        return await maybe_deferred_to_future(waiter)

    def close(self) -> None:
        """End every flight; whoever waits gets CrawlClosingError."""
        self.closing = True
        for origin, flight in list(self._flights.items()):
            if flight.task is not None:
                flight.task.cancel()
            # A task that is cancelled before its first step does nothing at all.
            self._land(origin, flight, None, CrawlClosingError())

    async def finish(self) -> None:
        """Wait until the store has been told of everything."""
        await self._background.end()

    @staticmethod
    def _wait(flight: _Flight) -> Deferred[tuple[Entry, RobotsTxt | None]]:
        # One for each, as the canceller of one must not cancel the others.
        waiter: Deferred[tuple[Entry, RobotsTxt | None]] = Deferred()
        flight.waiters.append(waiter)
        return waiter

    async def _fly(self, flight: _Flight, origin: Origin, tokens: Tokens, page: Request) -> None:
        result: tuple[Entry, RobotsTxt | None] | None = None
        failure: Exception = CrawlClosingError()
        try:
            result = await self._look_up(flight, origin, tokens, page)
        except asyncio.CancelledError:
            if not self.closing:
                raise
        except Exception as error:
            if self.closing and isinstance(error, CancelledError):
                return
            failure = error
            logger.exception("Error while finding out what the robots.txt of %s says", origin)
            result = self._shut(origin), None
        finally:
            self._land(origin, flight, result, failure)
        if flight.news is not None:
            # When nobody waits any more: a handler may ask for pages of this very origin.
            await self._parsed(flight.news, page)

    def _land(
        self,
        origin: Origin,
        flight: _Flight,
        result: tuple[Entry, RobotsTxt | None] | None,
        failure: Exception,
    ) -> None:
        """End a flight, once: tell all who wait for it."""
        if self._flights.get(origin) is flight:
            del self._flights[origin]
        for waiter in flight.waiters:
            if waiter.called:
                continue
            if result is None:
                waiter.errback(failure)
            else:
                waiter.callback(result)

    async def _look_up(
        self, flight: _Flight, origin: Origin, tokens: Tokens, page: Request
    ) -> tuple[Entry, RobotsTxt | None]:
        held = await self._held(origin)
        since, pause = self._timer(), _POLL
        while True:
            if self._is_fresh(held.record):
                self._count(stats.STORE_FOUND)
                self._learned(origin, held.record, held.record, page)
                return self._take(flight, origin, held.record, tokens)
            impatient = self._timer() - since >= self._lease * _PATIENCE
            if held.holder is None or impatient:
                record = await self._claimed(origin, tokens, page, impatient=impatient)
                if record is not None:
                    return self._take(flight, origin, record, tokens)
            # Another worker is at it: its record is there as soon as it knows more.
            if pause == _POLL:
                self._count(stats.STORE_WAITED)
            await sleep(pause)
            pause = min(_POLL_MAX, pause * _POLL_GROWTH)
            held = await self._held(origin)

    def _is_fresh(self, record: Record | None) -> TypeGuard[Record]:
        return record is not None and not self._policy.is_due(record, self._clock())

    def _take(
        self, flight: _Flight, origin: Origin, record: Record, tokens: Tokens
    ) -> tuple[Entry, RobotsTxt | None]:
        known = self.known(origin) is not None
        entry, robots = self._remember(origin, record, tokens)
        # Of what is known already only the rules of other tokens were asked.
        if robots is not None and record.copy is record.last and not known:
            flight.news = robots
        return entry, robots

    def _remember(
        self, origin: Origin, record: Record, tokens: Tokens
    ) -> tuple[Entry, RobotsTxt | None]:
        access = self._policy.access(record, self._clock())
        entry = self._entries.get(origin)
        if entry is None or not entry.is_of(access):
            entry = Entry(access)
        robots = None if access.copy is None else RobotsTxt.parse(access.copy.body)
        self._hold(origin, entry, tokens, robots)
        return entry, robots

    def _hold(self, origin: Origin, entry: Entry, tokens: Tokens, robots: RobotsTxt | None) -> None:
        if robots is not None:
            entry.add(tokens, robots)
        self._entries.put(origin, entry, entry.nbytes)

    async def _held(self, origin: Origin) -> Held:
        try:
            return await self._store.get(str(origin))
        except StoreError as error:
            logger.debug("The store has no record of %s: %s", origin, error)
            return Held(None, None)

    async def _claimed(
        self, origin: Origin, tokens: Tokens, page: Request, *, impatient: bool
    ) -> Record | None:
        """Fetch under a lease; None where another worker holds it.

        Also return the record that another one has stored in the meantime.
        """
        self._claims += 1
        holder = f"{self._name}-{self._claims}"
        key = str(origin)
        # The lease is for the fetch, not for the time until its turn comes.
        await self._slots.acquire()
        place = Place(self._slots)
        try:
            try:
                held = await self._store.claim(key, holder, self._lease)
            except StoreError as error:
                logger.debug("No lease of %s: %s", origin, error)
                held = Held(None, holder)
            if self._is_fresh(held.record):
                self._count(stats.STORE_FOUND)
                self._learned(origin, held.record, held.record, page)
                self._background.add(self._release(key, holder))
                return held.record
            if held.holder != holder and not impatient:
                return None
            record = await self._fetched(origin, held.record, tokens, page)
        except BaseException:
            # Nobody waits for the end of a lease whose holder has given up.
            self._background.add(self._release(key, holder))
            raise
        finally:
            place.leave()
        # Who waits for the answer doesn't wait for the disk.
        self._being_kept[origin] = record
        self._background.add(self._keep_fetched(origin, record, holder))
        other = _answered_for(record.last)
        if other is not None and other not in self._flights and self.known(other) is None:
            self._background.add(self._keep_other(other, record.last))
        return record

    async def _fetched(
        self, origin: Origin, previous: Record | None, tokens: Tokens, page: Request
    ) -> Record:
        def is_disallowed(url: str) -> bool:
            other, target = split_url(url)
            entry = self.known(other)
            verdict = None if entry is None else entry.verdict(target, tokens)
            # SPEC F-3 speaks of rules; an origin in another state forbids nothing to a redirect.
            return verdict is not None and verdict.reason is Reason.RULE and not verdict.allowed

        outcome = await self._fetch(origin, page, is_disallowed)
        record = self._policy.record_after(previous, str(origin), outcome, jitter=self._jitter())
        self._log(origin, record, previous)
        self._learned(origin, record, previous, page)
        return record

    async def _keep_fetched(self, origin: Origin, record: Record, holder: str) -> None:
        try:
            await self._keep(record, holder)
        finally:
            if self._being_kept.get(origin) is record:
                del self._being_kept[origin]

    async def _keep(self, record: Record, holder: str | None = None) -> None:
        try:
            await self._store.put(record, holder)
        except StoreError as error:
            logger.debug("The record of %s was not stored: %s", record.origin, error)

    async def _keep_other(self, origin: Origin, outcome: Outcome) -> None:
        """Keep what a redirect told of the origin that it led to, unless that is known."""
        held = await self._held(origin)
        if not self._is_fresh(held.record) and held.holder is None:
            jitter = self._jitter()
            await self._keep(
                self._policy.record_after(held.record, str(origin), outcome, jitter=jitter)
            )

    async def _release(self, key: str, holder: str) -> None:
        try:
            await self._store.release(key, holder)
        except StoreError as error:
            logger.debug("The lease of %s was not released: %s", key, error)

    def _shut(self, origin: Origin) -> Entry:
        """Hold that nothing of ``origin`` may be fetched, as an error of ours kept us from it."""
        now = self._clock()
        end = now + self._policy.retry_delay
        entry = Entry(Access(Grant.NONE, Reason.ERROR, None, now, end))
        self._hold(origin, entry, (), None)
        return entry

    def _log(self, origin: Origin, record: Record, previous: Record | None) -> None:
        evidence = record.last.evidence
        what = (evidence.error or f"HTTP status {evidence.status}").rstrip(".")
        if not isinstance(record.last, Unreachable):
            logger.debug(
                "robots.txt of %s: %s (%s, %d bytes, redirects: %d)",
                origin,
                type(record.last).__name__.lower(),
                what,
                evidence.size,
                len(evidence.hops),
            )
            return
        first = previous is None or previous.unreachable_since is None
        logger.log(
            logging.WARNING if first else logging.DEBUG,
            "robots.txt of %s is unreachable: %s; %s, next try in %.1f s",
            origin,
            what,
            _MEANWHILE[self._policy.access(record, self._clock()).grant],
            (record.next_try or 0) - evidence.at,
        )


def _trap_cancelled(failure: Failure) -> None:
    if not isinstance(failure.value, CancelledError | asyncio.CancelledError):
        failure.raiseException()


def _answered_for(outcome: Outcome) -> Origin | None:
    """Return the origin whose own robots.txt a chain of redirects ended at, if it did.

    RFC 9309 §2.3.1.2 gives the answer to the origin first asked; it is this one's just as well.
    """
    evidence = outcome.evidence
    if not evidence.hops or evidence.error is not None or isinstance(outcome, Unreachable):
        return None
    origin = origin_of(evidence.url)
    return origin if evidence.url == origin.robotstxt_url else None
