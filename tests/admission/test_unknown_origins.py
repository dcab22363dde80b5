"""Lookups of robots.txt for requests in the queue, in made-up time."""

import asyncio
from functools import partial

import pytest
from scrapy import Request
from scrapy.http import Response
from twisted.internet.defer import CancelledError

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason
from tests.admission.scene import A, B, C, D, Scene
from tests.waiting import settle

LOOKED_UP = ("robots.txt is being looked up", None, 1)

pytestmark = pytest.mark.event_loop


# What is not known is looked up.


def test_requests_wait_for_one_lookup_of_their_own_origin():
    scene = Scene()
    scene.knows(A)
    assert scene.asks(A, B, C, B) == [A]
    assert scene.fetched == [B, C]
    assert scene.waits == {B: (*LOOKED_UP[:2], 2), C: LOOKED_UP}
    woken = scene.crawler.woken
    scene.comes(C)
    assert scene.crawler.woken > woken
    assert scene.leaves() == [C]
    scene.comes(B)
    assert scene.leaves() == [B, B]
    scene.time.advance(1e5)
    assert scene.asks(A, B) == [A, B]
    assert scene.fetched == [B, C]


def test_what_no_robotstxt_governs_is_not_looked_up():
    scene = Scene(REP_OVERRIDES=[{"host": A.host, "policy": "ignore", "reason": "we agreed on it"}])
    assert scene.asks(A) == [A]
    assert scene.admission.admit(A, lambda: None) is None  # as of a crawl without the override
    assert scene.fetched == []


# Errors: the request leaves, so that the middleware meets the same error, and drops it.


@pytest.mark.parametrize("error", [ZeroDivisionError, CancelledError, asyncio.CancelledError])
def test_after_an_error_of_a_fetch_the_request_leaves(caplog, error):
    scene = Scene()
    scene.asks(A)
    scene.network.ends(A, error("made up"))
    assert scene.leaves() == [A]
    if error is ZeroDivisionError:
        assert f"Error while looking up robots.txt of {A}" in caplog.text
        assert scene.cache.known_entry(A).verdict("/", ()).reason is Reason.ERROR


@pytest.mark.parametrize("gone", [True, False])
def test_an_origin_whose_requests_are_gone_or_can_not_be_read_is_not_looked_up(caplog, gone):
    scene = Scene()
    scene.queue._first = lambda lane: None if gone else 1 / 0
    scene.asks(A)
    assert scene.fetched == []
    assert caplog.messages == ([] if gone else [f"Error while looking up robots.txt of {A}"])
    assert scene.leaves() == ([] if gone else [A])


# No more at a time than there is room for.


def test_no_more_lookups_are_under_way_than_there_is_room_for():
    scene = Scene()
    origins = [origin_of(f"http://{number}.example") for number in range(200)]
    for origin in origins:
        scene.push(origin)
        assert scene.queue.pop() is None  # a lookup is handed over, and begins later
    settle()
    assert len(scene.lookups._all) == 16
    while scene.network.under_way:
        assert len(scene.lookups._all) <= 16
        scene.comes(next(iter(scene.network.under_way)))
    assert scene.fetched == origins
    assert len(scene.leaves()) == len(origins)


def test_room_that_comes_as_a_fetch_is_slow_is_used():
    scene = Scene(permits=1)
    scene.asks(A, B, C, D)
    assert scene.fetched == [A]
    assert len(scene.lookups._all) == 1
    scene.time.advance(1)
    settle()
    assert scene.fetched == [A, B]
    assert len(scene.lookups._all) == 2


def test_in_a_pause_of_its_host_no_robotstxt_is_fetched():
    scene = Scene(permits=1)
    scene.asks(A, B)
    refusal = Response(f"{B}/", status=429, headers={"Retry-After": "5"})
    scene.admission.hosts.ended(Request(f"{B}/"), scene.time.now, refusal)
    scene.comes(A)
    assert scene.leaves() == [A]
    assert scene.fetched == [A]
    scene.time.advance(5)
    assert scene.leaves() == []
    assert scene.fetched == [A, B]


def test_lookups_that_end_at_once_begin_the_next():
    scene = Scene(permits=1)
    scene.decider.start_lookup = lambda *_: 1 / 0
    assert scene.asks(A, B, C, D) == []
    assert scene.leaves() == [A, B, C, D]


# At the close.


def test_after_the_close_nothing_is_looked_up():
    scene = Scene(permits=1)
    scene.asks(A, B, C)
    assert scene.admission.close() == 0
    scene.lookups.close()
    settle()
    assert scene.asks(D) == []
    assert scene.fetched == [A]
    assert scene.timers == []


def test_at_the_close_only_what_is_stayed_for_is_looked_up():
    scene, ends = Scene(permits=1), []
    for origin, stays in ((A, False), (B, False), (A, True), (C, True), (B, True), (D, False)):
        told = partial(
            lambda origin, stays, found: ends.append((origin, stays, found)), origin, stays
        )
        scene.lookups.join(origin, (), Request(f"{origin}/"), told, stays=stays)
    settle()
    scene.lookups.close()
    assert ends == [(A, False, None), (B, False, None), (D, False, None)]
    for origin in (A, B, C):
        settle()
        scene.comes(origin)
    found = [(origin, stays) for origin, stays, found in ends[3:] if found]
    assert found == [(A, True), (B, True), (C, True)]
    scene.lookups.join(D, (), Request(f"{D}/"), ends.append, stays=True)
    settle()
    scene.lookups.close(at_once=True)
    assert ends[-1] is None
    with pytest.raises(CrawlClosingError):
        scene.lookups.join(A, (), Request(f"{A}/"), ends.append, stays=True)
    assert scene.fetched == [A, B, C, D]
