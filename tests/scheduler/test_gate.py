"""The gate in made-up time, on the real event loop: why requests wait, and who is told when."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from scrapy import Request
from twisted.internet.defer import CancelledError

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.scheduler.gate import MARGIN
from scrapy_rep.scheduler.hold import HoldReason
from scrapy_rep.scheduler.source import Source
from tests.scheduler.scenes import A, B, C, D, Scene
from tests.waiting import settle

LOOKUP, UNREACHABLE = HoldReason.LOOKUP, HoldReason.UNREACHABLE
TDMREP = {"REP_PURPOSES": ["tdm"], "REP_USAGE_SOURCES": ["tdmrep"]}

pytestmark = pytest.mark.event_loop


# What is not known is looked up.


def test_what_is_known_may_leave():
    scene = Scene()
    scene.knows(A)
    assert scene.hold(A) is None
    assert scene.fetched == []


def test_what_no_robotstxt_governs_may_leave_and_is_not_looked_up():
    ignored = {"host": A.host, "policy": "ignore", "reason": "we agreed on it"}
    scene = Scene(REP_OVERRIDES=[ignored])
    scene.knows(A, unreachable=True)
    assert scene.hold(A) is None
    assert scene.fetched == []


def test_an_unknown_origin_is_looked_up_once_and_told_of_once():
    scene = Scene()
    for _ in range(3):
        assert scene.hold(A) is LOOKUP
    assert scene.network.pages == [scene.asker.heads[A]]
    assert scene.told == []
    nudges = scene.crawler.nudges
    scene.comes(A)
    assert scene.told == [A]
    assert scene.crawler.nudges == nudges + 1
    assert scene.hold(A) is None
    scene.time.advance(1e5)
    assert scene.told == []
    assert scene.fetched == [A]


def test_one_origin_waits_for_no_other():
    scene = Scene()
    scene.hold(A)
    scene.hold(B)
    scene.comes(B)
    assert scene.told == [B]
    assert scene.hold(B) is None
    assert scene.hold(A) is LOOKUP


def test_nothing_is_looked_up_before_the_queue_says_so():
    """The queue asks when it has looked at all its lanes."""
    scene = Scene()
    scene.hold(A, look_up=False)
    settle()
    assert scene.fetched == []
    scene.gate.look_up()
    settle()
    assert scene.fetched == [A]


def test_what_has_expired_is_looked_up_again():
    scene = Scene()
    scene.knows(A, seconds=10)
    assert scene.hold(A) is None
    scene.entries.get(A).unused = False
    scene.time.advance(10)
    assert scene.hold(A) is LOOKUP
    assert scene.fetched == [A]


def test_what_expires_at_once_is_looked_up_again_when_a_page_was_decided_by_it():
    scene = Scene()
    scene.hold(A)
    scene.comes(A, seconds=0)
    assert scene.told == [A]
    assert [scene.hold(A) for _ in range(3)] == [None] * 3
    assert scene.fetched == [A]
    scene.entries.get(A).unused = False
    assert scene.hold(A) is LOOKUP
    assert scene.fetched == [A, A]


def test_a_result_that_the_cache_does_not_hold_counts():
    """As where more origins are unreachable than REP_MEMORY_MAX_BYTES holds."""
    scene = Scene()
    scene.hold(A)
    scene.decider.after_lookup = scene.entries.clear
    scene.comes(A, unreachable=True, seconds=7)
    assert scene.hold(A) is UNREACHABLE


@pytest.mark.parametrize("known", [True, False])
def test_after_an_error_the_middleware_looks_up(caplog, known):
    scene = Scene()
    scene.hold(A, look_up=False)
    scene.decider.error = ZeroDivisionError("made up")
    if known:
        scene.knows(A)
    scene.gate.look_up()
    settle()
    assert scene.told == [A]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("scrapy_rep")] == [
        f"Error while looking up robots.txt of {A}"
    ]  # fmt: skip
    # The middleware is to meet the same error.
    assert scene.hold(A) is None
    # What comes behind is begun.
    scene.decider.error = None
    scene.hold(B)
    assert scene.fetched == [B]


def test_after_an_error_of_a_fetch_nothing_is_deferred(caplog):
    scene = Scene()
    scene.hold(A)
    scene.network.ends(A, ZeroDivisionError("made up"))
    assert scene.told == [A]
    assert f"Error while looking up robots.txt of {A}" in caplog.text
    # The middleware drops it.
    assert scene.cache.known_entry(A).verdict("/", ()).reason is Reason.ERROR
    assert scene.hold(A) is None


@pytest.mark.parametrize("error", [CancelledError, asyncio.CancelledError])
def test_a_look_up_that_is_cut_off_is_told_of(error):
    scene = Scene()
    scene.hold(A)
    scene.network.ends(A, error())
    assert scene.told == [A]


def test_an_origin_whose_requests_are_gone_is_not_looked_up(caplog):
    scene = Scene()
    scene.hold(A, look_up=False)
    del scene.asker.heads[A]
    scene.gate.look_up()
    assert not caplog.records
    assert scene.told == [A]
    assert scene.fetched == []


def test_an_origin_whose_requests_cannot_be_read_is_left_to_the_middleware(caplog):
    scene = Scene()
    scene.hold(A, look_up=False)
    scene.asker.heads[A] = OSError("made up")
    scene.hold(B)
    assert caplog.messages == [f"Error while reading a request to {A}"]
    assert scene.told == [A]
    assert scene.hold(A) is None
    assert scene.fetched == [B]


# No more at a time than there is room for: of lookups, twice as many as of fetches.


def test_room_bounds_what_is_begun():
    scene = Scene(permits=1)
    for origin in (A, B, C, D):
        scene.hold(origin)
    assert scene.fetched == [A]
    assert scene.decider.under_way == 2
    # The end of one begins the next.
    scene.comes(A)
    assert scene.fetched == [A, B]
    assert scene.decider.under_way == scene.decider.most == 2
    assert scene.told == [A]


def test_lookups_that_were_handed_to_the_event_loop_count_before_they_begin():
    scene = Scene(permits=16)
    origins = [origin_of(f"http://{number}.example") for number in range(1_000)]
    for origin in origins:
        scene.hold(origin, look_up=False)
        scene.gate.look_up()
    settle()
    assert scene.decider.under_way == scene.decider.most == 32
    while scene.network.under_way:
        scene.comes(next(iter(scene.network.under_way)))
    assert scene.decider.most == 32
    assert scene.fetched == origins


def test_a_look_up_counts_between_robots_txt_and_tdmrep_json_too():
    scene = Scene(permits=1, **TDMREP)
    loop = asyncio.get_running_loop()

    def ask():
        scene.gate.look_up()
        loop.call_soon(ask)

    # As a queue may at any time.
    loop.call_soon(ask)
    for origin in (A, B, C, D):
        scene.hold(origin)
    while scene.network.under_way:
        scene.comes(next(iter(scene.network.under_way)))
    assert len(scene.network.fetched) == 8
    assert scene.decider.most == 2


def test_room_that_comes_as_a_fetch_is_slow_is_used():
    scene = Scene(permits=1)
    for origin in (A, B, C, D):
        scene.hold(origin)
    assert scene.decider.under_way == 2
    scene.time.advance(1)
    settle()
    assert scene.fetched == [A, B]
    assert scene.decider.under_way == 3


def test_a_crawl_that_pauses_looks_nothing_up():
    scene = Scene()
    scene.crawler.engine.paused = True
    scene.hold(A)
    assert scene.fetched == []
    scene.crawler.engine.paused = False
    scene.gate.look_up()
    settle()
    scene.comes(A)
    assert scene.told == [A]


def test_what_ends_at_once_begins_the_next_in_order():
    scene = Scene(permits=1)
    for origin in (A, B, C, D):
        scene.hold(origin, look_up=False)
        scene.knows(origin, seconds=0)
    scene.decider.error = ZeroDivisionError("made up")
    scene.gate.look_up()
    settle()
    assert scene.told == [A, B, C, D]


# Requests that another scheduler was given back.


def test_the_origin_of_a_request_that_was_put_off_is_looked_up():
    scene = Scene()
    request = Request(f"{A}/put-off")
    for _ in range(2):
        scene.gate.look_up_later(A, request)
        settle()
    assert scene.network.pages == [request]
    nudges = scene.crawler.nudges
    scene.comes(A)
    assert scene.crawler.nudges == nudges + 1


def test_who_comes_to_what_was_put_off_waits_for_the_same_look_up():
    scene = Scene()
    scene.gate.look_up_later(A, Request(f"{A}/put-off"))
    settle()
    assert scene.hold(A) is LOOKUP
    assert scene.fetched == [A]
    scene.comes(A)
    assert scene.told == [A]


# What is unreachable waits for the next try.


def test_an_unreachable_origin_waits_for_its_next_try():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    hold = scene.gate.hold(A, lambda: None)
    assert hold.reason is UNREACHABLE
    # By then it has come by all clocks.
    assert hold.until == pytest.approx(scene.time.now + 10 + MARGIN)
    scene.time.advance(hold.until - scene.time.now)
    assert scene.hold(A) is LOOKUP


def test_a_clock_that_is_set_back_makes_nobody_wait_for_it():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=10)
    scene.time.wall -= 1e6
    assert scene.hold(A) is LOOKUP


@pytest.mark.parametrize("more", [{"REP_UNREACHABLE_ACTION": "drop"}, {"REP_DRY_RUN": True}])
def test_what_is_to_be_dropped_at_once_is_not_deferred(more):
    scene = Scene(**more)
    scene.knows(A, unreachable=True)
    assert scene.hold(A) is None
    request = Request(f"{A}/", meta={"download_timeout": 1e9})
    for source in Source:
        assert not scene.gate.defers(source, request, scene.cache.known_entry(A))


def test_a_dry_run_knows_what_would_wait():
    scene = Scene(REP_DRY_RUN=True)
    scene.knows(A, unreachable=True, seconds=20)
    entry = scene.cache.known_entry(A)
    long, short = (Request(f"{A}/", meta={"download_timeout": each}) for each in (20, 19))
    assert scene.gate.would_defer(Source.QUEUE, short, entry)
    assert scene.gate.would_defer(Source.DIRECT, long, entry)
    assert not scene.gate.would_defer(Source.DIRECT, short, entry)
    scene.gate._queues.clear()
    assert not scene.gate.would_defer(Source.QUEUE, short, entry)


def test_another_queue_keeps_nothing():
    scene = Scene()
    scene.knows(A, unreachable=True)
    request = Request(f"{A}/")
    assert scene.gate.defers(Source.QUEUE, request, scene.cache.known_entry(A))
    scene.gate._queues.clear()
    assert not scene.gate.defers(Source.QUEUE, request, scene.cache.known_entry(A))


def test_no_other_state_is_deferred():
    scene = Scene()
    scene.knows(A)
    scene.knows_unreachable_for(B, 365 * 24 * 3600)
    assert scene.cache.known_entry(B).verdict("/", ()).reason is Reason.UNREACHABLE_LONG
    assert [scene.hold(origin) for origin in (A, B)] == [None, None]


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
    if of_spider is not None:
        scene.crawler.spider = SimpleNamespace(download_timeout=of_spider)
    scene.knows(A, unreachable=True, seconds=seconds)
    request = Request(f"{A}/", meta=meta)
    assert scene.gate.defers(Source.DIRECT, request, scene.cache.known_entry(A)) is waits


# At the close.


def test_after_the_close_nothing_is_looked_up_and_nobody_told():
    scene = Scene(permits=1)
    for origin in (A, B, C):
        scene.hold(origin)
    scene.gate.close()
    scene.cache.close()
    settle()
    scene.gate.look_up()
    settle()
    assert scene.told == []
    assert scene.fetched == [A]


def test_the_close_of_a_gate_that_was_never_asked():
    scene = Scene()
    assert scene.gate.close() == scene.gate.close() == 0
    assert scene.timers == []
