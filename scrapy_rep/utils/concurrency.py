"""Clocks, background tasks, threads and time limits, with every reactor and without one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import monotonic, time
from types import coroutine
from typing import Any, Generic, TypeVar

from scrapy.utils.asyncio import CallLaterResult, call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred, DeferredQueue
from twisted.python.failure import Failure

from scrapy_rep.utils.log import LimitedLogger

T = TypeVar("T")
Timer = CallLaterResult
"""A scheduled call of a function, which can be cancelled."""


@dataclass(frozen=True)
class Clock:
    """The functions with which a crawl reads the time and sets timers. Tests replace them."""

    time: Callable[[], float] = time
    """Returns the seconds since the epoch. They may decrease if the system clock is set back."""
    monotonic: Callable[[], float] = monotonic
    """Returns seconds that never decrease."""
    call_later: Callable[..., Any] = call_later
    """Called with seconds, a function and its arguments. Calls the function after these seconds;
    returns a ``Timer``."""


class Promise(Generic[T]):
    """A value that is set later, for one coroutine that awaits it.

    It is an asyncio future if asyncio is available, otherwise a Deferred. In both cases the
    coroutine goes on in the next turn of the event loop. A Deferred alone would run it at once: if
    each of a hundred coroutines wakes the next one, that exceeds the recursion limit.
    """

    __slots__ = ("_future", "is_set")

    def __init__(self) -> None:
        self.is_set: bool = False
        """Whether a value or an error was set before the waiting coroutine was cancelled."""
        self._future: asyncio.Future[T] | Deferred[T] = (
            asyncio.get_event_loop().create_future() if is_asyncio_available() else Deferred()
        )

    @property
    def is_done(self) -> bool:
        """Whether a value or an error was set, or the waiting coroutine was cancelled."""
        future = self._future
        return self.is_set or (future.called if isinstance(future, Deferred) else future.done())

    def set_result(self, value: T) -> None:
        """Set the value. No effect if ``is_done``."""
        self._end(value, "callback", "set_result")

    def set_exception(self, error: BaseException) -> None:
        """Raise ``error`` in the waiting coroutine. No effect if ``is_done``."""
        self._end(error, "errback", "set_exception")

    def _end(self, end: object, of_deferred: str, of_future: str) -> None:
        if self.is_done:
            return
        self.is_set = True
        if isinstance(self._future, Deferred):
            # If the coroutine is cancelled meanwhile, the Deferred ignores this call.
            call_later(0, getattr(self._future, of_deferred), end)
        else:
            getattr(self._future, of_future)(end)

    def __await__(self) -> Generator[Any, Any, T]:
        return self._future.__await__()


async def sleep(seconds: float) -> None:
    """Wait for ``seconds`` seconds."""
    over: Promise[None] = Promise()
    timer = call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


@coroutine
def within(seconds: float, work: Awaitable[T]) -> Generator[Any, Any, T]:
    """Return the result of ``work``, or raise TimeoutError after ``seconds``.

    ``work`` is cancelled at the time limit: as there is no task, the future that it awaits is; what
    it returns then doesn't count. If the event loop was blocked, a result that has come counts.
    """
    steps = work.__await__()
    awaited: Any = None
    is_late = False

    def time_out() -> None:
        nonlocal is_late
        is_late = True
        if awaited is not None:
            awaited.cancel()

    # After a block of the loop, timers may be called before what came in time is delivered: so a
    # turn later. If ``work`` has ended by then, that does nothing.
    timer = call_later(seconds, call_later, 0, time_out)
    try:
        awaited = next(steps)
        while True:
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - raised in the coroutine
                awaited = steps.throw(error)
            else:
                awaited = steps.send(value)
            if is_late:  # the former future had already ended, so cancel the next one
                time_out()
    except (StopIteration, CancelledError, asyncio.CancelledError) as end:
        if is_late:
            raise TimeoutError(f"took longer than {seconds:g} s") from None
        if not isinstance(end, StopIteration):
            raise
        result: T = end.value
        return result
    finally:
        timer.cancel()
        awaited = None


async def as_completed(coroutines: Iterable[Coroutine[Any, Any, T]]) -> AsyncIterator[T]:
    """Run all coroutines at once; yield the result of each, or raise its error, as it ends.

    If the iteration ends early, the remaining coroutines are cancelled.
    """
    ends: DeferredQueue[T | Failure] = DeferredQueue()
    tasks = [deferred_from_coro(coroutine) for coroutine in coroutines]
    for task in tasks:
        task.addBoth(ends.put)
    try:
        for _ in tasks:
            end = await maybe_deferred_to_future(ends.get())
            if isinstance(end, Failure):
                end.raiseException()
            yield end
    finally:
        for task in tasks:
            task.cancel()


class Background:
    """Runs coroutines in the background, and logs their errors. A crawl ends after them."""

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
        while self._ended and not self._tasks:
            self._ended.pop(0).set_result(None)


def in_thread(func: Callable[[], T]) -> Awaitable[T]:
    """Call ``func``, which may hang, in a new daemon thread; return an awaitable of its result."""
    call, result = _promised(func)
    Thread(target=call, daemon=True).start()
    return result


class Worker:
    """A daemon thread for blocking calls, one after another. It starts with the first call.

    The thread pools of the event loop and the reactor are not used: host names are resolved in
    them, and a store that hangs would block this for the whole crawl.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] | None = None

    def call(self, func: Callable[[], T]) -> Awaitable[T]:
        """Call ``func`` in the thread; return an awaitable of its result.

        If the waiting coroutine is cancelled before the call begins, the call is not made.
        """
        if self._calls is None:
            self._calls = SimpleQueue()
            Thread(target=_make_calls, args=(self._calls,), name=self._name, daemon=True).start()
        call, result = _promised(func)
        self._calls.put(call)
        return result

    async def stop(self) -> None:
        """Wait until all earlier calls have ended, and end the thread. A later call starts one."""
        if self._calls is not None:
            last = self.call(lambda: None)
            self._calls.put(None)
            self._calls = None  # the old thread reads the old queue until it ends
            await last


def _make_calls(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    for call in iter(calls.get, None):
        call()


def _promised(func: Callable[[], T]) -> tuple[Callable[[], None], Promise[T]]:
    """Return what another thread is to call in place of ``func``, and the promise of its result."""
    promise: Promise[T] = Promise()
    post = _thread_safe_caller()

    def call() -> None:
        if promise.is_done:  # the coroutine that waited was cancelled
            return
        try:
            deliver = partial(promise.set_result, func())
        except Exception as error:  # noqa: BLE001 - raised where the promise is awaited
            deliver = partial(promise.set_exception, error)
        with suppress(RuntimeError):  # the event loop is closed: then no coroutine waits
            post(deliver)

    return call, promise


def _thread_safe_caller() -> Callable[[Callable[[], None]], object]:
    """Return a function for any thread, which calls its argument later in the present thread."""
    if is_asyncio_available():
        return asyncio.get_event_loop().call_soon_threadsafe
    from twisted.internet import reactor

    post: Callable[[Callable[[], None]], object] = reactor.callFromThread
    return post
