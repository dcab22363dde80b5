"""Requests that wait in the queue, in made-up time: how long, and what is told meanwhile."""

from __future__ import annotations

import pytest

from scrapy_rep.admission.unreachable import MARGIN
from tests.admission.parts import TIMEOUT
from tests.admission.scene import A, B, C, D, Scene

pytestmark = pytest.mark.event_loop


def test_requests_are_deferred_until_the_next_try():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A, A)
    assert scene.pop() == []
    assert scene.crawler.stats == {"robotstxt/deferred": 2}
    (timer,) = scene.timers
    assert timer == pytest.approx(10, abs=0.05)
    scene.push(A)
    assert scene.crawler.stats == {"robotstxt/deferred": 3}
    woken = scene.crawler.woken
    assert scene.goes_on(10 + MARGIN) == []
    assert scene.crawler.woken == woken + 1
    # The entry has expired: that is the next try.
    assert scene.fetched == [A]
    scene.comes(A)
    assert scene.pop() == [(A, "queue")] * 3


def test_requests_whose_next_try_comes_too_late_are_dropped_at_once():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=TIMEOUT + 40)
    scene.push(A, A)
    # To the middleware, which drops them.
    assert scene.pop() == [(A, "overdue")] * 2
    assert scene.crawler.stats == {}
    assert scene.timers == []
    # One that comes when the next try is near enough is deferred.
    scene.time.advance(50)
    scene.push(A)
    assert scene.pop() == []


def test_patience_counts_from_the_first_time_through_all_tries():
    scene = Scene()
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
    assert scene.crawler.stats == {"robotstxt/deferred": 1}


def test_patience_needs_no_memory_of_the_origin():
    """As where more origins are unreachable than REP_MEMORY_MAX_BYTES holds."""
    scene = Scene()
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
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=TIMEOUT - 5)
    scene.push(A, A)
    assert scene.pop() == []
    scene.time.advance(TIMEOUT - 5 + MARGIN)
    scene.knows(A)
    assert scene.pop() == [(A, "queue")] * 2
    scene.knows(A, unreachable=True, seconds=TIMEOUT - 5)
    scene.push(A)
    assert scene.pop() == []
    assert scene.admission.deferred == 1


def test_one_timer_comes_for_each_of_several_origins_in_their_order():
    scene = Scene()
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
    scene = Scene(permits=1)
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A, A, B, C, D)
    assert scene.pop() == []
    assert scene.admission.close() == 2
    assert scene.crawler.stats["robotstxt/deferred_waiting"] == 2
    assert scene.timers == []


def test_what_waits_why_and_until_when():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A, A, B)
    scene.pop()
    waits = {origin: (reason, until, n) for origin, reason, until, n in scene.admission.holds()}
    assert waits == {
        A: ("robots.txt is unreachable", pytest.approx(scene.time.wall + 10, abs=0.05), 2),
        B: ("robots.txt is being looked up", None, 1),
    }
