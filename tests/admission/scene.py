"""A queue in memory, and the admission that it asks, in made-up time."""

from scrapy import Request
from scrapy.squeues import FifoMemoryQueue

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.admission.ticket import TICKET_KEY, Source
from scrapy_rep.protocol.origin import origin_of
from tests.admission.parts import DEFERRING, Parts
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import FakeCrawler
from tests.waiting import settle

A, B, C, D = (origin_of(f"http://{name}.example") for name in "abcd")


class Scene(Parts):
    def __init__(self, *, permits=16, **settings):
        crawler = FakeCrawler(**{**DEFERRING, **settings})
        super().__init__(crawler, MadeUpTime(), permits=permits)
        self.queue = RobotsAwarePriorityQueue(crawler, FifoMemoryQueue, "", clock=self.time.clock)

    def push(self, *origins):
        for origin in origins:
            self.queue.push(Request(f"{origin}/page"))

    def pop(self):
        """Return the origins of what leaves, with what is noted of it."""
        popped = []
        while (request := self.queue.pop()) is not None:
            # As the middleware does.
            if (entry := self.decider.known_decision(request).entry) is not None:
                entry.mark_used()
            popped.append((origin_of(request.url), Source(request.meta[TICKET_KEY][4])))
        settle()
        return popped

    def asks(self, *origins):
        self.push(*origins)
        return [origin for origin, _ in self.pop()]

    def leaves(self):
        return [origin for origin, _ in self.pop()]

    def goes_on(self, seconds):
        self.time.advance(seconds)
        return self.pop()

    @property
    def waits(self):
        """Why the requests of each origin wait, until when, and how many."""
        return {origin: (why, until, n) for origin, why, until, n in self.admission.holds()}
