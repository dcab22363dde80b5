"""Turns: when a worker of a fleet may send its next request to an origin that asks for a delay."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import stats
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.scheduler.waiters import Alone
from scrapy_rep.utils.concurrency import trap_cancelled
from scrapy_rep.utils.lru import BoundedCache
from scrapy_rep.utils.scrapy_internals import PlacesBeside, nudge

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.decision.decider import Decision
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.delays import Delays
    from scrapy_rep.scheduler.waiters import Waiter
    from scrapy_rep.stores.base import Store
    from scrapy_rep.utils.clock import Clock, Timer

logger = logging.getLogger(__name__)

_LATE: Final = 0.03
"""Seconds by which a turn may be used late: so much nearer the next worker's request comes."""
_MARGIN: Final = 0.1
"""Seconds by which a worker that has missed a turn makes its next ones longer, at most: one long
stop tells little of those to come."""
_MORE: Final = 8
"""How many times as long that may be when such a turn is missed, too."""
_LESS: Final = 0.9
"""By what it shrinks again with every turn that is used."""
_OWN_PART: Final = 0.98
"""What a worker keeps of a delay by itself: with all of it, one request that left late would make
all those after it late, and near to those of other workers."""
_MAX_USED: Final = 100_000
"""Hosts of which it is remembered when the last turn was used."""
_LOOK: Final = 1.0
"""Seconds between two looks at a download slot that has a longer delay of its own."""


@dataclass(eq=False)
class _Turn:
    """The one turn of a host that this worker has, or has asked for."""

    asked: float
    """When it was asked for, by the monotonic clock."""
    has_come: bool = False
    at: float = 0.0
    """When it comes."""
    mark: int | None = None
    margin: float = 0.0
    """Seconds by which it is longer than was asked for, and may be used later."""
    timer: Timer | None = None
    waiters: list[Waiter] = field(default_factory=list)

    @property
    def until(self) -> float:
        """When it is late."""
        return self.at + max(_LATE, self.margin)


