"""Turns in made-up time: a fleet keeps the delay that a site asks for, whoever of it sends."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from scrapy import Request
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from scrapy_rep import CrawlClosingError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.turns import Turns
from scrapy_rep.stores.base import StoreError, Turn
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.scrapy_internals import PlacesBeside
from tests.made_up_time import MadeUpTime
from tests.waiting import PATIENCE

A, B = (origin_of(f"http://{name}.example") for name in "ab")
A_TOO = origin_of("https://a.example")
DELAY = 2.0
LATE = 0.1
"""Seconds by which a turn is missed."""


@pytest.fixture(autouse=True)
def at_once():
    turns = "scrapy_rep.scheduler.turns"
    with (
        patch(f"{turns}.deferred_from_coro", Deferred.fromCoroutine),
        patch(f"{turns}.maybe_deferred_to_future", lambda deferred: deferred),
    ):
        yield


class Waiter:
    def __init__(self):
        self.woken = 0

    def wake(self):
        self.woken += 1


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
        )
        self.turns = Turns(self.crawler, store, self.known, self, time.clock)
        self.time = time
        self.sent = []

    def connect(self, reached, _):
        self.reached = reached

    @staticmethod
    def known(request):
        return SimpleNamespace(
            origin=origin_of(request.url),
            entry=SimpleNamespace(asks_for_delay="free" not in request.url),
            verdict=SimpleNamespace(allowed=True),
            tokens=(),
        )

    @staticmethod
    def asked(*_):
        return DELAY

    @staticmethod
    def seconds_until_free(request):
        return 0.0

    def count(self, name, by):
        self.counts[name] = self.counts.get(name, 0) + by

    def nudged(self):
        self.nudges += 1

    def opens(self, origin=A, waiter=None):
        return self.turns.opens(origin, DELAY, waiter or Waiter())

    async def send(self, origin=A):
        await self.turns.take(None, origin, DELAY)
        self.sent.append(self.time.now)


class Scene:
    def __init__(self, workers=1):
        self.time = MadeUpTime()
        self.store = MemoryStore(
            max_origins=10, max_bytes=10, max_size=10, clock=lambda: self.time.now
        )
        self.workers = [Worker(self.store, self.time) for _ in range(workers)]


def sends(worker, count, origin=A):
    return [Deferred.fromCoroutine(worker.send(origin)) for _ in range(count)]


def test_one_worker_alone_sends_at_the_delay_and_not_slower():
    scene = Scene()
    (worker,) = scene.workers
    sends(worker, 5)
    scene.time.advance(100)
    assert worker.sent == [0, 2, 4, 6, 8]
    assert worker.counts == {"robotstxt/turns": 5}


def test_workers_take_turns():
    scene = Scene(3)
    for worker in scene.workers:
        sends(worker, 3)
    scene.time.advance(100)
    assert sorted(at for worker in scene.workers for at in worker.sent) == list(range(0, 18, 2))
    assert [worker.sent[0] for worker in scene.workers] == [0, 2, 4]


def test_one_origin_waits_for_no_other():
    scene = Scene(2)
    for worker in scene.workers:
        sends(worker, 2, A)
        sends(worker, 2, B)
    scene.time.advance(100)
    assert [worker.sent for worker in scene.workers] == [[0, 0, 4, 4], [2, 2, 6, 6]]


def test_the_origins_of_a_host_share_its_turns():
    scene = Scene(2)
    for worker in scene.workers:
        sends(worker, 2, A)
        sends(worker, 2, A_TOO)
    scene.time.advance(100)
    assert sorted(at for worker in scene.workers for at in worker.sent) == list(range(0, 16, 2))


def test_a_worker_keeps_the_delay_by_itself_where_the_store_forgets():
    scene = Scene()
    (worker,) = scene.workers
    sends(worker, 1)
    scene.time.advance(1)
    scene.store._turns.clear()
    sends(worker, 1)
    scene.time.advance(100)
    assert worker.sent == [0, pytest.approx(0.98 * DELAY)]


def test_what_takes_long_to_its_slot_comes_not_near_to_the_next():
    scene = Scene()
    (worker,) = scene.workers
    sends(worker, 2)
    scene.time.advance(0.9)
    worker.reached(Request(f"{A}/"))
    scene.time.advance(0.5)
    worker.reached(Request(f"{A}/free"))  # of another origin that asks for nothing
    worker.reached(Request(f"{B}/"))
    scene.time.advance(100)
    assert worker.sent == [0, pytest.approx(0.9 + 0.98 * DELAY)]


def test_who_waits_elsewhere_asks_when_the_slot_is_free():
    scene = Scene()
    (worker,) = scene.workers
    busy = [1.5, 0.5, 0.0, 0.0]
    worker.seconds_until_free = lambda request: busy.pop(0)
    sends(worker, 1)
    scene.time.advance(100)
    assert worker.sent == [1.5]
    assert not busy


def test_a_worker_that_dies_leaves_one_turn_unused():
    scene = Scene(2)
    first, second = scene.workers
    for each in sends(first, 9):
        each.addErrback(lambda failure: failure.trap(CrawlClosingError))
    sends(second, 3)
    scene.time.advance(1)
    first.turns.close()
    scene.time.advance(100)
    assert first.sent == [0]
    # At 4 it would have been the first worker's turn.
    assert second.sent == [2, 6, 8]


def test_who_waits_is_woken_when_the_turn_comes_and_uses_it_once():
    scene = Scene()
    (worker,) = scene.workers
    first, second = Waiter(), Waiter()
    assert not worker.opens(waiter=first)
    assert not worker.opens(waiter=second)
    assert not worker.turns.is_due(A)
    scene.time.advance(0)
    assert worker.turns.is_due(A)
    assert (first.woken, second.woken, worker.nudges) == (1, 1, 1)
    assert worker.opens(waiter=first)
    assert not worker.turns.is_due(A)
    assert not worker.opens(waiter=second)
    scene.time.advance(DELAY)
    assert second.woken == 2
    assert worker.opens(waiter=second)


def test_a_turn_that_is_missed_is_given_back():
    scene = Scene()
    (worker,) = scene.workers
    assert not worker.opens()
    scene.time.advance(LATE)
    assert not worker.opens()
    scene.time.advance(0)
    assert worker.opens(), "nobody else has reserved since: it is its turn at once"
    assert not worker.opens()
    scene.time.advance(DELAY - 0.01)
    assert not worker.turns.is_due(A)
    # It has missed one: its turns are as much longer as it was late.
    scene.time.advance(LATE + 0.02)
    assert worker.opens()
    assert worker.counts == {"robotstxt/turns": 3, "robotstxt/turns_late": 1}


def test_a_turn_that_is_missed_is_lost_where_another_has_the_next():
    scene = Scene(2)
    first, second = scene.workers
    assert not first.opens()
    assert not second.opens()
    scene.time.advance(LATE)
    assert not first.opens()
    scene.time.advance(DELAY - LATE)
    assert not first.turns.is_due(A)
    assert second.opens()
    scene.time.advance(DELAY)
    assert first.opens()


def test_a_worker_that_is_always_late_goes_on():
    scene = Scene()
    (worker,) = scene.workers
    assert not worker.opens()
    misses = 0
    scene.time.advance(LATE)
    while not worker.opens():
        misses += 1
        scene.time.advance(LATE)
    assert misses == 1
    assert worker.counts["robotstxt/turns_late"] == 1


def test_a_worker_that_is_busy_has_longer_turns_and_comes_not_near_to_the_next():
    scene = Scene(2)
    busy, other = scene.workers
    while not busy.opens():
        scene.time.advance(LATE)
    sent = scene.time.now
    assert not other.opens()
    scene.time.advance(DELAY - LATE)
    assert not other.turns.is_due(A)
    scene.time.advance(LATE)
    assert other.turns.is_due(A)
    assert other.opens()
    assert scene.time.now - sent >= DELAY


def test_a_worker_that_is_later_than_the_delay_goes_on():
    scene = Scene()
    (worker,) = scene.workers
    while not worker.opens():
        scene.time.advance(3 * DELAY)
    assert worker.counts["robotstxt/turns_late"] == 3


def test_workers_with_one_place_each_that_is_taken_for_longer_than_the_delay_go_on():
    scene = Scene(2)
    sent = {worker: [] for worker in scene.workers}
    for _ in range(60):
        for worker in scene.workers:
            if worker.opens():
                sent[worker].append(scene.time.now)
        scene.time.advance(2 * DELAY)
    times = sorted(time for times in sent.values() for time in times)
    assert all(later - sooner >= DELAY for sooner, later in pairwise(times))
    assert min(map(len, sent.values())) > 10


def test_an_error_of_the_store_delays_nobody_for_ever(caplog):
    scene = Scene()
    (worker,) = scene.workers

    async def reserve(*_):
        raise ZeroDivisionError("made up")

    scene.store.reserve = reserve
    assert not worker.opens()
    scene.time.advance(0)
    assert worker.opens()
    assert caplog.messages == ["Error while reserving the time of a request to a.example"]


def test_a_call_that_ends_with_the_event_loop_is_no_error():
    scene = Scene()
    (worker,) = scene.workers

    async def reserve(*_):
        raise asyncio.CancelledError

    scene.store.reserve = reserve
    with capturedLogs() as logs:
        worker.opens()
        gc.collect()
    assert logs == []


def test_who_waits_when_the_crawl_closes_is_told():
    scene = Scene()
    (worker,) = scene.workers
    waiting = sends(worker, 2)
    scene.time.advance(1)
    worker.turns.close()
    (late,) = sends(worker, 1)
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
        return await answer

    scene.store.reserve = reserve
    worker.opens()
    worker.turns.close()
    answer.callback(Turn(1.0, 1))
    assert scene.time.timers == []


def test_what_is_due_leaves_though_all_places_are_taken():
    scene = Scene()
    (worker,) = scene.workers
    worker.downloader.active.update(range(16))
    worker.opens()
    scene.time.advance(0)
    assert worker.downloader.total_concurrency == 17
    assert worker.opens()
    assert worker.downloader.total_concurrency == 16


def test_what_is_never_fetched_keeps_no_place():
    scene = Scene()
    (worker,) = scene.workers
    worker.downloader.active.update(range(16))
    worker.opens(A)
    scene.time.advance(0)
    assert worker.downloader.total_concurrency == 17
    worker.opens(B)
    scene.time.advance(LATE)
    assert worker.opens(B) is False
    assert worker.downloader.total_concurrency == 16


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
    places = PlacesBeside(SimpleNamespace(engine=SimpleNamespace(downloader=downloader)))
    places.give(due)
    assert downloader.total_concurrency == then
    places.give(due)
    assert downloader.total_concurrency == then
    places.give(0)
    assert downloader.total_concurrency == limit
    PlacesBeside(SimpleNamespace(engine=None)).give(1)


def test_the_guard_keeps_turns_of_its_own_while_the_store_is_down():
    """The fleet's are those of one process then: the delay is kept by each."""
    from scrapy_rep.stores.guarded import GuardedStore

    scene = Scene()

    class Down(MemoryStore):
        async def reserve(self, *_):
            raise StoreError("down")

    sizes = {"max_origins": 10, "max_bytes": 10, "max_size": 10}
    store = GuardedStore(
        Down(**sizes), scene.store, name="it", timeout=PATIENCE, clock=lambda: scene.time.now
    )
    worker = Worker(store, scene.time)
    with (
        patch("scrapy_rep.stores.guarded.within", lambda _, call: call),
    ):
        sends(worker, 3)
        scene.time.advance(100)
    assert worker.sent == [0, 2, 4]
