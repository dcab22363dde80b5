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
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred, DeferredQueue
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable

T = TypeVar("T")


async def sleep(seconds: float) -> None:
    """Wait."""
    over: Deferred[None] = Deferred()
    timer = call_later(seconds, over.callback, None)
    try:
        await maybe_deferred_to_future(over)
    finally:
        timer.cancel()


def trap_cancelled(failure: Failure) -> None:
    """Take it for no error that what goes on by itself was cancelled: an errback."""
    if not isinstance(failure.value, CancelledError | asyncio.CancelledError):
        failure.raiseException()


async def within(seconds: float, coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what ``coroutine`` returns; after ``seconds`` cancel it and raise TimeoutError."""
    task: Deferred[T] = deferred_from_coro(coroutine)
    late = False

    def too_late() -> None:
        nonlocal late
        late = True
        task.cancel()

    timer = call_later(seconds, too_late)
    try:
        return await maybe_deferred_to_future(task)
    except (CancelledError, asyncio.CancelledError):
        if not late:
            task.cancel()
            raise
        raise TimeoutError(f"took longer than {seconds:g} s") from None
    finally:
        timer.cancel()


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
    abandoned: bool = False
    """Whether nobody awaits its end any more."""
    result: Any = None
    error: Exception | None = None
    done: Deferred[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.done = Deferred(self._abandon)

    def run(self, *args: Any) -> None:
        """Call, in the thread."""
        try:
            self.result = self.func(*args)
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            self.error = error

    def _abandon(self, _: Deferred[Any]) -> None:
        self.abandoned = True

    def end(self) -> None:
        """Give the end to who waits for it, in the thread from where the job came."""
        if self.done.called:
            return
        if self.error is None:
            self.done.callback(self.result)
        else:
            self.done.errback(self.error)


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
    return maybe_deferred_to_future(job.done)


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
        return maybe_deferred_to_future(job.done)

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
            await maybe_deferred_to_future(job.done)

    def _work(self, queue: SimpleQueue[Job]) -> None:
        while True:
            jobs = [queue.get()]
            with suppress(Empty):
                while not jobs[-1].last and len(jobs) < self._batch:
                    jobs.append(queue.get_nowait())
            wanted = [job for job in jobs if not job.last and not job.abandoned]
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
    from twisted.internet import reactor  # noqa: PLC0415 - importing it would install one

    post: Callable[[Callable[[], None]], object] = reactor.callFromThread
    return post
