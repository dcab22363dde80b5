"""How long requests of unreachable origins are deferred, in made-up time."""

from __future__ import annotations

import pytest

from scrapy_rep.admission.unreachable import MARGIN
from tests.admission.parts import TIMEOUT
from tests.admission.scene import A, Scene

pytestmark = pytest.mark.event_loop


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
    while not (popped := scene.pop()):
        scene.time.advance(7 + MARGIN)
        scene.knows(A, unreachable=True, seconds=7)
    assert popped == [(A, "overdue")]
    # The next try would come after the end.
    assert TIMEOUT - 7 - MARGIN <= scene.time.now <= TIMEOUT
    assert scene.crawler.stats == {"robotstxt/deferred": 1}


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
