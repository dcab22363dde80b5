"""What is known of each origin: memory, then store, then fetch; one flight per fleet."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep import stats
from scrapy_rep.protocol.matcher import ALLOWED_ROBOTSTXT, ROBOTSTXT
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.outcome import Unreachable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.stores.base import Held, StoreError
from scrapy_rep.threads import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import TypeGuard

    from scrapy import Request
    from twisted.python.failure import Failure

    from scrapy_rep.lru import BoundedCache
    from scrapy_rep.protocol.matcher import RuleSet
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outcome import Outcome
    from scrapy_rep.protocol.policy import Policy
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.stores.base import Store

    Tokens = tuple[str, ...]
    Fetch = Callable[[Origin, Request, Callable[[str], bool]], Awaitable[Outcome]]
    Parsed = Callable[[RobotsTxt, Request], Awaitable[None]]

logger = logging.getLogger(__name__)

_ENTRY_BYTES: Final = 600
"""About what an entry costs beside its rules: its own parts and its place in the mapping."""


_MAX_TOKEN_LISTS: Final = 16
"""Crawlers, each with its own list of product tokens, whose rules an entry holds."""

_POLL: Final = 0.05
"""Seconds to the first look whether another worker has finished its fetch."""
_POLL_MAX: Final = 1.0
"""Seconds between two such looks at most."""
_POLL_GROWTH: Final = 1.5
_PATIENCE: Final = 3
"""Leases after which a worker fetches without one, whatever the store says: two workers that died
one after the other, and a little."""


class CrawlClosingError(Exception):
    """The crawl closed before it was known what robots.txt says."""


class Entry:
    """What the hot path holds of an origin: access, until when, and the rules of our tokens."""

    __slots__ = ("_rules", "_state", "end", "start")

    def __init__(self, access: Access) -> None:
        self.start = access.start
        self.end = access.end
        # The body stays in the store: here are only the rules that are asked for.
        self._state = (
            None
            if access.grant is Grant.RULES
            else Verdict(allowed=access.grant is Grant.ALL, reason=access.reason)
        )
        self._rules: dict[Tokens, RuleSet] = {}

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory this takes."""
        return _ENTRY_BYTES + sum(rules.nbytes for rules in self._rules.values())

    def add(self, tokens: Tokens, robots: RobotsTxt) -> None:
        """Hold the rules for ``tokens``, too."""
        if len(self._rules) >= _MAX_TOKEN_LISTS:
            self._rules.clear()
        self._rules[tokens] = robots.rules_for(*tokens)

    def verdict(self, target: str, tokens: Tokens) -> Verdict | None:
        """Return the verdict on ``target``; None where the rules for ``tokens`` aren't held."""
        if tokens in self._rules:
            return self._rules[tokens].verdict_for(target)
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        return self._state


@dataclass(eq=False)
class _Flight:
    """The one look-up of an origin that is under way, and who waits for it."""

    waiters: list[Deferred[tuple[Entry, RobotsTxt | None]]] = field(default_factory=list)
    task: Deferred[None] | None = None


