"""What is known of each origin: memory, then store, then fetch; one flight per origin."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.lru import BoundedCache
from scrapy_rep.protocol.delay import Delay, delay_in
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

logger = logging.getLogger(__name__)

_ENTRY_BYTES: Final = 600
"""About what an entry costs beside its rules: its own parts and its place in the mapping."""


_MAX_TOKEN_LISTS: Final = 16
"""Crawlers, each with its own list of product tokens, whose rules an entry holds."""

_PATIENCE: Final = 1.0
"""Seconds after which a fetch lets another one begin: sites that hang hold up no others.

So not more than REP_CONCURRENT_FETCHES begin in a second, and the deadline of a fetch bounds how
many go on."""


class CrawlClosingError(Exception):
    """The crawl closed before it was known what robots.txt says."""


class Entry:
    """What the hot path holds of an origin: access, until when, and the rules of our tokens."""

    __slots__ = ("_delays", "_rules", "_state", "end", "start")

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
        self._delays: dict[Tokens, Delay] | None = None

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
            self._delays = None
        self._rules[tokens] = robots.rules_for(*tokens)
        delay = delay_in(robots.records_for(*tokens))
        if delay is not None:
            self._delays = {**(self._delays or {}), tokens: delay}

    def delay(self, tokens: Tokens) -> Delay | None:
        """Return what the group of ``tokens`` asks to be left between two requests, if it does."""
        return None if self._delays is None else self._delays.get(tokens)

    def verdict(self, target: str, tokens: Tokens) -> Verdict | None:
        """Return the verdict on ``target``; None where the rules for ``tokens`` aren't held."""
        if self._state is not None:
            return self._state
        rules = self._rules.get(tokens)
        return None if rules is None else rules.verdict_for(target)


@dataclass(eq=False)
class _Flight:
    """The one look-up of an origin that is under way, and who waits for it."""

    waiters: list[Deferred[tuple[Entry, RobotsTxt | None]]] = field(default_factory=list)
    task: Deferred[None] | None = None


class Keeper:
    """Knows, or finds out, what may be fetched of each origin.

    It is driven from outside: ``clock`` gives seconds since the epoch, ``jitter`` a number from 0
    to 1, ``fetch`` an outcome, and ``parsed`` is awaited with every robots.txt that was fetched.
    """

    def __init__(  # noqa: PLR0913 - all that it depends on, each by name
        self,
        *,
        policy: Policy,
        store: Store,
        fetch: Fetch,
        parsed: Parsed,
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
        self._clock = clock
        self._jitter = jitter
        self._entries: BoundedCache[Origin, Entry] = BoundedCache(max_origins, max_bytes)
        self._flights: dict[Origin, _Flight] = {}
        self._slots = _Slots(concurrent_fetches)
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
        if self.closing:
            raise CrawlClosingError
        flight = self._flights.get(origin)
        if flight is None:
            flight = self._flights[origin] = _Flight()
            waiter = self._wait(flight)
            flight.task = deferred_from_coro(self._fly(flight, origin, tokens, page))
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
            return self._remember(origin, stored, tokens)
        record = await self._fetched(origin, stored, tokens, page)
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
        place = _Place(self._slots)
        try:
            outcome = await self._fetch(origin, page, is_disallowed)
        finally:
            place.leave()
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
        what = f"HTTP status {evidence.status}" if evidence.error is None else evidence.error
        if not isinstance(record.last, Unreachable):
            logger.debug(
                "robots.txt of %s: %s (%s, %d bytes, %d redirects)",
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
            "robots.txt of %s is unreachable: %s; its pages are not fetched, next try in %.0f s",
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
        self.places = places
        self.slow = 0
        """How many have given up their place and go on."""
        self.when_slow: Callable[[], None] | None = None
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


class _Place:
    """The place of a fetch, which it gives up when it takes long."""

    def __init__(self, slots: _Slots) -> None:
        self._slots = slots
        self._slow = False
        self._timer = call_later(_PATIENCE, self._give_up)

    def _give_up(self) -> None:
        self._slow = True
        self._slots.slow += 1
        self._slots.release()
        if self._slots.when_slow is not None:
            self._slots.when_slow()

    def leave(self) -> None:
        """Leave it, as the fetch has ended."""
        self._timer.cancel()
        if self._slow:
            self._slots.slow -= 1
        else:
            self._slots.release()
