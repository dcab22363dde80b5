"""Delays between requests to a host, in made-up time: who waits, and until when.

That a fleet keeps them, whatever goes wrong: tests/simulation. On the network: tests/wire.
"""

import asyncio
import math

import pytest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from tests.admission.worker import DELAY, SITE, Worker, page
from tests.waiting import settle

pytestmark = pytest.mark.event_loop
WAITS = "the site has a delay"
OTHER_PORT = "http://a.example:8080"


@pytest.fixture
def worker():
    worker = Worker()
    worker.knows_delay()
    return worker


@pytest.mark.parametrize(("latency", "next_at"), [(0.5, 2.5), (1.9, 3.9), (3.0, 4.0)])
def test_the_delay_counts_from_the_response(worker, latency, next_at):
    first, second = page(1), page(2)
    assert worker.sends(first) is None
    worker.time.advance(latency)
    worker.answered(first)
    assert worker.sends(second) == (WAITS, next_at)
    worker.time.advance(next_at - latency)
    assert worker.sends(second) is None


def test_a_response_is_waited_for_until_the_request_was_sent_for_sure(worker):
    worker.sends(page(1))
    assert worker.sends(page(2)) == (WAITS, 2 * DELAY)
    worker.time.advance(2 * DELAY)
    assert worker.sends(page(2)) is None


def test_who_waits_is_told_when_a_response_makes_the_wait_shorter(worker):
    first = page(1)
    worker.sends(first)
    assert worker.leaves(page(2)) == (WAITS, 2 * DELAY)
    worker.time.advance(1)
    worker.answered(first)
    assert [str(origin) for origin in worker.told] == [SITE]
    assert worker.leaves(page(2)) == (WAITS, 1 + DELAY)


def test_a_request_leaves_each_delay_though_none_was_sent_yet(worker):
    assert worker.leaves(page(1)) is None
    assert worker.leaves(page(2)) == (WAITS, DELAY)
    worker.time.advance(DELAY)
    assert worker.leaves(page(2)) is None
    # At the wire, no other was sent.
    assert worker.sends(page(1)) is None


def test_the_scheduler_keeps_what_a_longer_download_delay_would_keep():
    worker = Worker(DOWNLOAD_DELAY=5)
    worker.knows_delay()
    worker.leaves(page(1))
    assert worker.leaves(page(2)) == (WAITS, 5)


def test_the_origins_of_a_host_share_its_turns_but_only_those_with_a_delay_wait(worker):
    worker.knows_delay(OTHER_PORT)
    worker.knows_no_rules("https://a.example")
    assert worker.leaves(page(1)) is None
    assert worker.leaves(page(1, OTHER_PORT)) == (WAITS, DELAY)
    assert worker.leaves(page(1, "https://a.example")) is None


def test_if_robots_txt_has_expired_the_former_delay_counts(worker):
    worker.leaves(page(1))
    worker.entries.clear()
    assert worker.leaves(page(2)) == (WAITS, DELAY)
    assert worker.leaves(page(2, OTHER_PORT)) == ("robots.txt is being looked up", math.inf)


def test_workers_share_the_turns_of_a_host(worker):
    other = worker.beside()
    other.knows_delay()
    first = page(1)
    assert worker.sends(first) is None
    assert other.sends(page(2)) == (WAITS, 2 * DELAY)
    worker.time.advance(1)
    worker.answered(first)
    worker.time.advance(2 * DELAY - 1)
    assert other.sends(page(2)) is None
    assert worker.sends(page(3)) == (WAITS, 4 * DELAY)
    counts = [each.crawler.stats.get_value("robotstxt/turns") for each in (worker, other)]
    assert counts == [1, 1]


class SlowStore:
    """A store whose claims end when the test says so."""

    def __init__(self, store):
        self.store = store
        self.claims = []

    async def claim(self, *args, **kwargs):
        self.claims.append(Deferred())
        await maybe_deferred_to_future(self.claims[-1])
        return await self.store.claim(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.store, name)

    def answers(self):
        self.claims.pop(0).callback(None)
        settle()


@pytest.fixture
def slow(worker):
    slow = Worker(worker.time, store=SlowStore(worker.store))
    slow.knows_delay()
    return slow


def test_if_the_request_is_cancelled_while_it_claims_the_next_may_be_sent(slow):
    task = slow.sending(page(1))
    settle()
    task.cancel()
    settle()
    with pytest.raises(asyncio.CancelledError):
        task.result()
    task = slow.sending(page(2))
    settle()
    slow.store.claims.pop(0)
    slow.store.answers()
    assert task.result() is None


def test_the_turn_of_a_worker_whose_store_fails_is_its_own(worker, caplog):
    async def claim(*_, **__):
        raise ZeroDivisionError("made up")

    worker.store.claim = claim
    assert worker.sends(page(1)) is None
    assert worker.sends(page(2)) == (WAITS, 2 * DELAY)
    assert caplog.messages == ["Error while claiming the lease of a.example"]
