"""How many fetches may go on at a time, and who is next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

_SLOW: Final = 1.0
"""Seconds after which a fetch lets another one begin: sites that hang hold up no others.

So not more than REP_CONCURRENT_FETCHES begin in a second, and the deadline of a fetch bounds how
many go on."""


@dataclass(eq=False)
class _Turn:
    """One who waits for a place."""

    comes: Deferred[None] = field(default_factory=Deferred)
    given: bool = False


class Slots:
    """A number of places, given to whoever asks in the order of asking."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.slow = 0
        """How many have given up their place and go on."""
        self.when_slow: Callable[[], None] | None = None
        self._free = places
        self._queue: deque[_Turn] = deque()

    async def acquire(self) -> None:
        """Take a place, when there is one."""
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
        """Give a place to who is next."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.comes.called:
                turn.given = True
                turn.comes.callback(None)
                return
        self._free += 1


class Place:
    """The place of a fetch, which it gives up when it takes long."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._slow = False
        self._timer = call_later(_SLOW, self._give_up)

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
