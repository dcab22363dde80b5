"""An event loop with a clock of its own, which picks every next step by a random generator.

And what the worlds that live on one have in common.
"""

import asyncio
import heapq
from collections import Counter
from contextlib import suppress
from random import Random

START = 1_000.0
LAG = 0.2
"""Seconds that pass at most while something is ready to go on."""


class DeadlockError(Exception):
    """Nothing can go on, and something waits."""


class ViolationError(AssertionError):
    """Something that must hold did not."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs no I/O. Time passes when nothing is ready, and now and then while something is."""

    def __init__(self, random):
        super().__init__()
        self.random = random
        self.now = START
        self.steps = 0
        self.lag = 0.0
        """How probable it is that a timer comes before what is ready."""

    def __del__(self):
        """There is nothing to close."""

    def time(self):
        return self.now

    def _run_once(self):
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if scheduled and (
            not self._ready
            or (scheduled[0]._when < self.now + LAG and self.random.random() < self.lag)
        ):
            self.now = max(self.now, scheduled[0]._when)
            while scheduled and scheduled[0]._when <= self.now:
                handle = heapq.heappop(scheduled)
                handle._scheduled = False
                self._ready.append(handle)
        if not self._ready:
            raise DeadlockError
        if len(self._ready) > 1:
            self._ready.rotate(-self.random.randrange(len(self._ready)))
        handle = self._ready.popleft()
        if not handle._cancelled:
            self.steps += 1
            handle._run()

    def _write_to_self(self):
        pass

    def _process_events(self, event_list):
        pass


class SimulatedWorld:
    """Everything that a seed decides; ``run`` lets it happen."""

    def __init__(self, seed):
        self.seed = seed
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random)
        self.faults = Counter()
        self.problems = []
        self.requests = 0
        self.ends = 0
        """Fetches, or pages sent."""

    async def run(self):
        raise NotImplementedError

    def violated(self, what):
        """Take note where raising would do no more than make a fetch fail."""
        self.problems.append(ViolationError(f"{what}, at {self.loop.now:.3f}"))

    def ask(self, worker, asked):
        """Let a coroutine be a request of ``worker``; return its task."""
        self.requests += 1
        task = self.loop.create_task(asked, name=f"{self.requests:06}")
        worker.tasks[task] = None  # in order: a seed is to replay
        task.add_done_callback(lambda task: worker.tasks.pop(task, None))
        task.add_done_callback(self.task_ended)
        return task

    def task_ended(self, task):
        if not task.cancelled() and task.exception() is not None:
            self.problems.append(task.exception())

    def cancel(self, worker):
        """Cancel one of the requests of ``worker``."""
        self.faults["cancelled"] += 1
        self.random.choice(list(worker.tasks)).cancel()

    def kill(self, worker):
        """It is gone, at whichever await it is: nothing of it happens any more."""
        self.faults["worker dies"] += 1
        worker.alive = False
        for task in list(worker.tasks):
            task.cancel()

    async def wait_for(self, tasks, seconds):
        """Wait for all, no longer than that, and see that they have ended."""
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        late = sum(not task.done() for task in tasks)
        if late and not self.problems:
            raise ViolationError(f"{late} requests that never end")

    def simulate(self):
        """Run to the end; return itself. Raises ViolationError, which names the seed."""
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self.run())
            if self.problems:
                raise self.problems[0]
        except ViolationError as violation:
            raise ViolationError(f"seed {self.seed}: {violation}") from violation
        except DeadlockError:
            what = self.problems[0] if self.problems else "nothing goes on any more"
            raise ViolationError(f"seed {self.seed}: {what}") from None
        finally:
            self.clean_up()
            asyncio.set_event_loop(None)
        return self

    def clean_up(self):
        """End what dead workers have left behind."""
        for _ in range(10):
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task._log_destroy_pending = False
                task.cancel()
            waiting = asyncio.wait(tasks, timeout=1e6) if tasks else asyncio.sleep(0)
            with suppress(DeadlockError):
                self.loop.run_until_complete(waiting)
