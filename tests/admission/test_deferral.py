"""Requests that wait for the next try of an unreachable robots.txt, and ``spider_idle`` meanwhile.

In made-up time. In real crawls: tests/scheduler/test_broad.py.
"""

import logging

import pytest
from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from scrapy_rep.admission.ticket import Source
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason
from tests.admission.scene import A, B, Scene

pytestmark = pytest.mark.event_loop


def defers(scene, source):
    return scene.admission.deferral.would_defer(source, scene.cache.known_entry(A))


def test_a_clock_that_is_set_back_makes_nobody_wait_for_it():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.time.wall -= 1e6
    assert scene.asks(A) == []
    assert scene.fetched == [A]


@pytest.mark.parametrize("more", [{"REP_DEFER_TIMEOUT": 0}, {"REP_DRY_RUN": True}])
def test_what_is_to_be_dropped_at_once_is_not_deferred(more):
    scene = Scene(**more)
    scene.knows(A, unreachable=True)
    assert scene.asks(A) == [A]
    assert defers(scene, Source.QUEUE) is scene.options.dry_run, "it would wait"
    assert not scene.admission.deferral.lacks_queue


def test_without_a_queue_only_direct_requests_wait():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    assert defers(scene, Source.QUEUE)
    scene.admission.queues.clear()
    assert scene.admission.deferral.lacks_queue
    assert not defers(scene, Source.QUEUE)
    assert defers(scene, Source.DIRECT)


def test_no_other_state_is_deferred():
    scene = Scene()
    scene.knows(A)
    scene.knows_unreachable_for(B, 365 * 24 * 3600)
    assert scene.cache.known_entry(B).verdict("/", ()).reason is Reason.UNREACHABLE_LONG
    assert scene.asks(A, B) == [A, B]


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ({"unreachable": True, "seconds": 30}, True),
        ({"unreachable": True, "seconds": 31}, False),
        ({"error": "timed out after 30 s"}, False),
    ],
)
def test_what_comes_directly_waits_for_a_try_that_ends_soon(how, waits):
    scene = Scene(REP_TIMEOUT=30)
    scene.knows(A, **how)
    assert defers(scene, Source.DIRECT) is waits


# ``spider_idle``, while all requests that are left are deferred.


class IdleScene(Scene):
    """A queue whose requests are all deferred, and a spider that is told when it is idle."""

    def __init__(self, **seconds):
        super().__init__()
        for name, each in (seconds or {"a": 10}).items():
            self.knows(
                origin := origin_of(f"http://{name}.example"), unreachable=True, seconds=each
            )
            self.push(origin)
        self.pop()
        self.time.advance(1)

    def may_close(self):
        """Send the signal as the engine does, and return whether the crawl would be closed."""
        sent = self.crawler.signals.send_catch_log(signals.spider_idle, dont_log=DontCloseSpider)
        return all(result is None for _, result in sent)


def test_a_crawl_of_which_all_waits_is_not_closed_and_says_so_once(caplog):
    caplog.set_level(logging.INFO)
    scene = IdleScene(a=20, b=9)
    assert len(scene.queue) == 0
    assert not any(scene.may_close() for _ in range(3))
    assert [text for text in caplog.messages if text.startswith("Waiting for")] == [
        f"Waiting for 2 unreachable origins: {B} (status 503, next try in "
        f"8 s), {A} (status 503, next try in 19 s). Nothing else is left to do, so the crawl ends "
        "within 30 s: what can't be tried again until then is dropped"
    ]


def test_a_crawl_without_deferred_requests_is_closed():
    scene = Scene()
    assert IdleScene.may_close(scene)
    scene.push(A)
    assert scene.pop() == []
    assert len(scene.queue) == 1, "it waits for a lookup"


def test_what_can_not_be_read_is_not_deferred():
    scene, of_same_host = Scene(), origin_of(f"https://{A.host}")
    scene.knows(A, b"User-agent: *\nCrawl-delay: 30")
    scene.knows(of_same_host, unreachable=True, seconds=30)
    assert scene.asks(A) == [A]
    requests = scene.queue._requests
    requests.first = requests.remove_lane  # as a table that can read none of its requests
    assert scene.asks(of_same_host) == []
    assert scene.admission.deferral.count_deferred() == len(scene.queue) == 0


def test_the_line_names_three_origins_and_counts_the_others():
    scene = IdleScene(a=9, b=9, c=9, d=9, e=9)
    origins = [origin_of(f"http://{name}.example") for name in "abcde"]
    scene.may_close()
    scene.time.advance(2)
    line = scene.admission.deferral.describe(origins)
    named = ", ".join(f"{origin} (status 503, next try in 6 s)" for origin in origins[:3])
    end = "Nothing else is left to do, so the crawl ends within 28 s: "
    end += "what can't be tried again until then is dropped"
    assert line == f"Waiting for 5 unreachable origins: {named}, and 2 more. {end}"
    # One that the memory holds no more.
    other = origin_of("http://other.example")
    line = scene.admission.deferral.describe([other])
    assert line == f"Waiting for 1 unreachable origin: {other}. {end}"


def test_a_spider_that_adds_what_can_not_leave_is_not_called_without_end():
    scene = IdleScene()
    assert not scene.may_close()
    scene.push(A)
    scene.pop()
    assert len(scene.queue) == 2
    scene.time.advance(1)
    assert len(scene.queue) == 0
