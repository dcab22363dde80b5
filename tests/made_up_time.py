"""A clock that goes on only when a test says so."""

from heapq import heappop, heappush
from itertools import count

from scrapy_rep.utils.concurrency import Clock


class Call:
    def __init__(self, at, call, arguments):
        self.at = at
        self.call = call
        self.arguments = arguments
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class MadeUpTime:
    """What time it is, and the calls that are to come; ``wall`` may jump, ``now`` only grows."""

    def __init__(self):
        self.now = 0.0
        self.wall = 1e9
        self.clock = Clock(lambda: self.wall, lambda: self.now, self.call_later)
        self._calls = []
        self._numbers = count()

    def call_later(self, seconds, call, *arguments):
        if seconds < 0:
            raise ValueError("what is past comes no more")
        later = Call(self.now + seconds, call, arguments)
        heappush(self._calls, (later.at, next(self._numbers), later))
        return later

    @property
    def calls(self):
        """Each call that is to come and that nobody has cancelled, in order."""
        return [call for _, _, call in sorted(self._calls) if not call.cancelled]

    @property
    def timers(self):
        return [call.at for call in self.calls]

    def advance(self, seconds):
        """Let time go on, and every call come whose time that is."""
        end = self.now + seconds
        while self._calls and self._calls[0][0] <= end:
            at, _, call = heappop(self._calls)
            self._go_to(max(at, self.now))
            if not call.cancelled:
                call.call(*call.arguments)
        self._go_to(end)

    def _go_to(self, now):
        self.wall += now - self.now
        self.now = now
