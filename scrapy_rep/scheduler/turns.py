"""Turns: reserved times of requests to sites with a delay.

All workers that share a store keep the delay of a host together. Before a request is sent, its
worker reserves the next free time of the host in the store: its turn. The store returns how long to
wait, by its own clock, so the clocks of the workers may differ.

A worker reserves one turn ahead for each host. When the turn comes, the request may leave if the
download slot would send it at once. If it left long after its turn, it would be sent shortly before
the request of the next worker. So a turn that can't be used in time is missed: the worker gives it
back, reserves another one, and makes its next turns longer by about the time that it was late.

The origins of a host (http, https, other ports) share its turns, as they share its download slot.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import stats
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.utils.concurrency import trap_cancelled
from scrapy_rep.utils.downloads import host_of
from scrapy_rep.utils.lru import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.decision.decider import Decision
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.delays import Delays
    from scrapy_rep.stores.base import Store
    from scrapy_rep.utils.clock import Clock

logger: Final = logging.getLogger(__name__)

_LATE: Final = 0.03
"""Seconds by which a turn may be used late; this shortens the time to the next request."""
_MAX_FIRST_MARGIN: Final = 0.1
"""Maximum seconds of the margin after a worker has missed a turn without a margin: one long stop of
the event loop doesn't mean that the next stops are as long."""
_MARGIN_GROWTH: Final = 8
"""Factor by which the margin may grow at most when a turn with a margin is missed, too."""
_MARGIN_DECAY: Final = 0.9
"""Factor for the margin with every turn that is used, so that it becomes smaller again."""
_OWN_PART: Final = 0.98
"""Share of the delay that a worker keeps between its own requests, whatever the store returns;
below 1, so that one late request does not shift all later ones."""
_MAX_USED: Final = 100_000
"""Maximum number of hosts whose last used turn is remembered."""
_LOOK: Final = 1.0
"""Maximum seconds until a busy download slot is checked again."""


@dataclass(eq=False)
class _Turn:
    """The turn of a host that this worker has reserved, or is reserving."""

    asked: float
    """When the worker began to reserve the turn, by the monotonic clock."""
    at: float = math.inf
    """When the turn begins; infinity while it is being reserved."""
    number: int | None = None
    """The number of the turn in the store, by which the worker can give the turn back."""
    margin: float = 0.0
    """Seconds that are reserved in addition to the delay. The turn may be used that much later."""
    origins: dict[Origin, None] = field(default_factory=dict)
    """The origins of the host whose requests wait for the turn, the first to wait first."""

    @property
    def until(self) -> float:
        """The time after which the turn is missed."""
        return self.at + max(_LATE, self.margin)


class Turns:
    """Reserves and uses the turns of this worker, one at a time for each host."""

    def __init__(
        self,
        crawler: Crawler,
        store: Store,
        known: Callable[[Request], Decision | None],
        delays: Delays,
        clock: Clock,
    ) -> None:
        """``known`` is ``Decider.known_decision``."""
        self._crawler = crawler
        self._known = known
        self._delays = delays
        self._store = store
        self._clock = clock
        self._turns: dict[str, _Turn] = {}
        self._used: BoundedCache[str, tuple[float, Origin]] = BoundedCache(max_entries=_MAX_USED)
        """When the last turn of each host was used, or its request sent, and for which origin."""
        self._listener: Callable[[Origin], None] = lambda _: None
        self._closing = False
        self._margin = 0.0
        crawler.signals.connect(
            self._request_reached_downloader, signals.request_reached_downloader
        )

    def delay_before(self, request: Request, decision: Decision) -> float:
        """Return the delay before ``request`` in seconds; 0 if it needs no turn.

        A request that is not known to be allowed needs none.
        """
        entry, verdict = decision.entry, decision.verdict
        if entry is None or verdict is None or not verdict.allowed:
            return 0.0
        if decision.origin is None or not self._delays.may_have_delay(entry):
            return 0.0
        return self._delays.apply_delay(request, entry.delay(decision.tokens))

    def listen_for_hold_change(self, call: Callable[[Origin], None]) -> None:
        """Call ``call`` with an origin that waits for a turn when the time of the turn is known."""
        self._listener = call

    def hold(self, origin: Origin, head: Callable[[], Request]) -> Hold | None:
        """Return why the next request of ``origin`` waits, and until when; None if it may leave.

        If None is returned, the turn is used. ``head`` returns the request.
        """
        try:
            request = head()
        except LookupError:  # none of its requests could be read
            return None
        decision = self._known(request)
        seconds = 0.0 if decision is None else self.delay_before(request, decision)
        return self.use(request, origin, seconds) if seconds else None

    def use(self, request: Request, origin: Origin, seconds: float) -> Hold | None:
        """Use the turn of the host of ``origin`` for ``request``, and return None.

        If the turn has not come, or the download slot is busy, return why and until when to wait.
        If there is no turn, or it was missed, begin to reserve a new one.
        """
        now = self._clock.monotonic()
        busy = self._delays.seconds_until_free(request)
        if busy:
            return Hold(HoldReason.SLOT, now + min(busy, _LOOK))
        host = origin.host
        turn = self._turns.get(host)
        if turn is None:
            turn = self._start_reserving(host, seconds, _Turn(now))
        elif turn.at <= now:
            # The store may have lost the last turn, so this worker also keeps its own delay.
            used = self._used.get(host)
            own = -math.inf if used is None else used[0] + _OWN_PART * seconds
            if now < own:
                turn.at = own
            elif now <= turn.until:
                del self._turns[host]
                self._used.put(host, (now, origin))
                self._margin *= _MARGIN_DECAY
                return None
            else:
                longer = min(now - turn.at, max(_MAX_FIRST_MARGIN, _MARGIN_GROWTH * turn.margin))
                self._margin = max(self._margin, longer)
                stats.count(self._crawler, stats.TURNS_LATE)
                turn = self._start_reserving(host, seconds, _Turn(now, number=turn.number))
        turn.origins[origin] = None
        return Hold(HoldReason.TURN, turn.at)

    def close(self) -> None:
        """Forget all turns, and reserve no more."""
        self._closing = True
        self._turns.clear()

    def _request_reached_downloader(self, request: Request) -> None:
        """Note when a request with a turn reaches its download slot, which sends it at once."""
        if not len(self._used) or TRANSFER_KEY in request.meta:
            return
        host = host_of(request)
        used = self._used.get(host)
        if used is None:
            return
        decision = self._known(request)
        if decision is not None and self.delay_before(request, decision):
            self._used.put(host, (self._clock.monotonic(), used[1]))

    def _start_reserving(self, host: str, seconds: float, turn: _Turn) -> _Turn:
        self._turns[host] = turn
        turn.margin = self._margin
        task = deferred_from_coro(self._reserve_in_store(host, seconds, turn))
        task.addErrback(trap_cancelled)
        return turn

    async def _reserve_in_store(self, host: str, seconds: float, turn: _Turn) -> None:
        wait = 0.0
        try:
            wait, turn.number = await self._store.reserve(host, seconds + turn.margin, turn.number)
        except Exception:
            logger.exception("Error while reserving the time of a request to %s", host)
        if self._closing:
            return
        stats.count(self._crawler, stats.TURNS)
        turn.at = turn.asked + wait
        origins, turn.origins = turn.origins, {}
        used = self._used.get(host)
        # The first origin whose request tries to leave gets the turn. So that origins alternate,
        # the origin that had the last turn comes last.
        for origin in sorted(origins, key=lambda origin: used is not None and origin == used[1]):
            self._listener(origin)
