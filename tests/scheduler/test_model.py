"""Queue, gate and disk together in made-up time, beside a plain list.

``python -m tests.scheduler.test_model [STEPS]`` is the long form: a million steps, unless told.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from scrapy import Request, squeues

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.slot_order import Position
from scrapy_rep.scheduler.source import META_KEY, note_returned
from scrapy_rep.settings import Options
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import FakeCrawler
from tests.scheduler.test_gate import MARGIN, TIMEOUT, Cache, Judge, Scene, started_at_once

SITES = [*(f"http://{name}.example" for name in "abc"), "https://a.example"]
STEPS = 50
"""Of each run of the short form."""
ACTS = ["push", "push", "pop", "pop", "pop", "end"]
NUMBERS = st.integers(0, 11)
MANY = st.lists(st.tuples(st.sampled_from(ACTS), NUMBERS, NUMBERS), min_size=3, max_size=20)
ORIGINS = st.sampled_from([origin_of(site) for site in SITES])


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


class Model(RuleBasedStateMachine):
    knows = Scene.knows
    comes = Scene.comes

    def __init__(self):
        super().__init__()
        logging.disable(logging.CRITICAL)
        self.resources = ExitStack()
        self.resources.callback(logging.disable, logging.NOTSET)
        self.resources.enter_context(started_at_once())
        self.number = 0
        self.places_of = {}
        """When each URL was pushed last."""
        self.waiting = {}
        """Requests in the queue, by URL."""
        self.active = []
        """Requests that are being downloaded."""
        self.ended = {}
        """Those that have ended since something was last popped; a kill may bring them again."""
        self.full_slots = ()
        self.spoilt = set()
        """URLs of requests that can't be read."""

    @initialize(
        on_disk=st.sampled_from([False, True, True]),
        order=st.sampled_from(["Fifo", "Lifo"]),
        places=st.integers(1, 3),
    )
    def begin(self, on_disk, order, places):
        self.order, self.places = order, places
        self.folder = None
        if on_disk:
            self.root = Path(tempfile.mkdtemp())
            self.resources.callback(shutil.rmtree, self.root)
            self.folder = self.root / "0"
            self.folder.mkdir()
        self.open(None)
        for site in SITES[:2]:
            self.knows(origin_of(site))

    def open(self, state):
        """Begin a crawl with what is on disk."""
        self.time = MadeUpTime()
        self.crawler = FakeCrawler()
        self.crawler.engine.paused = False
        self.cache = Cache(self.time)
        self.cache.places = self.places
        self.judge = Judge(self.cache)
        self.needs = self.judge.needs_robotstxt = Trouble(self.judge.needs_robotstxt)
        self.full = Trouble(lambda slot: slot in self.full_slots)
        # The crawler leads to its gate as long as somebody holds that.
        self.gate = Gate(
            crawler=self.crawler,
            cache=self.cache,
            decider=self.judge,
            options=Options.from_settings(
                {"REP_UNREACHABLE_ACTION": "defer", "REP_DEFER_TIMEOUT": TIMEOUT}
            ),
            delays=SimpleNamespace(is_full=self.full, close=lambda: None),
            clock=self.time.clock,
        )
        kind = f"Pickle{self.order}DiskQueue" if self.folder else f"{self.order}MemoryQueue"
        start = squeues.PickleFifoDiskQueue if self.folder else squeues.FifoMemoryQueue
        self.queue = RobotsAwarePriorityQueue(
            self.crawler,
            getattr(squeues, kind),
            str(self.folder or ""),
            state,
            start_queue_cls=start,
            clock=self.time.clock,
        )
        self.take = self.queue._requests.take = Trouble(self.queue._requests.take)

    # What a crawl does.

    def goes_its_way(self, acts):
        """Do several of what is done most: pushes, pops, and ends of downloads."""
        for act, which, number in acts:
            if act == "push":
                meta = {"is_start_request": True} if number == 0 else {}
                if number == 1:
                    meta["download_slot"] = "another"
                site = SITES[which % len(SITES)]
                self.push(Request(f"{site}/{self.number}", priority=number % 3 - 1, meta=meta))
            elif act == "pop":
                self.pops()
            elif self.active:
                self.ends(which)
            self.all_are_counted()

    # Three of them, as hypothesis leaves out rules at random.
    goes_on_1 = rule(acts=MANY)(goes_its_way)
    goes_on_2 = rule(acts=MANY)(goes_its_way)
    goes_on_3 = rule(acts=MANY)(goes_its_way)

    def push(self, request):
        self.number += 1
        self.places_of[request.url] = self.number
        self.queue.push(request)
        self.waiting[request.url] = request

    def pops(self):
        self.ended.clear()
        request = self.queue.pop()
        if request is None:
            return
        assert request.url in self.waiting, "each comes once"
        lane = [r for r in self.waiting.values() if self.lane(r) == self.lane(request)]
        assert request.url == min(lane, key=self.turn).url, "order within an origin"
        del self.waiting[request.url]
        self.crawler.downloader.begin(request)
        del request.meta[META_KEY]
        self.active.append(request)

    def lane(self, request):
        return origin_of(request.url), self.crawler.downloader.get_slot_key(request)

    def turn(self, request):
        start = request.meta.get("is_start_request", False)
        order = 1 if start or self.order == "Fifo" else -1
        return -request.priority, start, order * self.places_of[request.url]

    def ends(self, which):
        request = self.active.pop(which % len(self.active))
        self.crawler.downloader.end(request)
        self.ended[request.url] = request

    @precondition(lambda self: self.active)
    @rule(which=NUMBERS)
    def goes_back(self, which):
        request = self.active.pop(which % len(self.active))
        self.push(note_returned(request))
        self.crawler.downloader.end(request)
        # The engine asks for the next one then; killed before, the request comes twice.
        self.pops()

    @rule(slots=st.sets(st.sampled_from(["a.example", "b.example", "c.example"])))
    def has_enough_to_do(self, slots):
        self.full_slots = slots

    # What becomes of robots.txt.

    @rule(
        origin=ORIGINS,
        reason=st.sampled_from([Reason.UNAVAILABLE, Reason.UNAVAILABLE, Reason.UNREACHABLE]),
        seconds=st.sampled_from([0.0, 5.0, 1000.0]),
    )
    def learns(self, origin, reason, seconds):
        if origin in self.cache.under_way:
            self.comes(origin, reason, seconds=seconds)
        else:
            self.knows(origin, reason, seconds=seconds)

    @rule(origin=ORIGINS)
    def fails(self, origin):
        if origin in self.cache.under_way:
            self.cache.under_way.pop(origin).errback(ZeroDivisionError("made up"))

    @rule(origin=ORIGINS)
    def forgets(self, origin):
        self.cache.entries.pop(origin, None)

    @rule(seconds=st.sampled_from([0.5, 3.0, 7.0, 61.0]))
    def goes_on(self, seconds):
        self.time.advance(seconds)

    @rule(which=st.sampled_from(["take", "full", "needs"]))
    def is_in_trouble(self, which):
        getattr(self, which).times += 1

    # The disk.

    @precondition(lambda self: self.folder and self.waiting)
    @rule(which=NUMBERS)
    def spoils(self, which):
        url = list(self.waiting)[which % len(self.waiting)]
        rows = self.queue._disk._run("SELECT number, request FROM requests WHERE request != x'80'")
        (number,) = [
            number
            for number, data in rows.fetchall()
            if number not in self.queue._disk._taken and self.queue._disk._decoded(data).url == url
        ]
        self.queue._disk._run("UPDATE requests SET request = x'80' WHERE number = ?", (number,))
        del self.waiting[url]
        self.spoilt.add(url)

    @precondition(lambda self: self.folder and len(self.waiting) > 2)
    @rule()
    def closes_and_goes_on(self):
        while self.active:
            self.ends(0)
        self.ended.clear()
        self.gate.close()
        self.open(self.queue.close())
        assert len(self.queue) == len(self.waiting) + len(self.spoilt)

    @precondition(lambda self: self.folder and self.active)
    @rule()
    def is_killed(self):
        killed = self.root / f"{int(self.folder.name) + 1}"
        shutil.copytree(self.folder, killed)
        self.gate.close()
        self.queue.close()
        self.folder = killed
        self.open(None)
        rows = self.queue._disk._run("SELECT request FROM requests WHERE request != x'80'")
        there = {self.queue._disk._decoded(data).url for (data,) in rows.fetchall()}
        self.waiting |= {request.url: request for request in self.active}
        assert {*self.waiting} <= there <= {*self.waiting, *self.ended}
        self.waiting |= {url: self.ended[url] for url in there - {*self.waiting}}
        self.active.clear()
        self.ended.clear()
        assert len(self.queue) == len(self.waiting) + len(self.spoilt)

    # What holds at any time.

    @invariant()
    def all_are_counted(self):
        if hasattr(self, "queue"):
            left = len(self.queue) - len(self.waiting)
            assert 0 <= left <= len(self.spoilt)

    @invariant()
    def whoever_waits_is_going_to_be_woken(self):
        if not hasattr(self, "queue"):
            return
        in_line = {origin for origin, _ in self.gate._to_ask}
        assert not in_line or not self.cache.has_room
        for lane in self.queue._lanes:
            if lane.waits:
                assert (
                    lane in self.queue._failed
                    or lane in self.queue.woken
                    or lane.origin in self.cache.under_way
                    or lane.origin in in_line
                    or lane.origin in self.gate._due_at
                )
            else:
                assert lane.turn is not None
                assert lane.slot.position is not Position.NOWHERE
        soonest = min([*self.gate._due_at.values(), *self.time.timers], default=0.0)
        assert soonest <= self.time.now + TIMEOUT + MARGIN

    def teardown(self):
        try:
            if hasattr(self, "queue"):
                self.come_to_an_end()
        finally:
            self.resources.close()

    def come_to_an_end(self):
        """Let all be known and every error be over: then all that waits comes."""
        self.cache.places = 100
        self.full_slots = ()
        for trouble in (self.take, self.full, self.needs):
            trouble.times = 0
        for _ in range(3):
            self.gate.ask()
            while self.cache.under_way:
                self.comes(next(iter(self.cache.under_way)))
            for site in SITES:
                self.knows(origin_of(site))
            self.time.advance(TIMEOUT + MARGIN)
            for _ in range(len(self.waiting) + 1):
                self.pops()
        assert len(self.queue) == len(self.waiting) == 0
        assert self.crawler.stats.get("robotstxt/queue/unreadable", 0) == len(self.spoilt)
        assert not [each for each in self.gate._deferred if each.size]
        self.gate.close()
        assert self.time.timers == []
        self.queue.close()


def profile(runs, steps):
    return settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


class TestModel(Model.TestCase):
    settings = profile(150, STEPS)


def main(steps=1_000_000):
    of_run = 200
    run_state_machine_as_test(Model, settings=profile(steps // of_run, of_run))
    print(f"{steps // of_run} runs of {of_run} steps each: nothing found")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
