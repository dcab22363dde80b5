"""Flights: one lookup of an origin at a time, shared by all requests that wait for its result.

The first request that needs the rules of an origin starts a flight: a task that looks up the
origin. Requests that come before the task has a result wait for the same task. After all of them
have got the result, ``after`` is called, in which a fetched record is stored. So requests don't
wait until the store has written the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from scrapy import Request
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.concurrency import Promise

T = TypeVar("T")


@dataclass(eq=False)
class _Flight(Generic[T]):
    """A lookup under way, and the promises of the requests that wait for its result."""

    waiters: list[Promise[T]] = field(default_factory=list)
    task: Deferred[None] | None = None


class Flights(Generic[T]):
    """All lookups that are under way, at most one of each origin.

    ``look_up`` is called with an origin, product tokens and the request that started the lookup; it
    returns the result. ``after`` is called when all waiting requests have got the result, with the
    origin, the result (None after an error) and the request.
    """

    def __init__(
        self,
        look_up: Callable[[Origin, Tokens, Request], Awaitable[T]],
        after: Callable[[Origin, T | None, Request], Awaitable[None]],
    ) -> None:
        self._look_up = look_up
        self._after = after
        self._flights: dict[Origin, _Flight[T]] = {}
        self._tasks = Background()
        self.closing: bool = False
        """Whether the crawl is closing. No lookup is started then."""

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def waiters(self) -> int:
        """The number of requests that wait for lookups."""
        return sum(len(flight.waiters) for flight in self._flights.values())

    async def join_or_start(self, origin: Origin, tokens: Tokens, page: Request) -> T:
        """Return the result of the lookup of ``origin`` that is under way, or of a new lookup.

        ``page`` is the request that waits. Raises CrawlClosingError if the crawl is closing, and
        the error of ``look_up`` if that fails.
        """
        if self.closing:
            raise CrawlClosingError
        # One promise for each request: if one request is cancelled, all others must go on waiting.
        waiter: Promise[T] = Promise()
        flight = self._flights.get(origin)
        if flight is not None:
            flight.waiters.append(waiter)
        else:
            flight = self._flights[origin] = _Flight([waiter])
            flight.task = self._tasks.start(self._run_lookup(flight, origin, tokens, page))
        return await waiter

    def close(self) -> None:
        """Cancel all lookups. In the requests that wait for them, CrawlClosingError is raised."""
        self.closing = True
        for origin, flight in list(self._flights.items()):
            if flight.task is not None:
                flight.task.cancel()
            # A task that is cancelled before its first step doesn't run its ``finally`` clause.
            self._pass_result(origin, flight, None, CrawlClosingError())

    async def finish(self) -> None:
        """Wait until all lookups and all calls of ``after`` have ended."""
        await self._tasks.finish()

    async def _run_lookup(
        self, flight: _Flight[T], origin: Origin, tokens: Tokens, page: Request
    ) -> None:
        result: T | None = None
        failure: Exception = CrawlClosingError()
        try:
            result = await self._look_up(origin, tokens, page)
        except asyncio.CancelledError:
            if not self.closing:
                raise
        except Exception as error:  # noqa: BLE001 - raised in the requests that wait
            if not (self.closing and isinstance(error, CancelledError)):
                failure = error
        finally:
            self._pass_result(origin, flight, result, failure)
        await self._after(origin, result, page)

    def _pass_result(
        self, origin: Origin, flight: _Flight[T], result: T | None, failure: Exception
    ) -> None:
        """End ``flight``: pass ``result`` to all requests that wait for it.

        If ``result`` is None, ``failure`` is raised in these requests. A second call for the same
        flight has no effect.
        """
        if self._flights.get(origin) is flight:
            del self._flights[origin]
        for waiter in flight.waiters:
            if result is None:
                waiter.set_exception(failure)
            else:
                waiter.set_result(result)
