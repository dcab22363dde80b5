"""An event loop with a clock of its own, which picks every next step by a random generator."""

import asyncio
import heapq

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
