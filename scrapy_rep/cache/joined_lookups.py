"""One lookup of an origin at a time, shared by all requests that wait for its result.

The first request that needs the rules of an origin starts a lookup in a task of its own. Requests
that come before it has a result wait for the same lookup. After all of them have got the result,
``after`` is called, in which a fetched record is stored. So requests don't wait until the store has
written the record.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from scrapy import Request
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.cache.lookup_limit import LookupLimit, Permit
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.concurrency import Promise
from scrapy_rep.utils.log import LimitedLogger

T = TypeVar("T")

Done = Callable[[T | None, Exception], object]
"""Called with the result of a lookup; with None and the error if it failed."""


@dataclass(eq=False)
class _Lookup(Generic[T]):
    """A lookup under way, and the functions to call with its result."""

    waiters: list[Done[T]] = field(default_factory=list)
    task: Deferred[None] | None = None


class JoinedLookups(Generic[T]):
    """All lookups that are under way, at most one of each origin.

    ``look_up`` is called with an origin, product tokens, the request that started the lookup, and
    a permit of ``limit`` to release, or None if none was free; it returns the result. ``after`` is
    called when all that wait have got the result, with the origin, the result (None after an error)
    and the request. After ``close``, CrawlClosingError is raised.
    """

    def __init__(
        self,
        look_up: Callable[[Origin, Tokens, Request, Permit | None], Awaitable[T]],
        after: Callable[[Origin, T | None, Request], Awaitable[None]],
        limit: LookupLimit,
    ) -> None:
        self._look_up = look_up
        self._after = after
        self._limit = limit
        self._lookups: dict[Origin, _Lookup[T]] = {}
        self._tasks = Background()
        self._logger = LimitedLogger(__name__)
        self.closing: bool = False
        """Whether the crawl is closing. No lookup is started then."""

    def __len__(self) -> int:
        return len(self._lookups)

    @property
    def waiters(self) -> int:
        return sum(len(lookup.waiters) for lookup in self._lookups.values())

    def join_or_start(self, origin: Origin, tokens: Tokens, page: Request, done: Done[T]) -> None:
        """Call ``done`` when the lookup that is under way, or a new one, has ended.

        ``tokens`` and ``page`` are those of a new one: one under way may be for other tokens.
        Raises CrawlClosingError after ``close``.
        """
        if self.closing:
            raise CrawlClosingError
        lookup = self._lookups.get(origin)
        if lookup is not None:
            lookup.waiters.append(done)
            return
        lookup = self._lookups[origin] = _Lookup([done])
        # The permit is taken now, as the event loop may start the task some time later.
        permit = self._limit.take()
        lookup.task = self._tasks.start(self._run_lookup(lookup, origin, tokens, page, permit))

    async def result(self, origin: Origin, tokens: Tokens, page: Request) -> T:
        """Return the result of ``join_or_start``; raise its error."""
        # One promise for each request: if one request is cancelled, all others must go on waiting.
        promise: Promise[T] = Promise()
        self.join_or_start(origin, tokens, page, partial(_settle, promise))
        return await promise

    def close(self) -> None:
        """Cancel all lookups. Those that wait for them get a CrawlClosingError."""
        self.closing = True
        for origin, lookup in list(self._lookups.items()):
            if lookup.task is not None:
                lookup.task.cancel()
            # A task that is cancelled before its first step doesn't run its ``finally`` clause.
            self._pass_result(origin, lookup, None, CrawlClosingError())

    async def finish(self) -> None:
        """Wait until all lookups and all calls of ``after`` have ended."""
        await self._tasks.finish()

    async def _run_lookup(
        self,
        lookup: _Lookup[T],
        origin: Origin,
        tokens: Tokens,
        page: Request,
        permit: Permit | None,
    ) -> None:
        """Look up ``origin``, pass the result or the error to all that wait, and call ``after``."""
        result: T | None = None
        failure: Exception = CrawlClosingError()
        try:
            result = await self._look_up(origin, tokens, page, permit)
        except asyncio.CancelledError:
            if not self.closing:
                raise
        except Exception as error:  # noqa: BLE001 - passed to those that wait
            if not (self.closing and isinstance(error, CancelledError)):
                failure = error
        finally:
            self._pass_result(origin, lookup, result, failure)
        await self._after(origin, result, page)

    def _pass_result(
        self, origin: Origin, lookup: _Lookup[T], result: T | None, failure: Exception
    ) -> None:
        """End ``lookup``: pass its result to all that wait; or ``failure``, if that is None.

        Errors of those that wait are logged.
        """
        if self._lookups.get(origin) is lookup:
            del self._lookups[origin]
        waiters, lookup.waiters = lookup.waiters, []
        for done in waiters:
            try:
                done(result, failure)
            except Exception:  # noqa: PERF203 - the others are to get it
                self._logger.exception("Error after the lookup of %s", origin)


def _settle(promise: Promise[T], result: T | None, failure: Exception) -> None:
    if result is None:
        promise.set_exception(failure)
    else:
        promise.set_result(result)
