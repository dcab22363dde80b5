"""Queue, gate and disk together in made-up time, beside a plain list.

What is done comes from the random numbers that ``run`` is given: hypothesis has its own, so that it
finds the shortest way to what is wrong; ``python -m tests.fuzz.queue`` takes those of a seed.
"""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from scrapy import Request, squeues

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler import backlog
from scrapy_rep.scheduler.gate import MARGIN, Gate
from scrapy_rep.scheduler.hold import Hold, HoldReason
from scrapy_rep.scheduler.source import NOTE_KEY, copy_for_scheduler
from scrapy_rep.settings import Options
from scrapy_rep.utils.per_crawl import add_part
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import FakeCrawler
from tests.scheduler.scenes import TIMEOUT, Parts
from tests.waiting import event_loop, settle

SITES = [*(f"http://{name}.example" for name in "abc"), "https://a.example"]
ORIGINS = [origin_of(site) for site in SITES]
USUAL = ["pushes", "pushes", "pops", "pops", "pops", "ends"] * 6
SELDOM = ["learns", "learns", "fails", "forgets", "goes_on", "goes_back", "fills", "is_in_trouble"]
ON_DISK = ["spoils", "closes_and_goes_on", "is_killed"]


def run(random, steps, say=lambda what: None):
    """Take so many steps and end; return how many requests there were.

    ``say`` is told of each step, and of all that was chosen for it.
    """
    model = Model(random, say)
    try:
        for _ in range(steps):
            model.step()
        model.come_to_an_end()
        return model.number
    finally:
        model.resources.close()


class Trouble:
    """Raises, once for each time that it was asked to."""

    def __init__(self, call):
        self.call = call
        self.times = 0

    def __call__(self, *arguments):
        if self.times:
            self.times -= 1
            raise OSError("made up")
        return self.call(*arguments)