class Keeper:
    """Knows, or finds out, what may be fetched of each origin.

    It is driven from outside: ``clock`` gives seconds since the epoch, ``timer`` seconds that only
    grow, ``jitter`` a number from 0 to 1, ``fetch`` an outcome; ``parsed`` is awaited with every
    robots.txt that is read, ``count`` is told the names of stats. ``entries`` and ``store`` may
    belong to other keepers too; ``name`` tells this one from all others that use the store.
    ``lease`` is for how many seconds the fetch of an origin is this keeper's own.
    """

    def __init__(  # noqa: PLR0913 - all that it depends on, each by name
        self,
        *,
        policy: Policy,
        entries: BoundedCache[Origin, Entry],
        store: Store,
        fetch: Fetch,
        parsed: Parsed,
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
        self._count = count
        self._clock = clock
        self._timer = timer
        self._jitter = jitter
        self._name = name
        self._lease = lease
        self._claims = 0
        self._flights: dict[Origin, _Flight] = {}
        self._slots = _Slots(concurrent_fetches)
        self._background = _Background()
        self.closing = False
        """Whether the crawl is closing, and nothing is looked up any more."""

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
        entry, robots = await maybe_deferred_to_future(waiter)
        verdict = entry.verdict(target, tokens)
        if verdict is None and robots is not None:
            self._hold(origin, entry, tokens, robots)
            verdict = entry.verdict(target, tokens)
        if verdict is None:
            raise LookupError(f"no rules of {origin} for {tokens}")
        return verdict

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
            result = await self._look_up(origin, tokens, page)
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
        self, origin: Origin, tokens: Tokens, page: Request
    ) -> tuple[Entry, RobotsTxt | None]:
        held = await self._held(origin)
        since, pause = self._timer(), _POLL
        while True:
            if self._is_fresh(held.record):
                self._count(stats.STORE_FOUND)
                return await self._take(origin, held.record, tokens, page)
            impatient = self._timer() - since >= self._lease * _PATIENCE
            if held.holder is None or impatient:
                record = await self._claimed(origin, tokens, page, impatient=impatient)
                if record is not None:
                    return await self._take(origin, record, tokens, page)
            # Another worker is at it: its record is there as soon as it knows more.
            if pause == _POLL:
                self._count(stats.STORE_WAITED)
            await sleep(pause)
            pause = min(_POLL_MAX, pause * _POLL_GROWTH)
            held = await self._held(origin)

    def _is_fresh(self, record: Record | None) -> TypeGuard[Record]:
        return record is not None and not self._policy.is_due(record, self._clock())

    async def _take(
        self, origin: Origin, record: Record, tokens: Tokens, page: Request
    ) -> tuple[Entry, RobotsTxt | None]:
        known = self.known(origin) is not None
        entry, robots = self._remember(origin, record, tokens)
        # Of what is known already only the rules of other tokens were asked.
        if robots is not None and record.copy is record.last and not known:
            await self._parsed(robots, page)
        return entry, robots

    def _remember(
        self, origin: Origin, record: Record, tokens: Tokens
    ) -> tuple[Entry, RobotsTxt | None]:
        access = self._policy.access(record, self._clock())
        entry = self._entries.get(origin)
        if entry is None or (entry.start, entry.end) != (access.start, access.end):
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
        try:
            try:
                held = await self._store.claim(key, holder, self._lease)
            except StoreError as error:
                logger.debug("No lease of %s: %s", origin, error)
                held = Held(None, holder)
            if self._is_fresh(held.record):
                self._count(stats.STORE_FOUND)
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
            self._slots.release()
        # Who waits for the answer doesn't wait for the disk.
        self._background.add(self._keep(record, holder))
        other = _answered_for(record.last)
        if other is not None and other not in self._flights and self.known(other) is None:
            self._background.add(self._keep_other(other, record.last))
        return record

    async def _fetched(
        self, origin: Origin, previous: Record | None, tokens: Tokens, page: Request
    ) -> Record:
        def is_disallowed(url: str) -> bool:
            entry = self.known(origin_of(url))
            verdict = None if entry is None else entry.verdict(target_of(url), tokens)
            # SPEC F-3 speaks of rules; an origin in another state forbids nothing to a redirect.
            return verdict is not None and verdict.reason is Reason.RULE and not verdict.allowed

        outcome = await self._fetch(origin, page, is_disallowed)
        record = self._policy.record_after(previous, str(origin), outcome, jitter=self._jitter())
        self._log(origin, record, previous)
        return record

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
            "robots.txt of %s is unreachable: %s; its pages are not fetched, next try in %.1f s",
            origin,
            what,
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


class _Background:
    """What goes on while nobody waits for it."""

    def __init__(self) -> None:
        self._tasks: set[Deferred[None]] = set()
        self._ended: list[Deferred[None]] = []

    def add(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine go on by itself."""
        task = deferred_from_coro(coroutine)
        self._tasks.add(task)
        task.addErrback(self._failed)
        task.addBoth(self._remove, task)

    async def end(self) -> None:
        """Wait until nothing goes on any more."""
        if self._tasks:
            ended: Deferred[None] = Deferred()
            self._ended.append(ended)
            await maybe_deferred_to_future(ended)

    @staticmethod
    def _failed(failure: Failure) -> None:
        if not isinstance(failure.value, CancelledError | asyncio.CancelledError):
            logger.error("Error while a record was stored", exc_info=failure.value)

    def _remove(self, _: None, task: Deferred[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            ended, self._ended = self._ended, []
            for waiter in ended:
                if not waiter.called:
                    waiter.callback(None)


@dataclass(eq=False)
class _Turn:
    """One who waits for a place."""

    comes: Deferred[None] = field(default_factory=Deferred)
    given: bool = False


class _Slots:
    """A number of places, given to whoever asks in the order of asking."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._queue: deque[_Turn] = deque()

    async def acquire(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = _Turn()
        self._queue.append(turn)
        try:
            await maybe_deferred_to_future(turn.comes)
        except BaseException:
            # Cancelled in the moment in which the place was given.
            if turn.given:
                self.release()
            raise

    def release(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.comes.called:
                turn.given = True
                turn.comes.callback(None)
                return
        self._free += 1
