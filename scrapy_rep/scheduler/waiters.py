"""Who waits at the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy import Request


class Waiter(Protocol):
    """Requests of one origin that are kept in the scheduler."""

    size: int
    """How many they are."""
    since: float | None
    """Since when they are deferred, by the monotonic clock."""
    overdue: bool
    """Whether that has been for REP_DEFER_TIMEOUT, and they are to leave."""

    def head(self) -> Request:
        """Return the request that would leave next."""

    def wake(self) -> None:
        """Ask again whether the origin is open."""


class Alone:
    """A request that waits by itself, or went back to a scheduler which doesn't ask at the gate."""

    size = 0
    since: float | None = None
    overdue = False

    def __init__(self, request: Request) -> None:
        self._request = request
        self.turn: Deferred[None] = Deferred()

    def head(self) -> Request:
        """Return the request."""
        return self._request

    def wake(self) -> None:
        """Let its turn come."""
        if not self.turn.called:
            self.turn.callback(None)