class Model:
    def __init__(self, random, say):
        self.random = random
        self.say = say
        self.resources = ExitStack()
        logging.disable(logging.CRITICAL)
        self.resources.callback(logging.disable, logging.NOTSET)
        self.resources.enter_context(event_loop())
        self.number = 0
        self.turns = {}
        """Of each URL: its origin and slot, and what its place is among those of the same."""
        self.waiting = {}
        """Requests in the queue, by URL."""
        self.active = []
        """Requests that are being downloaded."""
        self.ended = {}
        """Those that have ended since something was last popped; a kill may bring them again."""
        self.full_slots = ()
        self.spoilt = set()
        """URLs of requests that can't be read."""
        self.order = self.choose(["Fifo", "Lifo"])
        self.permits = self.choose([1, 2, 3])
        # Most of what is on disk is not in memory.
        lanes, step = self.choose([(1, 1), (1, 2), (2, 1), (1_000, 100)])
        self.resources.enter_context(patch.multiple(backlog, _MAX_LANES=lanes, _STEP=step))
        self.folder = None
        if self.choose([False, True, True]):
            self.root = Path(tempfile.mkdtemp())
            self.resources.callback(shutil.rmtree, self.root)
            self.folder = self.root / "0"
            self.folder.mkdir()
        self.open(None)
        for origin in ORIGINS[:2]:
            self.parts.knows(origin)
        # Without what seldom is done, others come further.
        seldom = [*SELDOM, *(ON_DISK if self.folder else [])]
        self.rules = [*USUAL, *(rule for rule in seldom if self.choose([True, True, False]))]

    def choose(self, options):
        chosen = self.random.choice(options)
        self.say(f"    {chosen}")
        return chosen

    def step(self):
        """Do something, and see that all is well."""
        rule = self.random.choice(self.rules)
        self.say(rule)
        getattr(self, rule)()
        settle()
        self.all_are_counted()
        self.whoever_waits_is_going_to_be_woken()

    def open(self, state):
        """Begin a crawl with what is on disk."""
        self.time = MadeUpTime()
        self.crawler = FakeCrawler()
        self.crawler.engine.paused = False
        options = Options.from_settings({"REP_DEFER_TIMEOUT": TIMEOUT})
        self.parts = Parts(self.crawler, options, time=self.time, permits=self.permits)
        decider = self.parts.decider
        # Trouble in the gate alone.
        decider.origin_governing = lambda request: origin_of(request.url)
        self.needs = decider.needs_robotstxt = Trouble(decider.needs_robotstxt)
        full = Hold(HoldReason.SLOT, math.inf)
        self.full = Trouble(lambda slot: full if slot in self.full_slots else None)
        self.gate = Gate(
            crawler=self.crawler,
            cache=self.parts.cache,
            decider=decider,
            options=options,
            delays=SimpleNamespace(hold=self.full),
            clock=self.time.clock,
        )
        add_part(self.crawler, self.gate)
        kind = "Pickle%sDiskQueue" if self.folder else "%sMemoryQueue"
        self.queue = RobotsAwarePriorityQueue(
            self.crawler,
            getattr(squeues, kind % self.order),
            str(self.folder or ""),
            state,
            start_queue_cls=getattr(squeues, kind % "Fifo"),
            clock=self.time.clock,
        )
        if self.folder:
            self.resources.callback(self.queue._disk._connection.close)
        self.take = self.queue._requests.pop = Trouble(self.queue._requests.pop)

    # What a crawl does.

    def pushes(self):
        meta = self.choose([{}, {}, {}, {"is_start_request": True}, {"download_slot": "another"}])
        url = f"{self.choose(SITES)}/{self.number}"
        self.push(Request(url, priority=self.choose([-1, 0, 1]), meta=meta))

    def push(self, request):
        self.number += 1
        self.queue.push(request)
        self.waiting[request.url] = request
        lane = origin_of(request.url), self.crawler.downloader.get_slot_key(request)
        start = request.meta.get("is_start_request", False)
        order = 1 if start or self.order == "Fifo" else -1
        self.turns[request.url] = lane, (-request.priority, start, order * self.number)

    def pops(self):
        self.ended.clear()
        request = self.queue.pop()
        if request is None:
            return
        assert request.url in self.waiting, "each comes once"
        lane, turn = self.turns[request.url]
        turns = (self.turns[url] for url in self.waiting)
        assert turn == min(other for at, other in turns if at == lane), "order within an origin"
        del self.waiting[request.url]
        self.crawler.downloader.begin(request)
        del request.meta[NOTE_KEY]
        self.active.append(request)

    def ends(self):
        if self.active:
            self.end(self.choose(self.active))

    def end(self, request):
        self.active.remove(request)
        self.crawler.downloader.end(request)
        self.ended[request.url] = request

    def goes_back(self):
        if not self.active:
            return
        request = self.choose(self.active)
        self.active.remove(request)
        self.push(copy_for_scheduler(request))
        self.crawler.downloader.end(request)
        # The engine asks for the next one then; killed before, the request comes twice.
        self.pops()

    def fills(self):
        self.full_slots = self.choose([(), ("a.example",), ("b.example", "c.example")])

    # What becomes of robots.txt.

    def learns(self):
        origin = self.choose(ORIGINS)
        unreachable = self.choose([False, False, True])
        learns = self.parts.comes if origin in self.under_way else self.parts.knows
        learns(origin, unreachable=unreachable, seconds=self.choose([0, 5, 1000]))

    def fails(self):
        origin = self.choose(ORIGINS)
        if origin in self.under_way:
            self.parts.network.ends(origin, ZeroDivisionError("made up"))

    def forgets(self):
        self.parts.entries.discard(self.choose(ORIGINS))

    @property
    def under_way(self):
        return self.parts.network.under_way

    def goes_on(self):
        self.time.advance(self.choose([0.5, 3.0, 7.0, 61.0]))

    def is_in_trouble(self):
        self.choose([self.take, self.full, self.needs]).times += 1

    # The disk.

    def spoils(self):
        if not self.waiting:
            return
        url = self.choose([*self.waiting])
        rows = self.queue._disk._run("SELECT number, request FROM requests WHERE request != x'80'")
        (number,) = [
            number
            for number, data in rows.fetchall()
            if number not in self.queue._disk._in_progress
            and self.queue._disk._decode(data).url == url
        ]
        self.queue._disk._run("UPDATE requests SET request = x'80' WHERE number = ?", (number,))
        del self.waiting[url]
        self.spoilt.add(url)

    def closes_and_goes_on(self):
        while self.active:
            self.end(self.active[0])
        self.ended.clear()
        self.close()
        self.open(self.queue.close())
        assert len(self.queue) == len(self.waiting) + len(self.spoilt)

    def close(self):
        self.gate.close()
        self.parts.cache.close()
        settle()

    def is_killed(self):
        killed = self.root / f"{int(self.folder.name) + 1}"
        shutil.copytree(self.folder, killed)
        self.close()
        self.queue.close()
        shutil.rmtree(self.folder)
        self.folder = killed
        self.open(None)
        rows = self.queue._disk._run("SELECT request FROM requests WHERE request != x'80'")
        there = {self.queue._disk._decode(data).url for (data,) in rows.fetchall()}
        self.waiting |= {request.url: request for request in self.active}
        assert {*self.waiting} <= there <= {*self.waiting, *self.ended}
        self.waiting |= {url: self.ended[url] for url in there - {*self.waiting}}
        self.active.clear()
        self.ended.clear()
        assert len(self.queue) == len(self.waiting) + len(self.spoilt)

    # What holds at any time.

    def all_are_counted(self):
        assert 0 <= len(self.queue) - len(self.waiting) <= len(self.spoilt)

    def whoever_waits_is_going_to_be_woken(self):
        lookups = self.gate._lookups
        assert not lookups._pending or not lookups._may_start
        assert self.parts.decider.under_way <= self.parts.cache.max_lookups
        waiting = self.queue._waiting
        due = waiting._due._at
        rotation = self.queue._rotation
        for lane in self.queue._lanes._lanes.values():
            if lane.hold is None:
                assert lane.rank is not None
                assert lane.slot.name in rotation._idle | rotation._new
            elif lane not in waiting._woken and lane not in due:
                assert lane.origin in lookups._unfinished
                assert lane in waiting._by_origin[lane.origin]
        # One timer for all, and it comes with the first.
        timers = self.parts.timers
        assert len(timers) <= 1
        assert not due or timers[0] <= min(due.values()) <= self.time.now + TIMEOUT

    def come_to_an_end(self):
        """Let all be known and every error be over: then all that waits comes."""
        self.full_slots = ()
        self.take.times = self.full.times = self.needs.times = 0
        for _ in range(3):
            self.gate.look_up()
            settle()
            while self.under_way:
                self.parts.comes(next(iter(self.under_way)))
            for origin in ORIGINS:
                self.parts.knows(origin)
            self.time.advance(TIMEOUT + MARGIN)
            for _ in range(len(self.waiting) + 1):
                self.pops()
        assert len(self.queue) == len(self.waiting) == 0
        assert self.crawler.stats.get("robotstxt/queue/unreadable", 0) == len(self.spoilt)
        assert not self.queue._waiting._deferred
        self.close()
        assert self.parts.timers == []
        self.queue.close()
