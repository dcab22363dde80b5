"""Background tasks: a crawl waits for them only before it ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.utils.concurrency import Promise
from scrapy_rep.utils.log import LimitedLogger


class Background:
    """Runs coroutines in the background, and logs their errors, as nobody awaits them."""

    def __init__(self) -> None:
        self._tasks: set[Deferred[object]] = set()
        self._logger = LimitedLogger(__name__)
        self._ended: list[Promise[None]] = []

    def start(self, coroutine: Coroutine[Any, Any, object]) -> Deferred[object]:
        """Start ``coroutine``, which may end at once; return a Deferred to cancel it."""
        task: Deferred[object] = deferred_from_coro(coroutine)
        self._tasks.add(task)
        task.addErrback(self._log_failure)
        task.addBoth(self._remove, task)
        return task

    async def finish(self) -> None:
        """Wait until no task runs, also none that was started meanwhile."""
        if self._tasks:
            self._ended.append(Promise())
            await self._ended[-1]

    def _log_failure(self, failure: Failure) -> None:
        if not isinstance(failure.value, CancelledError | asyncio.CancelledError):
            self._logger.error("Error in a task in the background", exc_info=failure.value)

    def _remove(self, _: object, task: Deferred[object]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            ended, self._ended = self._ended, []
            for waiter in ended:
                waiter.set_result(None)
