"""Threads, pauses and time limits, the same with any reactor and without one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred, DeferredQueue
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable

T = TypeVar("T")


class Promise(Generic[T]):
    """A value that is to come, for one who awaits it.

    A future of asyncio where there is its event loop, as to await a Deferred there takes both.
    """

    __slots__ = ("_future", "is_kept")

    def __init__(self) -> None:
        self.is_kept = False
        """Whether the value has come."""
        self._future: asyncio.Future[T] | Deferred[T] = (
            asyncio.get_event_loop().create_future() if is_asyncio_available() else Deferred()
        )

    @property
    def is_over(self) -> bool:
        """Whether it has come, or who awaited it was cancelled."""
        future = self._future
        return future.called if isinstance(future, Deferred) else future.done()

    def set_result(self, value: T) -> None:
        """Give the value, unless nobody awaits it any more."""
        if self.is_over:
            return
        self.is_kept = True
        future = self._future
        if isinstance(future, Deferred):
            future.callback(value)
        else:
            future.set_result(value)

    def set_exception(self, error: BaseException) -> None:
        """Raise ``error`` where the value is awaited, unless nobody does any more."""
        if self.is_over:
            return
        future = self._future
        if isinstance(future, Deferred):
            future.errback(error)
        else:
            future.set_exception(error)

    def __await__(self) -> Generator[Any, Any, T]:
        return self._future.__await__()


async def sleep(seconds: float) -> None:
    """Wait."""
    over: Promise[None] = Promise()
    timer = call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


def trap_cancelled(failure: Failure) -> None:
    """Take it for no error that what goes on by itself was cancelled: an errback."""
    if not isinstance(failure.value, CancelledError | asyncio.CancelledError):
        failure.raiseException()


class within(Generic[T]):  # noqa: N801 - called as a function, and awaited
    """Return what ``coroutine`` returns; after ``seconds`` cancel it and raise TimeoutError.

    It needs no task: what the coroutine awaits is cancelled, and so its error comes from there.
    """

    __slots__ = ("_awaited", "_coroutine", "_late", "_seconds")

    def __init__(self, seconds: float, coroutine: Coroutine[Any, Any, T]) -> None:
        self._seconds = seconds
        self._coroutine = coroutine
        self._awaited: Any = None
        self._late = False

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._coroutine.__await__()
        timer = call_later(self._seconds, self._too_late)
        try:
            self._awaited = next(steps)
            while True:
                try:
                    value = yield self._awaited
                except BaseException as error:  # noqa: BLE001 - the coroutine's to handle
                    self._awaited = steps.throw(error)
                else:
                    self._awaited = steps.send(value)
                if self._late:  # what it awaited had come already
                    self._cancel()
        except StopIteration as end:
            result: T = end.value
            return result
        except (CancelledError, asyncio.CancelledError):
            if not self._late:
                raise
            raise TimeoutError(f"took longer than {self._seconds:g} s") from None
        finally:
            timer.cancel()

    def _too_late(self) -> None:
        self._late = True
        self._cancel()

    def _cancel(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()


async def as_completed(coroutines: Iterable[Coroutine[Any, Any, T]]) -> AsyncIterator[T]:
    """Run all coroutines at once; yield what each returns, or raise its error, as they end.

    Those that go on are cancelled where no more is asked for.
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


@dataclass(eq=False)
class Job:
    """A call on its way to a thread, and its end on its way back."""

    func: Callable[..., Any]
    post: Callable[[Callable[[], None]], object]
    """Calls a function in the thread from where the job came."""
    last: bool = False
    """Whether the thread that comes to it ends."""
    result: Any = None
    error: Exception | None = None
    done: Promise[Any] = field(default_factory=Promise)

    def run(self, *args: Any) -> None:
        """Call, in the thread."""
        try:
            self.result = self.func(*args)
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            self.error = error

    def end(self) -> None:
        """Give the end to who waits for it, in the thread from where the job came."""
        if self.error is None:
            self.done.set_result(self.result)
        else:
            self.done.set_exception(self.error)


def deliver(jobs: list[Job]) -> None:
    """Send the ends of jobs back, together: waking the other thread costs more than a job."""
    for post, group in groupby(jobs, attrgetter("post")):
        ended = list(group)
        # An event loop that has been closed: nobody waits any more.
        with suppress(RuntimeError):
            post(partial(_end, ended))


def _end(jobs: list[Job]) -> None:
    for job in jobs:
        job.end()


def _run_each(jobs: list[Job]) -> None:
    """Run jobs one after another."""
    for job in jobs:
        job.run()
    deliver(jobs)


def in_thread(func: Callable[[], T]) -> Awaitable[T]:
    """Call ``func`` in a thread of its own, which keeps no process from ending.

    For what may hang: however many calls do so, the next one is not held up by them.
    """
    job = Job(func, poster())
    threading.Thread(target=_run_each, args=([job],), daemon=True).start()
    return job.done


class Workers:
    """A few threads for calls that block.

    They are our own, not those of the event loop or the reactor: names are looked up in those,
    and a store that hangs would take the DNS of the whole crawl along. They start with the first
    call, and keep no process from ending. ``run`` is given at most ``batch`` calls at a time.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 1,
        batch: int = 1,
        run: Callable[[list[Job]], None] = _run_each,
    ) -> None:
        self._name = name
        self._count = threads
        self._batch = batch
        self._run = run
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def call(self, func: Callable[..., T]) -> Awaitable[T]:
        """Call ``func`` in a thread; what it returns or raises comes back to who awaits this.

        A call that nobody awaits any more when its turn comes is left out.
        """
        if not self._threads:
            self._threads = [
                threading.Thread(
                    target=self._work, args=(self._queue,), name=f"{self._name}-{i}", daemon=True
                )
                for i in range(self._count)
            ]
            for thread in self._threads:
                thread.start()
        job = Job(func, poster())
        self._queue.put(job)
        return job.done

    async def stop(self) -> None:
        """End the threads when they have done what was asked until now, and wait for that.

        The next call starts new ones.
        """
        ends = [Job(_nothing, poster(), last=True) for _ in self._threads]
        for job in ends:
            self._queue.put(job)
        # Threads that start later don't see what these have still to do.
        self._threads = []
        self._queue = SimpleQueue()
        for job in ends:
            await job.done

    def _work(self, queue: SimpleQueue[Job]) -> None:
        while True:
            jobs = [queue.get()]
            with suppress(Empty):
                while not jobs[-1].last and len(jobs) < self._batch:
                    jobs.append(queue.get_nowait())
            wanted = [job for job in jobs if not job.last and not job.done.is_over]
            if wanted:
                self._run(wanted)
            if jobs[-1].last:
                deliver(jobs[-1:])
                return


def _nothing() -> None:
    pass


def poster() -> Callable[[Callable[[], None]], object]:
    """Return what calls a function in the thread that is running now."""
    if is_asyncio_available():
        return asyncio.get_event_loop().call_soon_threadsafe
    from twisted.internet import reactor

    post: Callable[[Callable[[], None]], object] = reactor.callFromThread
    return post
