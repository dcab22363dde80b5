"""Requests that wait in the queue, in made-up time: how long, and what is told meanwhile."""

from __future__ import annotations

import logging

import pytest
from scrapy import Request
from scrapy.exceptions import DontCloseSpider
from scrapy.squeues import FifoMemoryQueue
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import CrawlClosingError, RobotsAwarePriorityQueue
from scrapy_rep.decision.decider import Decision
from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Outage, Reason, Verdict
from scrapy_rep.scheduler.gate import MARGIN
from scrapy_rep.scheduler.idle import describe_outages
from scrapy_rep.scheduler.source import NOTE_KEY
from tests.scheduler.queues import Downloader
from tests.scheduler.scenes import TIMEOUT, A, B, C, D, Scene
from tests.waiting import settle

pytestmark = pytest.mark.event_loop


class QueueScene(Scene):
    """The queue of a crawl, and all that it asks."""

    def __init__(self, **more):
        super().__init__(**more)
        self.crawler.engine.downloader = Downloader()
        self.crawler.engine._slot.inprogress = self.crawler.engine.downloader.in_progress
        self.gate._queues.clear()
        self.queue = RobotsAwarePriorityQueue(
            self.crawler, FifoMemoryQueue, "", clock=self.time.clock
        )

    def push(self, *origins):
        for origin in origins:
            self.queue.push(Request(f"{origin}/page"))

    def pop(self):
        """Return the origins of what leaves, with what is noted of it."""
        popped = []
        while (request := self.queue.pop()) is not None:
            popped.append((origin_of(request.url), request.meta[NOTE_KEY][0]))
        settle()
        return popped

    def goes_on(self, seconds):
        self.time.advance(seconds)
        return self.pop()


# How long requests are deferred.


def test_requests_are_deferred_until_the_next_try():
    scene = QueueScene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A, A)
    assert scene.pop() == []
    assert scene.crawler.counts == {"robotstxt/deferred": 2}
    (timer,) = scene.timers
    assert timer == pytest.approx(10, abs=0.05)
    scene.push(A)
    assert scene.crawler.counts == {"robotstxt/deferred": 3}
    nudges = scene.crawler.nudges
    assert scene.goes_on(10 + MARGIN) == []
    assert scene.crawler.nudges == nudges + 1
    # The entry has expired: that is the next try.
    assert scene.fetched == [A]
    scene.comes(A)
    assert scene.pop() == [(A, "queue")] * 3


def test_requests_whose_next_try_comes_too_late_are_dropped_at_once():
    scene = QueueScene()
    scene.knows(A, unreachable=True, seconds=TIMEOUT + 40)
    scene.push(A, A)
    # To the middleware, which drops them.
    assert scene.pop() == [(A, "overdue")] * 2
    assert scene.crawler.counts == {}
    assert scene.timers == []
    # One that comes when the next try is near enough is deferred.
    scene.time.advance(50)
    scene.push(A)
    assert scene.pop() == []


def test_patience_counts_from_the_first_time_through_all_tries():
    scene = QueueScene()
    scene.push(A)
    scene.knows(A, unreachable=True, seconds=7)
    tries = 0
    while not (popped := scene.pop()):
        tries += 1
        scene.time.advance(7 + MARGIN)
        scene.knows(A, unreachable=True, seconds=7)
    assert popped == [(A, "overdue")]
    # The next try would come after the end.
    assert TIMEOUT - 7 - MARGIN <= scene.time.now <= TIMEOUT
    assert scene.crawler.counts == {"robotstxt/deferred": 1}


def test_patience_needs_no_memory_of_the_origin():
    """As where more origins are unreachable than REP_MEMORY_MAX_BYTES holds."""
    scene = QueueScene()
    scene.push(A)
    scene.decider.after_lookup = scene.entries.clear
    while not (popped := scene.pop()):
        if A in scene.network.under_way:
            scene.comes(A, unreachable=True, seconds=7)
        else:
            scene.time.advance(7 + MARGIN)
        assert scene.time.now <= TIMEOUT
    assert popped == [(A, "overdue")]


