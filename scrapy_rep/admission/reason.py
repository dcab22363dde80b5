"""What a queue asks the admission, what this asks its reasons, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

from scrapy import Request

from scrapy_rep.cache.entry import Entry
from scrapy_rep.decision.decider import Decider, Decision
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import Tokens


class Hold(NamedTuple):
    """Why a request may not leave yet, and until when."""

    reason: HoldReason
    until: float
    """When the wait ends, in seconds of the monotonic clock. Infinity if that is not known: then
    the admission tells when the answer may have changed."""


@dataclass(eq=False)
class Ask:
    """A request that wants to leave, with what is known about it.

    The decision, and with it the request, is only read if a reason needs it: with JOBDIR, the
    request is on disk.
    """

    origin: Origin
    head: Callable[[], Request]
    """Returns the request, or raises LookupError if it can't be read."""
    entry: Entry | None
    """The entry of the origin; None if robots.txt is not known."""
    decider: Decider
    terms_of: Callable[[Decision], Mapping[str, Any] | None]
    on_wire: bool = False
    """Whether the request is about to be sent, not to leave the scheduler."""

    @property
    def host(self) -> str:
        return self.origin.host

    @cached_property
    def decision(self) -> Decision | None:
        """The decision on the request; None if it can't be read, or no robots.txt applies.

        It may have no verdict. Raises ValueError if the request declares unknown purposes.
        """
        try:
            return self.decider.known_decision(self.head())
        except LookupError:
            return None

    @property
    def is_disallowed(self) -> bool:
        """Whether the request is known to be disallowed, so that it will be dropped."""
        verdict = None if self.decision is None else self.decision.verdict
        return verdict is not None and not verdict.allowed

    @cached_property
    def terms(self) -> Mapping[str, Any]:
        """What each reason asks of the request, by its key. On the wire, as on the ticket."""
        return (self.decision and self.terms_of(self.decision)) or {}


class HoldReason:
    """Base class: a reason why requests have to wait.

    ``hold`` is a pure query. If no reason holds a request, it leaves the scheduler, and ``take`` is
    called. When it is about to be sent, ``hold`` is called once more.
    """

    text: ClassVar[str] = ""
    end: ClassVar[str] = ""
    """What ends the wait, for the docs."""
    defers: ClassVar[bool] = False
    """Whether waiting requests count as deferred: for REP_DEFER_TIMEOUT and ``spider_idle``. They
    must be disallowed meanwhile: allowed requests aren't dropped after REP_DEFER_TIMEOUT."""
    of_host: ClassVar[bool] = False
    """Whether all origins of a host wait for the same."""
    key: ClassVar[str] = ""
    """The key of what ``read`` and ``term`` return; empty if the reason reads nothing."""
    keeps_terms: bool = True
    """Whether ``term`` may return something, with the settings of this crawl."""

    @staticmethod
    def read(robots: RobotsTxt, tokens: Tokens) -> Any:  # noqa: ARG004 - for subclasses
        """Return what ``robots`` asks of a crawler, which is kept in the entry; None if nothing.

        All crawls of the process share the result, so it doesn't depend on settings.
        """
        return None

    def term(self, origin: Origin, asked: Any) -> Any:  # noqa: ARG002
        """Return what this crawl keeps of ``asked``, the result of ``read``, on the ticket.

        It is anything of which a false value means nothing; Scrapy's marshal queues must be able to
        write it. Only called for an allowed request.
        """
        return None

    def hold(self, ask: Ask) -> Hold | None:
        """Return why the request has to wait, and until when; None if it need not."""
        raise NotImplementedError

    def take(self, ask: Ask) -> None:
        """Note that the request leaves the scheduler."""


class Queue(Protocol):
    """A queue of the scheduler, which calls ``Admission.admit`` before a request leaves."""

    def hold_changed(self, origin: Origin) -> None:
        """Call ``admit`` again for the waiting requests of ``origin`` at the next pop."""

    def next_unknown(self) -> Origin | None:
        """Return the next origin whose requests wait for a lookup, and note that it was returned.

        None if there is none. It may be returned again, for another download slot.
        """

    def head_of(self, origin: Origin) -> Request | None:
        """Return, not remove, the next waiting request of ``origin`` in this queue, or None."""

    def count_deferred(self) -> tuple[int, bool]:
        """Return how many origins have deferred requests, and whether all requests are deferred.

        An origin counts once for each of its download slots in this queue.
        """

    def idle_line(self) -> str:
        """Return the log line about the deferred requests; empty if there are none."""

    def holds(self) -> Iterable[tuple[Origin, Hold, int]]:
        """Return each origin whose requests wait, its hold, and the number of these requests."""

    def stop(self) -> int:
        """Stop all timers; return how many requests are deferred."""
