"""The gate in made-up time: who waits is woken, and nothing is asked twice."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep import CrawlClosingError
from scrapy_rep.cache.entry import Entry
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outage import Outage
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.idle import line_about
from scrapy_rep.scheduler.source import Source
from scrapy_rep.settings import Options
from tests.made_up_time import MadeUpTime

TIMEOUT = 60.0
A, B, C = (origin_of(f"http://{name}.example") for name in "abc")
MARGIN = 0.05
"""Seconds that a timer may come late."""


@pytest.fixture(autouse=True)
def at_once():
    """Let look-ups begin at once, as on an event loop that has nothing else to do."""
    with started_at_once():
        yield


@contextmanager
def started_at_once():
    gate = "scrapy_rep.scheduler.gate"
    with (
        patch(f"{gate}.deferred_from_coro", Deferred.fromCoroutine),
        patch(f"{gate}.maybe_deferred_to_future", lambda deferred: deferred),
    ):
        yield


class Crawler:
    """An engine that counts how often it is to ask the scheduler again."""

    def __init__(self):
        self.nudges = 0
        self.stats = SimpleNamespace(inc_value=self.count)
        self.counts = Counter()
        self.spider = None
        self.settings = Settings()
        self.pending = True
        self.idles = 0
        self.feed = None
        self.nothing_leaves = lambda: None
        self.signals = SimpleNamespace(connect=self.connect, send_catch_log=self.idle)
        self.engine = SimpleNamespace(
            paused=False,
            downloader=SimpleNamespace(active=set()),
            scraper=SimpleNamespace(slot=SimpleNamespace(is_idle=lambda: True)),
            _slot=SimpleNamespace(
                closing=None,
                nextcall=SimpleNamespace(schedule=self.nudged),
                scheduler=SimpleNamespace(has_pending_requests=lambda: self.pending),
            ),
        )

    def nudged(self):
        self.nudges += 1

    def count(self, name, by):
        self.counts[name] += by

    def idle(self, signal, **kwargs):
        assert signal is signals.spider_idle
        self.idles += 1
        if self.feed is None:
            return [(None, None)]
        try:
            return [(None, self.feed())]
        except DontCloseSpider:
            return [(None, Failure())]

    def connect(self, receiver, signal):
        assert signal is signals.scheduler_empty
        self.nothing_leaves = receiver


class Cache:
    """What is known of origins, as far as it holds."""

    def __init__(self, time):
        self.time = time
        self.entries = {}
        self.places = 100
        self.closing = False
        self.under_way = {}

    def known(self, origin):
        entry = self.entries.get(origin)
        return entry if entry is not None and entry.start <= self.time.wall < entry.end else None

    @property
    def has_room(self):
        return len(self.under_way) < self.places

    @property
    def flights(self):
        return len(self.under_way)

    def when_slow(self, call):
        self.slow = call


class Judge:
    """Looks origins up until the test says what it came to."""

    def __init__(self, cache):
        self.cache = cache
        self.asked = []
        self.ungoverned = set()
        self.origin_governing = lambda request: origin_of(request.url)

    def needs_robotstxt(self, origin):
        return origin not in self.ungoverned

    def lacks_tdmrep(self, origin, head):
        return False

    async def look_up(self, request):
        if self.cache.closing:
            raise CrawlClosingError
        origin = origin_of(request.url)
        assert origin not in self.cache.under_way
        self.asked.append(request)
        self.cache.under_way[origin] = turn = Deferred()
        return await turn


class Waiter:
    """Counts how often it is woken."""

    def __init__(self, origin):
        self.request = Request(f"{origin}/page")
        self.size = 3
        self.since = None
        self.overdue = False
        self.waits = False
        self.woken = 0

    def head(self):
        if self.request is None:
            raise LookupError("an empty queue")
        return self.request

    def wake(self):
        assert self.waits, "nobody is woken twice"
        self.waits = False
        self.woken += 1


class Scene:
    """A gate, and all that it asks and tells."""

    def __init__(self, **more):
        self.time = MadeUpTime()
        self.crawler = Crawler()
        self.cache = Cache(self.time)
        self.judge = Judge(self.cache)
        options = Options.from_settings(
            {"REP_UNREACHABLE_ACTION": "defer", "REP_DEFER_TIMEOUT": TIMEOUT, **more}
        )
        self.gate = Gate(
            crawler=self.crawler,
            cache=self.cache,
            decider=self.judge,
            options=options,
            delays=None,
            clock=self.time.clock,
        )
        self.gate.in_use = True

    def opens(self, origin, waiter=None, *, ask=True):
        """Ask as the queue does."""
        waiter = waiter or Waiter(origin)
        waiter.waits = True
        if self.gate.opens(origin, waiter):
            waiter.waits = False
            return None
        if ask:
            self.gate.ask()
        return waiter

    def knows(self, origin, reason=Reason.UNAVAILABLE, *, seconds=1e6):
        grant = Grant.NONE if reason is Reason.UNREACHABLE else Grant.ALL
        now = self.time.wall
        outage = Outage("status 503", now, now + seconds) if grant is Grant.NONE else None
        self.cache.entries[origin] = Entry(Access(grant, reason, None, now, now + seconds, outage))

    def comes(self, origin, reason=Reason.UNAVAILABLE, *, seconds=1e6):
        """Let a look-up end."""
        self.knows(origin, reason, seconds=seconds)
        self.cache.under_way.pop(origin).callback(self.cache.entries[origin])

    @property
    def asked(self):
        return [origin_of(request.url) for request in self.judge.asked]


# What is not known is found out.


def test_what_is_known_is_open():
    scene = Scene()
    scene.knows(A)
    assert scene.opens(A) is None
    assert scene.asked == []
    assert scene.time.timers == []


def test_what_no_robotstxt_governs_is_open_and_not_asked():
    scene = Scene()
    scene.judge.ungoverned = {A}
    scene.knows(A, Reason.UNREACHABLE)
    assert scene.opens(A) is None
    assert scene.asked == []


def test_an_unknown_origin_is_asked_once_and_all_who_wait_are_woken_once():
    scene = Scene()
    waiters = [scene.opens(A) for _ in range(3)]
    assert scene.judge.asked == [waiters[0].request]
    assert [waiter.woken for waiter in waiters] == [0, 0, 0]
    nudges = scene.crawler.nudges
    scene.comes(A)
    assert [waiter.woken for waiter in waiters] == [1, 1, 1]
    assert scene.crawler.nudges == nudges + 1
    assert scene.opens(A) is None
    scene.time.advance(1e5)
    assert [waiter.woken for waiter in waiters] == [1, 1, 1]
    assert scene.asked == [A]


def test_one_origin_waits_for_no_other():
    scene = Scene()
    of_a, of_b = scene.opens(A), scene.opens(B)
    scene.comes(B)
    assert (of_a.woken, of_b.woken) == (0, 1)
    assert scene.opens(B) is None
    assert scene.opens(A) is not None


def test_who_asks_is_not_begun_with_before_the_queue_says_so():
    """The queue asks when it has looked at all its lanes."""
    scene = Scene()
    scene.opens(A, ask=False)
    assert scene.asked == []
    scene.gate.ask()
    assert scene.asked == [A]


def test_what_expired_is_found_out_again():
    scene = Scene()
    scene.knows(A, seconds=10)
    assert scene.opens(A) is None
    scene.time.advance(10)
    waiter = scene.opens(A)
    assert scene.asked == [A]
    scene.comes(A)
    assert waiter.woken == 1


def test_what_is_forgotten_at_once_is_left_to_the_middleware_once():
    scene = Scene()
    waiter = scene.opens(A)
    scene.comes(A, seconds=0)
    assert waiter.woken == 1
    assert scene.opens(A) is None
    # The next one finds it out again.
    assert scene.opens(A) is not None
    assert scene.asked == [A, A]


@pytest.mark.parametrize("came", [True, False])
def test_an_error_wakes_who_waits(caplog, came):
    scene = Scene()
    waiters = [scene.opens(A), scene.opens(A)]
    if came:
        scene.knows(A)
    scene.cache.under_way.pop(A).errback(ZeroDivisionError("made up"))
    assert [waiter.woken for waiter in waiters] == [1, 1]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("scrapy_rep")] == [
        f"Error while looking up robots.txt of {A}"
    ]  # fmt: skip
    # The middleware is to meet the same error.
    assert scene.opens(A) is None
    # What comes behind is begun.
    scene.opens(B)
    assert scene.asked[-1] == B


@pytest.mark.parametrize("error", [CancelledError, asyncio.CancelledError, GeneratorExit])
def test_a_look_up_that_is_cut_off_wakes_who_waits(error):
    scene = Scene()
    waiter = scene.opens(A)
    scene.cache.under_way.pop(A).errback(error())
    assert waiter.woken == 1


def test_a_waiter_whose_requests_are_gone_wakes_the_others(caplog):
    scene = Scene()
    gone, other = Waiter(A), Waiter(A)
    gone.request = None
    scene.opens(A, gone, ask=False)
    scene.opens(A, other, ask=False)
    scene.gate.ask()
    assert not caplog.records
    assert (gone.woken, other.woken) == (1, 1)
    assert scene.asked == []


def test_room_bounds_what_is_begun():
    scene = Scene()
    scene.cache.places = 2
    waiters = [scene.opens(origin) for origin in (A, B, C)]
    assert scene.asked == [A, B]
    scene.comes(B)
    # The end of one begins the next.
    assert scene.asked == [A, B, C]
    assert [waiter.woken for waiter in waiters] == [0, 1, 0]


def test_room_that_comes_as_a_fetch_is_slow_is_used():
    scene = Scene()
    scene.cache.places = 1
    for origin in (A, B, C):
        scene.opens(origin)
    assert scene.asked == [A]
    scene.cache.places = 2
    scene.cache.slow()
    assert scene.asked == [A, B]


def test_a_crawl_that_pauses_asks_nothing():
    scene = Scene()
    scene.crawler.engine.paused = True
    waiter = scene.opens(A)
    assert scene.asked == []
    scene.crawler.engine.paused = False
    scene.gate.ask()
    scene.comes(A)
    assert waiter.woken == 1


def test_what_is_found_out_at_once_begins_the_next_in_order():
    scene = Scene()
    asked = []

    async def look_up(request):
        asked.append(origin_of(request.url))
        scene.gate.ask()

    scene.judge.look_up = look_up
    waiters = [scene.opens(origin, ask=False) for origin in (A, B, C)]
    scene.gate.ask()
    assert asked == [A, B, C]
    assert [waiter.woken for waiter in waiters] == [1, 1, 1]


# Who was put off, and waits nowhere.


def test_a_request_that_is_put_off_has_its_origin_found_out():
    scene = Scene()
    scene.gate.in_use = False
    request = Request(f"{A}/put-off")
    for _ in range(2):
        scene.gate.find_out(A, request)
    assert scene.judge.asked == [request]
    nudges = scene.crawler.nudges
    scene.comes(A)
    assert scene.crawler.nudges == nudges + 1
    # Nobody comes to the gate for it.
    assert not scene.gate._asked


def test_who_comes_to_what_was_put_off_waits_for_the_same_look_up():
    scene = Scene()
    scene.gate.find_out(A, Request(f"{A}/put-off"))
    waiter = scene.opens(A)
    assert scene.asked == [A]
    scene.comes(A)
    assert waiter.woken == 1


# What is unreachable is deferred.


@pytest.mark.parametrize("seconds", [1.0, 10.0, TIMEOUT + 40])
def test_an_unreachable_origin_is_deferred_to_its_next_try_or_the_end_of_patience(seconds):
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=seconds)
    waiters = [scene.opens(A), scene.opens(A)]
    (timer,) = scene.time.timers
    until = min(seconds, TIMEOUT)
    assert until <= timer <= until + MARGIN
    scene.time.advance(until - 0.01)
    assert [waiter.woken for waiter in waiters] == [0, 0]
    nudges = scene.crawler.nudges
    scene.time.advance(0.01 + MARGIN)
    assert [waiter.woken for waiter in waiters] == [1, 1]
    assert scene.crawler.nudges == nudges + 1
    assert scene.crawler.counts == {"robotstxt/deferred": sum(each.size for each in waiters)}
    if seconds < TIMEOUT:
        # The entry has expired: that is the next try.
        scene.opens(A, waiters[0])
        assert scene.asked == [A]
    else:
        # To the middleware, which drops it.
        assert scene.opens(A, waiters[0]) is None
        assert waiters[0].overdue
        assert scene.asked == []
        # One that comes later has a time of its own.
        assert scene.opens(A) is not None


def test_patience_counts_from_the_first_time_through_all_tries():
    scene = Scene()
    tries = 0
    waiter = Waiter(A)
    while True:
        scene.knows(A, Reason.UNREACHABLE, seconds=7)
        if scene.opens(A, waiter) is None:
            break
        tries += 1
        scene.time.advance(7 + MARGIN)
        assert waiter.woken == tries
    assert waiter.overdue
    assert TIMEOUT <= scene.time.now < TIMEOUT + 7 + MARGIN * tries


def test_patience_needs_no_memory_of_the_origin():
    """As where more origins are unreachable than REP_MEMORY_MAX_ORIGINS holds."""
    scene = Scene()
    waiter = scene.opens(A)
    while not waiter.overdue:
        scene.comes(A, Reason.UNREACHABLE, seconds=7)
        scene.cache.entries.clear()
        assert waiter.overdue or waiter.waits
        if waiter.waits:
            scene.time.advance(7 + MARGIN)
        assert scene.time.now < 2 * TIMEOUT
        if scene.opens(A, waiter) is None:
            break
    assert waiter.overdue
    assert TIMEOUT <= scene.time.now < TIMEOUT + 8


def test_an_origin_that_is_reached_again_has_new_patience():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=TIMEOUT - 5)
    waiter = scene.opens(A)
    assert scene.crawler.counts == {"robotstxt/deferred": waiter.size}
    scene.time.advance(TIMEOUT - 5 + MARGIN)
    scene.knows(A)
    assert scene.opens(A, waiter) is None
    assert scene.crawler.counts == {"robotstxt/deferred": waiter.size}
    scene.knows(A, Reason.UNREACHABLE)
    assert scene.opens(A, waiter) is not None
    (timer,) = scene.time.timers
    assert timer == pytest.approx(scene.time.now + TIMEOUT, abs=MARGIN)


def test_timers_of_several_origins_come_in_their_order():
    scene = Scene()
    waiters = {}
    for origin, seconds in ((A, 20), (B, 5), (C, 10)):
        scene.knows(origin, Reason.UNREACHABLE, seconds=seconds)
        waiters[origin] = scene.opens(origin)
        assert len(scene.time.timers) == 1
    for seconds, woken in ((5, {B}), (10, {B, C}), (20, {A, B, C})):
        scene.time.advance(seconds + MARGIN - scene.time.now)
        assert {origin for origin, waiter in waiters.items() if waiter.woken} == woken
    assert scene.time.timers == []


def test_a_clock_that_is_set_back_makes_nobody_wait_for_it():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    waiter = scene.opens(A)
    scene.time.wall -= 1e6
    scene.time.advance(10 + MARGIN)
    assert waiter.woken == 1
    scene.opens(A)
    assert scene.asked == [A]


@pytest.mark.parametrize("more", [{"REP_UNREACHABLE_ACTION": "drop"}, {"REP_DRY_RUN": True}])
def test_who_is_to_be_dropped_at_once_is_not_deferred(more):
    scene = Scene(**more)
    scene.knows(A, Reason.UNREACHABLE)
    assert scene.opens(A) is None
    request = Request(f"{A}/", meta={"download_timeout": 1e9})
    for source in Source:
        assert not scene.gate.defers(source, request, scene.cache.entries[A])
    assert scene.time.timers == []
    assert scene.crawler.counts == {}


def test_a_dry_run_knows_who_would_wait():
    scene = Scene(REP_DRY_RUN=True)
    scene.knows(A, Reason.UNREACHABLE, seconds=20)
    entry = scene.cache.entries[A]
    long, short = (Request(f"{A}/", meta={"download_timeout": each}) for each in (20, 19))
    assert scene.gate.would_defer(Source.QUEUE, short, entry)
    assert scene.gate.would_defer(Source.DIRECT, long, entry)
    assert not scene.gate.would_defer(Source.DIRECT, short, entry)
    scene.gate.in_use = False
    assert not scene.gate.would_defer(Source.QUEUE, short, entry)


def test_another_queue_keeps_nothing():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE)
    request = Request(f"{A}/")
    assert scene.gate.defers(Source.QUEUE, request, None)
    scene.gate.in_use = False
    assert not scene.gate.defers(Source.QUEUE, request, None)


# What comes directly.


@pytest.mark.parametrize(
    ("meta", "of_spider", "seconds", "waits"),
    [
        ({}, None, 180.0, True),  # DOWNLOAD_TIMEOUT
        ({}, None, 181.0, False),
        ({}, 20, 20.0, True),
        ({}, 20, 21.0, False),
        ({"download_timeout": 5}, 20, 5.0, True),
        ({"download_timeout": 5}, 20, 6.0, False),
        # What is no number is for Scrapy's handler to refuse.
        ({"download_timeout": "soon"}, 20, 20.0, True),
        ({"download_timeout": "soon"}, 20, 21.0, False),
        ({}, "soon", 1.0, False),
    ],
)
def test_what_comes_directly_waits_no_longer_than_its_download_might_take(
    meta, of_spider, seconds, waits
):
    scene = Scene()
    scene.gate.in_use = False
    if of_spider is not None:
        scene.crawler.spider = SimpleNamespace(download_timeout=of_spider)
    scene.knows(A, Reason.UNREACHABLE, seconds=seconds)
    request = Request(f"{A}/", meta=meta)
    assert scene.gate.defers(Source.DIRECT, request, scene.cache.entries[A]) is waits


def next_try(scene, origin=A):
    entry = scene.cache.entries[origin]
    return Deferred.fromCoroutine(scene.gate.next_try(origin, entry, Request(f"{origin}/")))


def test_what_comes_directly_waits_for_the_next_try():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    waiter, direct = scene.opens(A), next_try(scene)
    scene.time.advance(10 - 0.01)
    assert not direct.called
    scene.time.advance(0.01 + MARGIN)
    assert direct.called
    assert waiter.woken == 1


def test_what_comes_directly_ends_with_the_crawl():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    cancelled, waiting = next_try(scene), next_try(scene)
    cancelled.addErrback(lambda failure: None)
    cancelled.cancel()
    scene.gate.close()
    scene.cache.closing = True
    for late in (waiting, next_try(scene)):
        assert late.result.check(CrawlClosingError)
        late.addErrback(lambda failure: None)


@pytest.mark.parametrize("reason", [Reason.ERROR, Reason.UNREACHABLE_LONG, Reason.UNAVAILABLE])
def test_no_other_state_is_deferred(reason):
    scene = Scene()
    scene.knows(A, reason)
    assert scene.opens(A) is None


# At the close.


def test_the_close_wakes_nobody_and_leaves_no_timer():
    scene = Scene()
    scene.cache.places = 1
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    deferred, asked, in_line = scene.opens(A), scene.opens(B), scene.opens(C)
    scene.gate.close()
    scene.cache.closing = True
    scene.cache.under_way.pop(B).errback(CrawlClosingError())
    assert scene.time.timers == []
    scene.time.advance(1e5)
    scene.gate.ask()
    assert [waiter.woken for waiter in (deferred, asked, in_line)] == [0, 0, 0]
    assert scene.asked == [B]


def test_after_the_close_nothing_is_begun():
    scene = Scene()
    scene.gate.close()
    scene.cache.closing = True
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    waiters = [scene.opens(A), scene.opens(B)]
    assert all(waiters)
    assert scene.time.timers == []
    assert scene.asked == []


def test_the_close_of_a_gate_that_was_never_asked():
    scene = Scene()
    scene.gate.close()
    scene.gate.close()
    assert scene.time.timers == []


# What is told.


def said(caplog):
    return [text for text in caplog.messages if text.startswith("Waiting for")]


def waiting_alone():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    scene.waiter = scene.opens(A)
    return scene


def test_a_crawl_of_which_all_waits_says_so_once(caplog):
    caplog.set_level(logging.INFO)
    scene = Scene()
    for origin, seconds in ((A, 20), (B, 9)):
        scene.knows(origin, Reason.UNREACHABLE, seconds=seconds)
        scene.opens(origin)
    scene.time.advance(1)
    for _ in range(3):
        scene.crawler.nothing_leaves()
        scene.gate.idle.look()
    assert said(caplog) == [
        f"Waiting for 2 unreachable origins: {B} (status 503, next try in "
        f"8 s), {A} (status 503, next try in 19 s). Requests are dropped after 60 s "
        "(REP_DEFER_TIMEOUT), the first in 59 s"
    ]
    assert scene.crawler.idles == 1


def test_the_line_tells_the_next_try_and_not_the_drop_where_that_comes_sooner(caplog):
    caplog.set_level(logging.INFO)
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=90)
    scene.opens(A)
    scene.gate.idle.look()
    assert said(caplog) == [
        f"Waiting for 1 unreachable origin: {A} (status 503, next try in "
        "90 s). Requests are dropped after 60 s (REP_DEFER_TIMEOUT), the first in "
        "60 s"
    ]


def test_the_line_names_three_origins_and_counts_the_others():
    origins = [origin_of(f"http://{name}.example") for name in "abcde"]
    outages = [(origin, Outage("status 503", 0.0, 9.0)) for origin in origins]
    line = line_about(outages, 1.0, 60.0, 7.0)
    named = ", ".join(f"{origin} (status 503, next try in 8 s)" for origin in origins[:3])
    end = "Requests are dropped after 60 s (REP_DEFER_TIMEOUT), the first in 7 s"
    assert line == f"Waiting for 5 unreachable origins: {named}, and 2 more. {end}"
    # One that the memory holds no more.
    line = line_about([(origins[0], None)], 1.0, 60.0, 7.0)
    assert line == f"Waiting for 1 unreachable origin: {origins[0]}. {end}"


def test_a_spider_is_told_each_time_that_nothing_else_is_left_again():
    scene = waiting_alone()
    for times in range(1, 5):
        scene.gate.idle.went()
        scene.crawler.engine.downloader.active.add(Request(f"{B}/fed"))
        scene.crawler.nothing_leaves()
        assert scene.crawler.idles == times - 1
        scene.crawler.engine.downloader.active.clear()
        scene.crawler.nothing_leaves()
        scene.crawler.nothing_leaves()
        assert scene.crawler.idles == times


def test_a_spider_that_is_fed_in_the_signal_and_says_it_is_not_done_is_told_when_that_is_over():
    scene = waiting_alone()

    def feed():
        scene.gate.idle.came()
        scene.gate.idle.went()
        raise DontCloseSpider

    scene.crawler.feed = feed
    for times in range(1, 4):
        scene.crawler.nothing_leaves()
        assert scene.crawler.idles == times


def test_a_spider_that_is_fed_with_what_can_not_leave_is_told_at_the_next_look():
    scene = waiting_alone()

    def feed():
        scene.gate.idle.came()
        raise DontCloseSpider

    scene.crawler.feed = feed
    for times in range(1, 4):
        scene.gate.idle.look()
        for _ in range(5):
            scene.crawler.nothing_leaves()
        assert scene.crawler.idles == times


def test_a_spider_that_says_it_is_not_done_is_told_again_as_often_as_by_the_engine():
    scene = waiting_alone()

    def feed():
        raise DontCloseSpider

    scene.crawler.feed = feed
    for _ in range(1 + 3 * 20):
        scene.gate.idle.look()
        scene.crawler.nothing_leaves()
    assert scene.crawler.idles == 4


def test_a_scheduler_that_fails_is_asked_at_the_heartbeat_and_told_of_until_it_works(caplog):
    scene = waiting_alone()
    asked = []

    def has_pending_requests():
        asked.append(len(asked))
        if len(asked) not in {3, 4}:
            raise OSError("down")
        return False

    scene.crawler.engine._slot.scheduler.has_pending_requests = has_pending_requests
    for _ in range(6 * 20):
        scene.gate.idle.look()
    assert len(asked) == 6
    assert [record.exc_info[1].args for record in caplog.records] == [("down",)] * 2
    assert scene.crawler.idles == 0


def test_the_try_of_an_origin_that_was_unreachable_is_nothing_to_wait_for():
    scene = waiting_alone()
    scene.time.advance(10 + MARGIN)
    scene.opens(A, scene.waiter)
    assert scene.asked == [A]
    scene.crawler.engine.downloader.active.add(Request(A.robotstxt_url, meta={TRANSFER_KEY: None}))
    scene.crawler.nothing_leaves()
    assert scene.crawler.idles == 1


def busy(scene, what):
    if what == "a download":
        scene.crawler.engine.downloader.active.add(Request(f"{B}/page"))
    elif what == "a look-up":
        scene.opens(B)
    elif what == "a look-up to come":
        scene.cache.places = 0
        scene.opens(B)
    elif what == "a response":
        scene.crawler.engine.scraper.slot.is_idle = lambda: False
    elif what == "start requests":
        scene.crawler.engine._start = object()
    elif what == "a pause":
        scene.crawler.engine.paused = True
    elif what == "the close":
        scene.crawler.engine._slot.closing = object()
    elif what == "an empty scheduler":
        scene.crawler.pending = False


@pytest.mark.parametrize(
    "what",
    ["a download", "a look-up", "a look-up to come", "a response", "start requests", "a pause",
     "the close", "an empty scheduler", "nothing at all"],
)  # fmt: skip
def test_a_crawl_that_has_something_to_do_says_nothing(caplog, what):
    caplog.set_level(logging.INFO)
    scene = Scene() if what == "nothing at all" else waiting_alone()
    busy(scene, what)
    for _ in range(5):
        scene.crawler.nothing_leaves()
        scene.gate.idle.look()
    assert said(caplog) == []
    assert scene.crawler.idles == 0


# Whatever comes.

ORIGINS = st.sampled_from((A, B, C))
STEPS = st.one_of(
    st.tuples(st.just("asks"), ORIGINS),
    st.tuples(st.just("asks"), ORIGINS),
    st.tuples(st.just("comes"), ORIGINS, st.sampled_from((0.0, 5.0, 100.0)), st.booleans()),
    st.tuples(st.just("fails"), ORIGINS),
    st.tuples(st.just("forgets"), ORIGINS),
    st.tuples(st.just("is put off"), ORIGINS),
    st.tuples(st.just("goes on"), st.sampled_from((0.0, 1.0, 7.0, 61.0))),
    st.tuples(st.just("has places"), st.integers(0, 3)),
    st.tuples(st.just("is set"), st.sampled_from((-50.0, 50.0))),
)


def step(scene, waiters, what, *more):
    if what == "asks":
        waiters.append(scene.opens(more[0]))
    elif what == "comes" and more[0] in scene.cache.under_way:
        origin, seconds, reached = more
        scene.comes(origin, Reason.UNAVAILABLE if reached else Reason.UNREACHABLE, seconds=seconds)
    elif what == "fails" and more[0] in scene.cache.under_way:
        scene.cache.under_way.pop(more[0]).errback(ZeroDivisionError())
    elif what == "forgets":
        scene.cache.entries.pop(more[0], None)
    elif what == "is put off":
        scene.gate.find_out(more[0], Request(f"{more[0]}/put-off"))
    elif what == "goes on":
        scene.time.advance(*more)
    elif what == "has places":
        (scene.cache.places,) = more
        scene.gate.ask()
    elif what == "is set":
        scene.time.wall += more[0]


def check(scene, waiters):
    """See that each who waits is going to be woken."""
    gate, cache = scene.gate, scene.cache
    in_line = {origin for origin, _ in gate._to_ask}
    due = {*gate._waiters._due_at}
    for waiter in waiters:
        if waiter is not None and waiter.waits:
            origin = origin_of(waiter.request.url)
            assert (origin in cache.under_way) + (origin in in_line) + (origin in due) >= 1
    if in_line:
        assert not cache.has_room
    # One timer for all, and it comes with the first.
    first = min(gate._waiters._due_at.values(), default=None)
    assert len(scene.time.timers) <= 1
    assert first is None or scene.time.timers[0] <= first + 1e-6
    assert scene.time.now + TIMEOUT + MARGIN >= (first or 0.0)


@given(st.lists(STEPS, max_size=30))
def test_whoever_waits_is_going_to_be_woken(steps):
    logging.disable(logging.CRITICAL)
    try:
        with started_at_once():
            scene, waiters = Scene(), []
            for taken in steps:
                step(scene, waiters, *taken)
                check(scene, waiters)
            come_to_an_end(scene, waiters)
    finally:
        logging.disable(logging.NOTSET)


def come_to_an_end(scene, waiters):
    """Let every look-up end and every timer come: then nobody waits."""
    scene.cache.places = 100
    scene.gate.ask()
    while scene.cache.under_way:
        scene.comes(next(iter(scene.cache.under_way)))
    scene.time.advance(TIMEOUT + MARGIN)
    assert not [waiter for waiter in waiters if waiter is not None and waiter.waits]
    assert scene.time.timers == []
