"""One look-up of an origin at a time: all who ask meanwhile wait for that one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from twisted.internet.defer import CancelledError

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.concurrency import Promise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Request
    from twisted.internet.defer import Deferred

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.product_tokens import Tokens

T = TypeVar("T")


@dataclass(eq=False)
class _Flight(Generic[T]):
    """A look-up under way, and who waits for it."""

    waiters: list[Promise[T]] = field(default_factory=list)
    task: Deferred[None] | None = None


class Flights(Generic[T]):
    """The look-ups under way.

    ``look_up`` is awaited with an origin, product tokens and the request that asks, and its result
    given to all who wait; ``landed`` is awaited with the origin, the result, None after an error,
    and the request, when nobody waits any more.
    """

    def __init__(
        self,
        look_up: Callable[[Origin, Tokens, Request], Awaitable[T]],
        landed: Callable[[Origin, T | None, Request], Awaitable[None]],
    ) -> None:
        self._look_up = look_up
        self._landed = landed
        self._flights: dict[Origin, _Flight[T]] = {}
        self._tasks = Background()
        self.closing = False
        """Whether the crawl is closing, and nothing is looked up any more."""

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def waiters(self) -> int:
        """How many wait for them."""
        return sum(len(flight.waiters) for flight in self._flights.values())

    async def join(self, origin: Origin, tokens: Tokens, page: Request) -> T:
        """Return what the look-up of ``origin`` comes to, the one under way or a new one.

        Raises CrawlClosingError, and what ``look_up`` raises.
        """
        if self.closing:
            raise CrawlClosingError
        # One for each, as the canceller of one must not cancel the others.
        waiter: Promise[T] = Promise()
        flight = self._flights.get(origin)
        if flight is not None:
            flight.waiters.append(waiter)
        else:
            flight = self._flights[origin] = _Flight([waiter])
            flight.task = self._tasks.start(self._fly(flight, origin, tokens, page))
        return await waiter

    def close(self) -> None:
        """End every look-up; whoever waits gets CrawlClosingError."""
        self.closing = True
        for origin, flight in list(self._flights.items()):
            if flight.task is not None:
                flight.task.cancel()
            # A task that is cancelled before its first step does nothing at all.
            self._land(origin, flight, None, CrawlClosingError())

    async def finish(self) -> None:
        """Wait until what is done when nobody waits any more has been done."""
        await self._tasks.end()

    async def _fly(self, flight: _Flight[T], origin: Origin, tokens: Tokens, page: Request) -> None:
        result: T | None = None
        failure: Exception = CrawlClosingError()
        try:
            result = await self._look_up(origin, tokens, page)
        except asyncio.CancelledError:
            if not self.closing:
                raise
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            if not (self.closing and isinstance(error, CancelledError)):
                failure = error
        finally:
            self._land(origin, flight, result, failure)
        await self._landed(origin, result, page)

    def _land(
        self, origin: Origin, flight: _Flight[T], result: T | None, failure: Exception
    ) -> None:
        """Tell all who wait, once."""
        if self._flights.get(origin) is flight:
            del self._flights[origin]
        for waiter in flight.waiters:
            if result is None:
                waiter.set_exception(failure)
            else:
                waiter.set_result(result)
