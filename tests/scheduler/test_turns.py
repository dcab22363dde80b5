"""Turns in made-up time: a fleet keeps the delay that a site asks for, whoever of it sends."""

from __future__ import annotations

import asyncio
import gc
import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from scrapy_rep import CrawlClosingError
from scrapy_rep.downloadermiddlewares import waiting_requests
from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.hold import HoldReason
from scrapy_rep.scheduler.turns import Turns
from scrapy_rep.stores.base import StoreError, Turn
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.scrapy_internals import ExtraConcurrency
from tests.made_up_time import MadeUpTime
from tests.waiting import PATIENCE, settle

A, B = (origin_of(f"http://{name}.example") for name in "ab")
A_TOO = origin_of("https://a.example")
DELAY = 2.0
LATE = 0.1
"""Seconds by which a turn is missed."""


pytestmark = pytest.mark.event_loop


class Worker:
    """One worker's turns, and its counts."""

    def __init__(self, store, time):
        self.counts = {}
        self.nudges = 0
        self.downloader = SimpleNamespace(total_concurrency=16, active=set())
        slot = SimpleNamespace(closing=None, nextcall=SimpleNamespace(schedule=self.nudged))
        self.crawler = SimpleNamespace(
            engine=SimpleNamespace(downloader=self.downloader, _slot=slot),
            stats=SimpleNamespace(inc_value=self.count),
            signals=SimpleNamespace(connect=self.connect),
            settings=Settings(),
        )
        self.turns = Turns(self.crawler, store, self.known, self, time.clock)
        gate = SimpleNamespace(listen_for_hold_change=self.turns.listen_for_hold_change)
        self.waits = WaitingRequests(
            self.crawler, SimpleNamespace(known_decision=self.known), gate, self.turns, time.clock
        )
        self.time = time
        self.sent = []

    def connect(self, reached, _):
        self.reached = reached

    @staticmethod
    def known(request):
        return SimpleNamespace(
            origin=origin_of(request.url),
            entry=SimpleNamespace(
                asks_for_delay="free" not in request.url, delay=lambda tokens: None
            ),
            verdict=SimpleNamespace(allowed=True),
            tokens=(),
        )

    @staticmethod
    def may_have_delay(entry):
        return entry.asks_for_delay

    @staticmethod
    def apply_delay(*_):
        return DELAY

    @staticmethod
    def seconds_until_free(request):
        return 0.0

    def count(self, name, by):
        self.counts[name] = self.counts.get(name, 0) + by

    def nudged(self):
        self.nudges += 1

    def take(self, origin=A):
        """Return whether it is the turn of this worker, which is used then."""
        hold = self.turns.use(None, origin, DELAY)
        settle()
        return hold is None

    def is_due(self, origin=A):
        """Return whether a turn has come that is not used yet."""
        turn = self.turns._turns.get(origin.host)
        return turn is not None and turn.at <= self.time.now

    async def send(self, origin=A):
        request = Request(f"{origin}/")
        await self.waits.wait_for_turn(request, self.known(request), direct=True)
        self.sent.append(self.time.now)


class Scene:
    def __init__(self, workers=1):
        self.time = MadeUpTime()
        self.store = MemoryStore(max_bytes=10, max_size=10, clock=lambda: self.time.now)
        self.workers = [Worker(self.store, self.time) for _ in range(workers)]

    def advance(self, seconds):
        """Let time go on, and all that is begun meanwhile."""
        end = self.time.now + seconds
        settle()
        while (timers := self.time.timers) and timers[0] <= end:
            self.time.advance(max(0.0, timers[0] - self.time.now))
            settle()
        self.time.advance(end - self.time.now)


def sends(worker, count, origin=A):
    return [deferred_from_coro(worker.send(origin)) for _ in range(count)]


def test_one_worker_alone_sends_at_the_delay_and_not_slower():
    scene = Scene()
    (worker,) = scene.workers
    sends(worker, 5)
    scene.advance(100)
    assert worker.sent == [0, 2, 4, 6, 8]
    assert worker.counts == {"robotstxt/turns": 5}


def test_of_many_that_wait_one_asks_for_the_turn():
    scene = Scene()
    (worker,) = scene.workers
    take, asked = worker.turns.use, []

    def count(*arguments):
        asked.append(arguments)
        return take(*arguments)

    worker.turns.use = count
    waiting = sends(worker, 100)
    for cancelled in waiting[0], waiting[50]:
        cancelled.addErrback(lambda failure: failure.trap(asyncio.CancelledError))
        cancelled.cancel()
    scene.advance(1000)
    assert len(worker.sent) == 98
    assert len(asked) <= 5 * 100


def test_origins_of_a_host_take_turns():
    scene = Scene()
    (worker,) = scene.workers
    told = []
    worker.turns.listen_for_hold_change(told.append)
    line = [origin_of(f"http://a.example:{port}") for port in range(1, 4)]
    order = []
    for _ in range(20):
        # As a queue asks again: in the order in which it was told.
        for origin in line:
            if worker.turns.use(None, origin, DELAY) is None:
                order.append(origin.port)
                worker.turns.use(None, origin, DELAY)
        settle()
        line, told[:] = told[:] or line, []
        scene.advance(DELAY)
    assert order[:6] == [1, 2, 3] * 2


