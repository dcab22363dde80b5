"""``spider_idle``, while all requests that are left are deferred; in made-up time."""

from __future__ import annotations

import logging

import pytest
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.admission.idle import describe_outages
from scrapy_rep.admission.unreachable import MARGIN
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Outage
from tests.admission.scene import A, B, C, D, Scene
from tests.waiting import settle

pytestmark = pytest.mark.event_loop


class IdleScene(Scene):
    """A queue, and a spider that is told when it is idle."""

    def __init__(self, **how):
        super().__init__(**how)
        self.idles = 0
        self.feed = lambda: None
        self.crawler.signals.connect(self.is_idle, signals.spider_idle)

    def is_idle(self):
        self.idles += 1
        self.feed()

    def nothing_leaves(self):
        self.crawler.signals.send_catch_log(signals.scheduler_empty)


def said(caplog):
    return [text for text in caplog.messages if text.startswith("Waiting for")]


def waiting_alone():
    scene = IdleScene(permits=1)
    scene.knows(A, unreachable=True, seconds=10)
    scene.push(A)
    assert scene.pop() == []
    return scene


def test_a_crawl_of_which_all_waits_says_so_once(caplog):
    caplog.set_level(logging.INFO)
    scene = IdleScene()
    for origin, seconds in ((A, 20), (B, 9)):
        scene.knows(origin, unreachable=True, seconds=seconds)
        scene.push(origin)
    scene.pop()
    scene.time.advance(1)
    for _ in range(3):
        scene.nothing_leaves()
        scene.admission.idle.check()
    assert said(caplog) == [
        f"Waiting for 2 unreachable origins: {B} (status 503, next try in "
        f"8 s), {A} (status 503, next try in 19 s). Requests are dropped after 60 s "
        "(REP_DEFER_TIMEOUT), the first in 59 s"
    ]
    assert scene.idles == 1


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
        scene.admission.idle.end_delay()
        scene.crawler.engine.downloader.active.add(Request(f"{B}/fed"))
        scene.nothing_leaves()
        assert scene.idles == times - 1
        scene.crawler.engine.downloader.active.clear()
        scene.nothing_leaves()
        scene.nothing_leaves()
        assert scene.idles == times


def test_a_spider_that_is_fed_in_the_signal_and_says_it_is_not_done_is_told_when_that_is_over():
    scene = waiting_alone()

    def feed():
        scene.admission.idle.shorten_delay()
        scene.admission.idle.end_delay()
        raise DontCloseSpider

    scene.feed = feed
    for times in range(1, 4):
        scene.nothing_leaves()
        assert scene.idles == times


def test_a_spider_that_is_fed_with_what_can_not_leave_is_told_at_the_next_look():
    scene = waiting_alone()

    def feed():
        scene.admission.idle.shorten_delay()
        raise DontCloseSpider

    scene.feed = feed
    for times in range(1, 4):
        scene.admission.idle.check()
        for _ in range(5):
            scene.nothing_leaves()
        assert scene.idles == times


def test_a_spider_that_says_it_is_not_done_is_told_again_as_often_as_by_the_engine():
    scene = waiting_alone()

    def feed():
        raise DontCloseSpider

    scene.feed = feed
    for _ in range(1 + 3 * 20):
        scene.admission.idle.check()
        scene.nothing_leaves()
    assert scene.idles == 4


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
        scene.admission.idle.check()
    assert len(asked) == 6
    assert [record.exc_info[1].args for record in caplog.records] == [("down",)] * 2
    assert scene.idles == 0


def test_the_try_of_an_origin_that_was_unreachable_is_nothing_to_wait_for():
    scene = waiting_alone()
    scene.goes_on(10 + MARGIN)
    assert scene.fetched == [A]
    scene.crawler.engine.downloader.active.add(Request(A.robotstxt_url, meta={TRANSFER_KEY: None}))
    scene.nothing_leaves()
    assert scene.idles == 1


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
        scene.crawler.engine._slot.scheduler.has_pending_requests = lambda: False


@pytest.mark.parametrize(
    "what",
    ["a download", "a lookup", "a lookup to come", "a response", "start requests", "a pause",
     "the close", "an empty scheduler", "nothing at all"],
)  # fmt: skip
def test_a_crawl_that_has_something_to_do_says_nothing(caplog, what):
    caplog.set_level(logging.INFO)
    scene = IdleScene() if what == "nothing at all" else waiting_alone()
    busy(scene, what)
    for _ in range(5):
        scene.nothing_leaves()
        scene.admission.idle.check()
    assert said(caplog) == []
    assert scene.idles == 0