def test_an_origin_that_is_reached_again_has_new_patience():
    scene = QueueScene()
    scene.knows(A, unreachable=True, seconds=TIMEOUT - 5)
    scene.push(A, A)
    assert scene.pop() == []
    scene.time.advance(TIMEOUT - 5 + MARGIN)
    scene.knows(A)
    assert scene.pop() == [(A, "queue")] * 2
    scene.knows(A, unreachable=True, seconds=TIMEOUT - 5)
    scene.push(A)
    assert scene.pop() == []
    assert scene.gate.deferred == 1


def test_one_timer_comes_for_each_of_several_origins_in_their_order():
    scene = QueueScene()
    for origin, seconds in ((A, 20), (B, 5), (C, 10)):
        scene.knows(origin, unreachable=True, seconds=seconds)
        scene.push(origin)
        assert scene.pop() == []
        assert len(scene.timers) == 1
    for seconds, asked in ((5, [B]), (10, [B, C]), (20, [B, C, A])):
        assert scene.goes_on(seconds + MARGIN - scene.time.now) == []
        assert scene.fetched == asked
    assert scene.timers == []


def test_the_close_leaves_no_timer_and_tells_how_many_are_deferred():
    scene = QueueScene(permits=1)
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A, A, B, C, D)
    assert scene.pop() == []
    assert scene.gate.close() == 2
    assert scene.crawler.counts["robotstxt/deferred_waiting"] == 2
    assert scene.timers == []


def test_what_waits_why_and_until_when():
    scene = QueueScene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A, A, B)
    scene.pop()
    waits = {origin: (reason, until, n) for origin, reason, until, n in scene.gate.holds()}
    assert waits == {
        A: ("robots.txt is unreachable", pytest.approx(scene.time.wall + 10, abs=0.05), 2),
        B: ("robots.txt is being looked up", None, 1),
    }


# What waits in the middleware.


def waits(scene):
    return WaitingRequests(scene.crawler, scene.decider, scene.gate, None, scene.time.clock)


def next_try(scene, waits):
    decision = Decision(A, "/", (), Verdict(False, Reason.UNREACHABLE), scene.cache.known_entry(A))
    return deferred_from_coro(waits.wait_for_decision(Request(f"{A}/"), decision))


def test_what_comes_directly_waits_for_the_next_try():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    found = []

    async def decide(request, decision):
        found.append(scene.time.now)

    scene.decider.decision = decide
    next_try(scene, waits(scene))
    settle()
    scene.time.advance(9.9)
    settle()
    assert found == []
    scene.time.advance(0.1 + MARGIN)
    settle()
    assert len(found) == 1


def test_what_comes_directly_ends_with_the_crawl():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    parts = waits(scene)
    waiting = next_try(scene, parts)
    settle()
    parts.close()
    settle()
    for late in (waiting, next_try(scene, parts)):
        settle()
        assert late.result.check(CrawlClosingError)
        late.addErrback(lambda failure: None)
    assert scene.timers == []


# What is told.


def said(caplog):
    return [text for text in caplog.messages if text.startswith("Waiting for")]


def waiting_alone():
    scene = QueueScene(permits=1)
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A)
    assert scene.pop() == []
    return scene


def test_a_crawl_of_which_all_waits_says_so_once(caplog):
    caplog.set_level(logging.INFO)
    scene = QueueScene()
    for origin, seconds in ((A, 20), (B, 9)):
        scene.knows(origin, unreachable=True, seconds=seconds)
        scene.push(origin)
    scene.pop()
    scene.time.advance(1)
    for _ in range(3):
        scene.crawler.nothing_leaves()
        scene.gate.idle.check()
    assert said(caplog) == [
        f"Waiting for 2 unreachable origins: {B} (status 503, next try in "
        f"8 s), {A} (status 503, next try in 19 s). Requests are dropped after 60 s "
        "(REP_DEFER_TIMEOUT), the first in 59 s"
    ]
    assert scene.crawler.idles == 1