def test_workers_take_turns():
    scene = Scene(3)
    for worker in scene.workers:
        sends(worker, 3)
    scene.advance(100)
    assert sorted(at for worker in scene.workers for at in worker.sent) == list(range(0, 18, 2))
    assert [worker.sent[0] for worker in scene.workers] == [0, 2, 4]


def test_one_origin_waits_for_no_other():
    scene = Scene(2)
    for worker in scene.workers:
        sends(worker, 2, A)
        sends(worker, 2, B)
    scene.advance(100)
    assert [worker.sent for worker in scene.workers] == [[0, 0, 4, 4], [2, 2, 6, 6]]


def test_the_origins_of_a_host_share_its_turns():
    scene = Scene(2)
    for worker in scene.workers:
        sends(worker, 2, A)
        sends(worker, 2, A_TOO)
    scene.advance(100)
    assert sorted(at for worker in scene.workers for at in worker.sent) == list(range(0, 16, 2))


def test_a_worker_keeps_the_delay_by_itself_where_the_store_forgets():
    scene = Scene()
    (worker,) = scene.workers
    sends(worker, 1)
    scene.advance(1)
    scene.store._turns.clear()
    sends(worker, 1)
    scene.advance(100)
    assert worker.sent == [0, pytest.approx(0.98 * DELAY)]


def test_what_takes_long_to_its_slot_comes_not_near_to_the_next():
    scene = Scene()
    (worker,) = scene.workers
    sends(worker, 2)
    scene.advance(0.9)
    worker.reached(Request(f"{A}/"))
    scene.advance(0.5)
    worker.reached(Request(f"{A}/free"))  # of another origin that asks for nothing
    worker.reached(Request(f"{B}/"))
    scene.advance(100)
    assert worker.sent == [0, pytest.approx(0.9 + 0.98 * DELAY)]


def test_who_waits_elsewhere_asks_when_the_slot_is_free():
    scene = Scene()
    (worker,) = scene.workers
    busy = [1.5, 0.5, 0.0, 0.0]
    worker.seconds_until_free = lambda request: busy.pop(0)
    sends(worker, 1)
    scene.advance(100)
    assert worker.sent == [1.5]
    assert not busy


def test_a_worker_that_dies_leaves_one_turn_unused():
    scene = Scene(2)
    first, second = scene.workers
    for each in sends(first, 9):
        each.addErrback(lambda failure: failure.trap(CrawlClosingError))
    sends(second, 3)
    scene.advance(1)
    first.turns.close()
    first.waits.close()
    scene.advance(100)
    assert first.sent == [0]
    # At 4 it would have been the first worker's turn.
    assert second.sent == [2, 6, 8]


def test_who_waits_is_told_when_the_turn_is_known_and_uses_it_once():
    scene = Scene()
    (worker,) = scene.workers
    told = []
    worker.turns.listen_for_hold_change(told.append)
    assert worker.turns.use(None, A, DELAY) == (HoldReason.TURN, math.inf)
    assert worker.turns.use(None, A_TOO, DELAY) == (HoldReason.TURN, math.inf)
    assert not worker.is_due()
    settle()
    assert sorted(told) == [A, A_TOO]
    assert worker.is_due()
    assert worker.take(A)
    assert not worker.is_due()
    assert not worker.take(A_TOO)
    assert told[2:] == [A_TOO]
    assert worker.turns.use(None, A_TOO, DELAY) == (HoldReason.TURN, scene.time.now + DELAY)
    scene.advance(DELAY)
    assert worker.take(A_TOO)


def test_a_turn_that_is_missed_is_given_back():
    scene = Scene()
    (worker,) = scene.workers
    assert not worker.take()
    scene.advance(LATE)
    assert not worker.take()
    scene.advance(0)
    assert worker.take(), "nobody else has reserved since: it is its turn at once"
    assert not worker.take()
    scene.advance(DELAY - 0.01)
    assert not worker.is_due()
    # It has missed one: its turns are as much longer as it was late.
    scene.advance(LATE + 0.02)
    assert worker.take()
    assert worker.counts == {"robotstxt/turns": 3, "robotstxt/turns_late": 1}


def test_a_turn_that_is_missed_is_lost_where_another_has_the_next():
    scene = Scene(2)
    first, second = scene.workers
    assert not first.take()
    assert not second.take()
    scene.advance(LATE)
    assert not first.take()
    scene.advance(DELAY - LATE)
    assert not first.is_due()
    assert second.take()
    scene.advance(DELAY)
    assert first.take()


def test_a_worker_that_is_always_late_goes_on():
    scene = Scene()
    (worker,) = scene.workers
    assert not worker.take()
    misses = 0
    scene.advance(LATE)
    while not worker.take():
        misses += 1
        scene.advance(LATE)
    assert misses == 1
    assert worker.counts["robotstxt/turns_late"] == 1


