"""Whether requests wait for the next try of an unreachable robots.txt."""

from types import SimpleNamespace

import pytest
from scrapy import Request

from scrapy_rep.admission.ticket import Source
from scrapy_rep.admission.unreachable import MARGIN
from scrapy_rep.protocol.verdict import Reason
from tests.admission.scene import A, B, Scene
from tests.made_up_network import LONG

pytestmark = pytest.mark.event_loop


def defers(scene, source, **meta):
    return scene.admission.unreachable.is_deferred(
        source, Request(f"{A}/", meta=meta), scene.cache.known_entry(A)
    )


def test_a_request_waits_for_the_next_try():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    assert scene.asks(A) == []
    (hold,) = (hold for _, hold, _ in scene.queue.holds())
    assert hold.reason.text == "robots.txt is unreachable"
    # By then it has come by all clocks.
    assert hold.until == pytest.approx(scene.time.now + 10 + MARGIN)
    scene.goes_on(10 + MARGIN)
    assert scene.fetched == [A]


def test_a_clock_that_is_set_back_makes_nobody_wait_for_it():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.time.wall -= 1e6
    assert scene.asks(A) == []
    assert scene.fetched == [A]


@pytest.mark.parametrize("more", [{"REP_UNREACHABLE_ACTION": "drop"}, {"REP_DRY_RUN": True}])
def test_what_is_to_be_dropped_at_once_is_not_deferred(more):
    scene = Scene(**more)
    scene.knows(A, unreachable=True)
    assert scene.asks(A) == [A]
    assert not any(defers(scene, source, download_timeout=2 * LONG) for source in Source)
    assert not scene.admission.unreachable.cannot_defer


def test_without_a_queue_only_direct_requests_wait():
    scene = Scene()
    scene.knows(A, unreachable=True)
    assert defers(scene, Source.QUEUE)
    scene.admission.queues.clear()
    assert scene.admission.unreachable.cannot_defer
    assert not defers(scene, Source.QUEUE)
    assert defers(scene, Source.DIRECT, download_timeout=2 * LONG)


def test_a_dry_run_knows_what_would_wait():
    scene = Scene(REP_DRY_RUN=True)
    scene.knows(A, unreachable=True, seconds=20)
    entry = scene.cache.known_entry(A)
    long, short = (Request(f"{A}/", meta={"download_timeout": each}) for each in (20, 19))
    would_defer = scene.admission.unreachable.would_defer
    assert would_defer(Source.QUEUE, short, entry)
    assert would_defer(Source.DIRECT, long, entry)
    assert not would_defer(Source.DIRECT, short, entry)


def test_no_other_state_is_deferred():
    scene = Scene()
    scene.knows(A)
    scene.knows_unreachable_for(B, 365 * 24 * 3600)
    assert scene.cache.known_entry(B).verdict("/", ()).reason is Reason.UNREACHABLE_LONG
    assert scene.asks(A, B) == [A, B]


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
    if of_spider is not None:
        scene.crawler.spider = SimpleNamespace(download_timeout=of_spider)
    scene.knows(A, unreachable=True, seconds=seconds)
    assert defers(scene, Source.DIRECT, **meta) is waits