def test_the_line_names_three_origins_and_counts_the_others():
    origins = [origin_of(f"http://{name}.example") for name in "abcde"]
    outages = [(origin, Outage("status 503", 0.0, 9.0)) for origin in origins]
    line = describe_outages(outages, 1.0, 60.0, 7.0)
    named = ", ".join(f"{origin} (status 503, next try in 8 s)" for origin in origins[:3])
    end = "Requests are dropped after 60 s (REP_DEFER_TIMEOUT), the first in 7 s"
    assert line == f"Waiting for 5 unreachable origins: {named}, and 2 more. {end}"
    # One that the memory holds no more.
    line = describe_outages([(origins[0], None)], 1.0, 60.0, 7.0)
    assert line == f"Waiting for 1 unreachable origin: {origins[0]}. {end}"


def test_a_spider_is_told_each_time_that_nothing_else_is_left_again():
    scene = waiting_alone()
    for times in range(1, 5):
        scene.gate.idle.end_delay()
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
        scene.gate.idle.shorten_delay()
        scene.gate.idle.end_delay()
        raise DontCloseSpider

    scene.crawler.feed = feed
    for times in range(1, 4):
        scene.crawler.nothing_leaves()
        assert scene.crawler.idles == times


def test_a_spider_that_is_fed_with_what_can_not_leave_is_told_at_the_next_look():
    scene = waiting_alone()

    def feed():
        scene.gate.idle.shorten_delay()
        raise DontCloseSpider

    scene.crawler.feed = feed
    for times in range(1, 4):
        scene.gate.idle.check()
        for _ in range(5):
            scene.crawler.nothing_leaves()
        assert scene.crawler.idles == times


def test_a_spider_that_says_it_is_not_done_is_told_again_as_often_as_by_the_engine():
    scene = waiting_alone()

    def feed():
        raise DontCloseSpider

    scene.crawler.feed = feed
    for _ in range(1 + 3 * 20):
        scene.gate.idle.check()
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
        scene.gate.idle.check()
    assert len(asked) == 6
    assert [record.exc_info[1].args for record in caplog.records] == [("down",)] * 2
    assert scene.crawler.idles == 0


def test_the_try_of_an_origin_that_was_unreachable_is_nothing_to_wait_for():
    scene = waiting_alone()
    scene.goes_on(10 + MARGIN)
    assert scene.fetched == [A]
    scene.crawler.engine.downloader.active.add(Request(A.robotstxt_url, meta={TRANSFER_KEY: None}))
    scene.crawler.nothing_leaves()
    assert scene.crawler.idles == 1


def others_look_up(scene, *origins):
    """Look up origins as the middleware does for requests that don't come from a queue."""
    for origin in origins:
        request = Request(f"{origin}/page")
        deferred_from_coro(scene.cache.entry(origin, ("testbot",), request))
    settle()


def busy(scene, what):
    if what == "a download":
        scene.crawler.engine.downloader.active.add(Request(f"{B}/page"))
    elif what == "a lookup":
        scene.push(B)
        scene.pop()
    elif what == "a lookup to come":
        others_look_up(scene, C, D)
        scene.push(B)
        scene.pop()
        assert scene.decider.under_way == 0
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
    ["a download", "a lookup", "a lookup to come", "a response", "start requests", "a pause",
     "the close", "an empty scheduler", "nothing at all"],
)  # fmt: skip
def test_a_crawl_that_has_something_to_do_says_nothing(caplog, what):
    caplog.set_level(logging.INFO)
    scene = QueueScene() if what == "nothing at all" else waiting_alone()
    busy(scene, what)
    for _ in range(5):
        scene.crawler.nothing_leaves()
        scene.gate.idle.check()
    assert said(caplog) == []
    assert scene.crawler.idles == 0
