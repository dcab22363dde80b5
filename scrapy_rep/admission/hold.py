"""What queues and the gate ask the admission, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from scrapy import Request

from scrapy_rep.admission.delays import Delays
from scrapy_rep.cache.entry import Entry
from scrapy_rep.decision.decider import Decider, Decision
from scrapy_rep.protocol.origin import Origin

Head = Callable[[], Request | None]
"""Returns the next request of an origin, without removing it; None if it can't be read."""


@dataclass(frozen=True, eq=False)
class HoldReason:
    """Why requests have to wait."""

    text: str
    defers: bool = False
    """Whether waiting requests count as deferred: for REP_DEFER_TIMEOUT and ``spider_idle``."""


IN_DELAY: Final = HoldReason("the site has a delay")
IN_PAUSE: Final = HoldReason("the site answered 429 or 503")
UNKNOWN: Final = HoldReason("robots.txt is being looked up")
UNREACHABLE: Final = HoldReason("robots.txt is unreachable", defers=True)


class Hold(NamedTuple):
    """Why a request may not leave yet, and until when."""

    reason: HoldReason
    until: float
    """When the wait ends, in seconds of the monotonic clock. Infinity if that is not known: then
    the admission tells when the answer may have changed."""


@dataclass(eq=False)
class Ask:
    """A request that wants to leave. It may be on disk, so it is read only if a reason needs it."""

    origin: Origin
    head: Head
    entry: Entry | None
    """The entry of the origin; None if robots.txt is not known."""
    decider: Decider
    delays: Delays

    @cached_property
    def decision(self) -> Decision | None:
        """The decision on the request; None if it can't be read, or no robots.txt applies.

        It may have no verdict. Raises ValueError if the request declares unknown purposes.
        """
        request = self.head()
        return None if request is None else self.decider.known_decision(request)

    @property
    def is_disallowed(self) -> bool:
        """Whether the request is known to be disallowed, so that it will be dropped."""
        verdict = None if self.decision is None else self.decision.verdict
        return verdict is not None and not verdict.allowed

    @cached_property
    def delay(self) -> float:
        """The seconds of the delay of the request."""
        return 0.0 if self.decision is None else self.delays.kept(self.decision)


class Queue(Protocol):
    """A queue of the scheduler, which calls ``Admission.admit`` before a request leaves."""

    def hold_changed(self, origin: Origin) -> None:
        """Call ``admit`` again for the waiting requests of ``origin`` at the next pop."""

    def next_unknown(self) -> tuple[Origin, Head] | None:
        """Return the next origin whose requests wait for a lookup, and note that it was returned.

        None if there is none. It may be returned again, for another download slot.
        """

    def count_deferred(self) -> tuple[int, bool]:
        """Return how many origins have deferred requests, and whether all requests are deferred.

        An origin counts once for each of its download slots in this queue. With scrapy-redis, a
        delay or a pause counts, too.
        """

    def idle_line(self) -> str:
        """Return the log line about the deferred requests; empty if there are none."""

    def holds(self) -> Iterable[tuple[Origin, Hold, int]]:
        """Return each origin whose requests wait, its hold, and the number of these requests."""

    def stop(self) -> int:
        """Stop all timers; return how many requests are deferred."""