class Turns:
    """Reserves in the store the time of each request to an origin that asks for a delay.

    The origins of a host share its turns, as they share its download slot. One turn ahead for each
    host: a worker that dies leaves no more than that unused. A turn that
    was missed is given back for the next, so that what a busy worker sends late comes not near to
    what another sends.
    """

    def __init__(
        self,
        crawler: Crawler,
        store: Store,
        known: Callable[[Request], Decision | None],
        delays: Delays,
        clock: Clock,
    ) -> None:
        """Take the parts of a crawl; ``known`` tells what is decided of a request."""
        self._crawler = crawler
        self._known = known
        self._delays = delays
        self._store = store
        self._clock = clock
        self._turns: dict[str, _Turn] = {}
        self._used: BoundedCache[str, float] = BoundedCache(_MAX_USED, 1)
        """When the last request in its turn was sent to a host."""
        self._come: set[_Turn] = set()
        """Those that have come, and are not used yet."""
        self._places = PlacesBeside(crawler)
        self._closing = False
        self._margin = 0.0
        crawler.signals.connect(self._sent, signals.request_reached_downloader)

    def seconds_before(self, request: Request, decision: Decision) -> float:
        """Return the delay that the fleet keeps before ``request``, 0 where it keeps none.

        A request that is dropped, or waits for rules of other product tokens, takes nobody's time.
        """
        entry, verdict = decision.entry, decision.verdict
        if entry is None or verdict is None or not verdict.allowed or not entry.asks_for_delay:
            return 0.0
        if decision.origin is None:
            return 0.0
        return self._delays.asked(request, decision.origin, entry, decision.tokens)

    def lets_go(self, origin: Origin, waiter: Waiter, *, alone: bool = False) -> bool:
        """Return whether the next request of ``waiter`` may leave; if not, it is woken later.

        ``alone`` tells that nobody has looked whether its slot would send it at once.
        """
        try:
            request = waiter.head()
        except LookupError:  # none of its requests could be read
            return True
        decision = self._known(request)
        seconds = 0.0 if decision is None else self.seconds_before(request, decision)
        if not seconds:
            return True
        return not (alone and self._is_busy(request, waiter)) and self.opens(
            origin, seconds, waiter
        )

    def opens(self, origin: Origin, seconds: float, waiter: Waiter) -> bool:
        """Return whether it is this worker's turn, which is used; if not, ``waiter`` is woken."""
        host = origin.host
        turn = self._turns.get(host)
        now = self._clock.monotonic()
        if turn is not None and turn.has_come:
            self._come.discard(turn)
            self._give_places(now)
            if now <= turn.until:
                del self._turns[host]
                self._used.put(host, now, 0)
                self._margin *= _LESS
                return True
            longer = min(now - turn.at, max(_MARGIN, _MORE * turn.margin))
            self._margin = max(self._margin, longer)
            stats.count(self._crawler, stats.TURNS_LATE)
            turn = self._ask(host, seconds, _Turn(now, mark=turn.mark))
        elif turn is None:
            turn = self._ask(host, seconds, _Turn(now))
        turn.waiters.append(waiter)
        return False

    def is_due(self, origin: Origin) -> bool:
        """Return whether a turn of ``origin`` has come that is not used yet."""
        turn = self._turns.get(origin.host)
        return turn is not None and turn.has_come

    async def take(self, request: Request, origin: Origin, seconds: float) -> None:
        """Wait until it is the turn of ``request``, and use it. Raises CrawlClosingError."""
        while True:
            if self._closing:
                raise CrawlClosingError
            waiter = Alone(request)
            if not self._is_busy(request, waiter) and self.opens(origin, seconds, waiter):
                return
            await maybe_deferred_to_future(waiter.turn)

    def _is_busy(self, request: Request, waiter: Waiter) -> bool:
        """Return whether the slot of ``request`` would keep it; if so, ``waiter`` is woken then."""
        busy = self._delays.seconds_until_free(request)
        if busy:
            self._clock.call_later(min(busy, _LOOK), waiter.wake)
        return bool(busy)

    def close(self) -> None:
        """End the waiting: queues keep their requests."""
        self._closing = True
        for turn in self._turns.values():
            if turn.timer is not None:
                turn.timer.cancel()
            for waiter in turn.waiters:
                if isinstance(waiter, Alone):
                    waiter.wake()
        self._turns.clear()
        self._come.clear()
        self._places.give(0)

    def _sent(self, request: Request) -> None:
        """Note when a request that had a turn reaches its download slot, which sends it at once."""
        if not len(self._used) or TRANSFER_KEY in request.meta:
            return
        host = urlparse_cached(request).hostname or ""
        if self._used.get(host) is None:
            return
        decision = self._known(request)
        if decision is not None and self.seconds_before(request, decision):
            self._used.put(host, self._clock.monotonic(), 0)

    def _ask(self, host: str, seconds: float, turn: _Turn) -> _Turn:
        self._turns[host] = turn
        turn.margin = self._margin
        deferred_from_coro(self._reserve(host, seconds, turn)).addErrback(trap_cancelled)
        return turn

    async def _reserve(self, host: str, seconds: float, turn: _Turn) -> None:
        wait = 0.0
        try:
            wait, turn.mark = await self._store.reserve(host, seconds + turn.margin, turn.mark)
        except Exception:
            logger.exception("Error while reserving the time of a request to %s", host)
        if self._closing:
            return
        stats.count(self._crawler, stats.TURNS)
        self._begins(turn.asked + wait, host, seconds, turn)

    def _begins(self, at: float, host: str, seconds: float, turn: _Turn) -> None:
        turn.at = at
        left = max(0.0, at - self._clock.monotonic())
        turn.timer = self._clock.call_later(left, self._comes, host, seconds, turn)

    def _comes(self, host: str, seconds: float, turn: _Turn) -> None:
        # Whatever the store has forgotten, and however long the last one took to the downloader.
        own = self._used.get(host)
        if own is not None and self._clock.monotonic() < own + _OWN_PART * seconds:
            self._begins(own + _OWN_PART * seconds, host, seconds, turn)
            return
        turn.timer, turn.has_come = None, True
        self._come.add(turn)
        self._give_places(self._clock.monotonic())
        waiters, turn.waiters = turn.waiters, []
        for waiter in waiters:
            waiter.wake()
        nudge(self._crawler)

    def _give_places(self, now: float) -> None:
        """Let those leave now whose turn it is."""
        self._come = {turn for turn in self._come if now <= turn.until}
        self._places.give(len(self._come))
