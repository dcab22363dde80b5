"""What is known of each origin: memory, then store, then fetch; one flight per origin."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.lru import BoundedCache
from scrapy_rep.protocol.matcher import ALLOWED_ROBOTSTXT, ROBOTSTXT
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.outcome import Unreachable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.stores.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Request

    from scrapy_rep.protocol.matcher import RuleSet
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outcome import Outcome
    from scrapy_rep.protocol.policy import Policy
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.stores.base import Store

    Tokens = tuple[str, ...]
    Fetch = Callable[[Origin, Request, Callable[[str], bool]], Awaitable[Outcome]]
    Parsed = Callable[[RobotsTxt, Request], Awaitable[None]]
    Learned = Callable[[Origin, Record, Record | None, Request], None]

logger = logging.getLogger(__name__)

_ENTRY_BYTES: Final = 600
"""About what an entry costs beside its rules: its own parts and its place in the mapping."""


_MAX_TOKEN_LISTS: Final = 16
"""Crawlers, each with its own list of product tokens, whose rules an entry holds."""


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
    def is_unreachable(self) -> bool:
        """Whether nothing may be fetched until a later try of robots.txt."""
        return self._state is not None and self._state.reason is Reason.UNREACHABLE

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

    It is driven from outside: ``clock`` gives seconds since the epoch, ``jitter`` a number from 0
    to 1, ``fetch`` an outcome, and ``parsed`` is awaited with every robots.txt that was fetched.
    ``learned`` is called with what a look-up came to, and what was stored before: the same record
    where nothing was fetched.
    """

    def __init__(  # noqa: PLR0913 - all that it depends on, each by name
        self,
        *,
        policy: Policy,
        store: Store,
        fetch: Fetch,
        parsed: Parsed,
        learned: Learned,
        clock: Callable[[], float],
        jitter: Callable[[], float],
        max_origins: int,
        max_bytes: int,
        concurrent_fetches: int,
    ) -> None:
        self._policy = policy
        self._store = store
        self._fetch = fetch
        self._parsed = parsed
        self._learned = learned
        self._clock = clock
        self._jitter = jitter
        self._entries: BoundedCache[Origin, Entry] = BoundedCache(max_origins, max_bytes)
        self._flights: dict[Origin, _Flight] = {}
        self._slots = _Slots(concurrent_fetches)
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
        return await self._stored(origin)

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
        else:
            waiter = self._wait(flight)
        return await maybe_deferred_to_future(waiter)

    def close(self) -> None:
        """End every flight; whoever waits gets CrawlClosingError."""
        self.closing = True
        for flight in list(self._flights.values()):
            if flight.task is not None:
                flight.task.cancel()

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
        stored = await self._stored(origin)
        if stored is not None and not self._policy.is_due(stored, self._clock()):
            self._learned(origin, stored, stored, page)
            return self._remember(origin, stored, tokens)
        record = await self._fetched(origin, stored, tokens, page)
        self._learned(origin, record, stored, page)
        entry, robots = self._remember(origin, record, tokens)
        if robots is not None and record.copy is record.last:
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

    async def _stored(self, origin: Origin) -> Record | None:
        try:
            return await self._store.get(str(origin))
        except StoreError as error:
            logger.debug("The store has no record of %s: %s", origin, error)
            return None

    async def _fetched(
        self, origin: Origin, previous: Record | None, tokens: Tokens, page: Request
    ) -> Record:
        def is_disallowed(url: str) -> bool:
            entry = self.known(origin_of(url))
            verdict = None if entry is None else entry.verdict(target_of(url), tokens)
            # SPEC F-3 speaks of rules; an origin in another state forbids nothing to a redirect.
            return verdict is not None and verdict.reason is Reason.RULE and not verdict.allowed

        await self._slots.acquire()
        try:
            outcome = await self._fetch(origin, page, is_disallowed)
        finally:
            self._slots.release()
        record = self._policy.record_after(previous, str(origin), outcome, jitter=self._jitter())
        self._log(origin, record, previous)
        await self._keep(record)
        other = _answered_for(outcome)
        if other is not None and other not in self._flights and self.known(other) is None:
            await self._keep(
                self._policy.record_after(None, str(other), outcome, jitter=self._jitter())
            )
        return record

    async def _keep(self, record: Record) -> None:
        try:
            await self._store.put(record)
        except StoreError as error:
            logger.debug("The record of %s was not stored: %s", record.origin, error)

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


def _answered_for(outcome: Outcome) -> Origin | None:
    """Return the origin whose own robots.txt a chain of redirects ended at, if it did.

    RFC 9309 §2.3.1.2 gives the answer to the origin first asked; it is this one's just as well.
    """
    evidence = outcome.evidence
    if not evidence.hops or evidence.error is not None or isinstance(outcome, Unreachable):
        return None
    origin = origin_of(evidence.url)
    return origin if evidence.url == origin.robotstxt_url else None


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