def test_a_worker_that_is_busy_has_longer_turns_and_comes_not_near_to_the_next():
    scene = Scene(2)
    busy, other = scene.workers
    while not busy.take():
        scene.advance(LATE)
    sent = scene.time.now
    assert not other.take()
    scene.advance(DELAY - LATE)
    assert not other.is_due()
    scene.advance(LATE)
    assert other.is_due()
    assert other.take()
    assert scene.time.now - sent >= DELAY


def test_a_worker_that_is_later_than_the_delay_goes_on():
    scene = Scene()
    (worker,) = scene.workers
    while not worker.take():
        scene.advance(3 * DELAY)
    assert worker.counts["robotstxt/turns_late"] == 3


def test_workers_with_one_place_each_that_is_taken_for_longer_than_the_delay_go_on():
    scene = Scene(2)
    sent = {worker: [] for worker in scene.workers}
    for _ in range(60):
        for worker in scene.workers:
            if worker.take():
                sent[worker].append(scene.time.now)
        scene.advance(2 * DELAY)
    times = sorted(time for times in sent.values() for time in times)
    assert all(later - sooner >= DELAY for sooner, later in pairwise(times))
    assert min(map(len, sent.values())) > 10


def test_an_error_of_the_store_delays_nobody_for_ever(caplog):
    scene = Scene()
    (worker,) = scene.workers

    async def reserve(*_):
        raise ZeroDivisionError("made up")

    scene.store.reserve = reserve
    assert not worker.take()
    scene.advance(0)
    assert worker.take()
    assert caplog.messages == ["Error while reserving the time of a request to a.example"]


def test_a_call_that_ends_with_the_event_loop_is_no_error():
    scene = Scene()
    (worker,) = scene.workers

    async def reserve(*_):
        raise asyncio.CancelledError

    scene.store.reserve = reserve
    with capturedLogs() as logs:
        worker.take()
        gc.collect()
    assert logs == []


def test_who_waits_when_the_crawl_closes_is_told():
    scene = Scene()
    (worker,) = scene.workers
    waiting = sends(worker, 2)
    scene.advance(1)
    worker.turns.close()
    worker.waits.close()
    (late,) = sends(worker, 1)
    settle()
    for each in (waiting[1], late):
        assert isinstance(each.result.value, CrawlClosingError)
        each.addErrback(lambda _: None)
    assert worker.sent == [0]
    assert scene.time.timers == []


def test_an_answer_that_comes_when_the_crawl_is_closed_sets_no_timer():
    scene = Scene()
    (worker,) = scene.workers
    answer = Deferred()

    async def reserve(*_):
        return await maybe_deferred_to_future(answer)

    scene.store.reserve = reserve
    worker.take()
    worker.turns.close()
    answer.callback(Turn(1.0, 1))
    settle()
    assert scene.time.timers == []


@pytest.mark.parametrize(
    ("limit", "active", "due", "then"),
    [
        (16, 10, 3, 16),
        (16, 15, 3, 18),
        (16, 17, 1, 18),
        (16, 16, 40, 20),
        (3, 3, 2, 4),
        (1, 1, 1, 1),
        (0, 50, 3, 0),
        (-1, 50, 3, -1),
    ],
)
def test_places_beside_the_others(limit, active, due, then):
    downloader = SimpleNamespace(total_concurrency=limit, active=set(range(active)))
    extra = ExtraConcurrency(SimpleNamespace(engine=SimpleNamespace(downloader=downloader)))
    extra.increase_for(due)
    assert downloader.total_concurrency == then
    extra.increase_for(due)
    assert downloader.total_concurrency == then
    extra.increase_for(0)
    assert downloader.total_concurrency == limit
    ExtraConcurrency(SimpleNamespace(engine=None)).increase_for(1)


def test_the_guard_keeps_turns_of_its_own_while_the_store_is_down():
    """The fleet's are those of one process then: the delay is kept by each."""
    from scrapy_rep.stores.guarded import GuardedStore

    scene = Scene()

    class Down(MemoryStore):
        async def reserve(self, *_):
            raise StoreError("down")

    sizes = {"max_bytes": 10, "max_size": 10}
    store = GuardedStore(
        Down(**sizes), scene.store, name="it", timeout=PATIENCE, clock=lambda: scene.time.now
    )
    worker = Worker(store, scene.time)
    sends(worker, 3)
    scene.advance(100)
    assert worker.sent == [0, 2, 4]


def test_pauses_that_have_ended_do_not_shorten_others(monkeypatch):
    scene = Scene()
    seconds = []

    async def sleep(pause):
        seconds.append(pause)

    monkeypatch.setattr(waiting_requests, "sleep", sleep)
    for _ in range(20):
        deferred_from_coro(scene.workers[0].waits.pause_before_return())
        settle()
    assert seconds == [waiting_requests._PAUSE] * 20
