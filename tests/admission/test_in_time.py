"""Delays and pauses of a host in made-up time: who waits, and until when.

On the network: tests/wire.
"""

import asyncio
import math

import pytest
from scrapy import Request

from scrapy_rep.admission import hosts
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


@pytest.mark.parametrize(("latency", "next_at"), [(0.5, 2.5), (3.0, 5.0)])
def test_the_delay_counts_from_the_response(worker, latency, next_at):
    first, second = page(1), page(2)
    assert worker.sends(first) is None
    worker.time.advance(latency)
    worker.answered(first)
    assert worker.sends(second) == (WAITS, next_at)
    worker.time.advance(next_at - latency)
    assert worker.sends(second) is None


def test_nothing_is_sent_while_a_request_is_under_way(worker):
    """It may be written to the network late, as the event loop may be blocked; but not for ever."""
    worker.sends(page(1))
    worker.time.advance(50)
    assert worker.sends(page(2)) == worker.leaves(page(2)) == (WAITS, 60)
    worker.time.advance(10)
    assert worker.sends(page(2)) is None


def test_a_pause_that_begins_meanwhile_is_no_longer_for_the_request_under_way(worker):
    first, second = page(1), page(2)
    assert worker.sends(first) is None
    worker.time.advance(60)
    assert worker.sends(second) is None
    worker.answered(first, 429, 5)
    assert worker.sends(page(3)) == (REFUSED, pytest.approx(worker.time.now + 5))


def test_a_request_that_was_not_sent_takes_no_turn(worker):
    worker.leaves(page(1))
    worker.hosts.undo_reserve("a.example")
    assert [str(origin) for origin in worker.told] == []
    assert worker.leaves(page(2)) is None
    assert worker.leaves(page(3)) == (WAITS, DELAY)
    worker.hosts.undo_reserve("a.example")
    assert [str(origin) for origin in worker.told] == [SITE]


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


def test_if_the_request_is_cancelled_while_it_claims_the_next_may_be_sent(worker):
    claim, answers = worker.store.claim, []

    async def slow_claim(*arguments):
        answers.append(asyncio.get_running_loop().create_future())
        await answers[-1]
        return await claim(*arguments)

    worker.store.claim = slow_claim
    task = worker.sending(page(1))
    settle()
    task.cancel()
    settle()
    with pytest.raises(asyncio.CancelledError):
        task.result()
    task = worker.sending(page(2))
    settle()
    answers[-1].set_result(None)
    settle()
    assert task.result() is None


def test_the_turn_of_a_worker_whose_store_fails_is_its_own(worker, caplog):
    async def claim(*_, **__):
        raise ZeroDivisionError("made up")

    worker.store.claim = claim
    first = page(1)
    assert worker.sends(first) is None
    worker.answered(first)
    assert worker.sends(page(2)) == (WAITS, DELAY)
    told = [text for text in caplog.messages if "lease" in text]
    assert told == ["Error while claiming the lease of a.example"]


# After a refusal.

REFUSED = "the site answered 429 or 503"


class Probing:
    """A host that has refused a request; another one is under way, and a third is the probe."""

    def __init__(self, site=SITE, **settings):
        self.worker = worker = Worker(**settings)
        worker.knows_no_rules(site)
        self.first, self.late, self.probe, self.next = (page(n, site) for n in range(4))
        for request in (self.first, self.late):
            assert worker.sends(request) is None
        worker.answered(self.first, 429, 1)
        worker.time.advance(1.1)
        assert worker.leaves(self.probe) is None
        assert worker.sends(self.probe) is None

    def waits_for(self):
        """Seconds until the next request may be sent; infinity if that is not known."""
        held = self.worker.sends(self.next)
        assert held is None or held[0] == REFUSED
        return 0 if held is None else held[1] - self.worker.time.now


@pytest.mark.parametrize("status", [200, 429, None])
def test_a_longer_pause_that_is_asked_for_late_holds(status):
    scene = Probing()
    scene.worker.answered(scene.late, 429, 10)
    scene.worker.time.advance(0.5)
    if status is None:
        scene.worker.ends(scene.probe)
    else:
        scene.worker.answered(scene.probe, status, 3)
    assert scene.waits_for() == pytest.approx(9.5)
    scene.worker.time.advance(9.6)
    assert scene.waits_for() == 0


def test_a_probe_without_a_response_begins_a_pause_ten_times_as_long():
    scene = Probing(REP_BACK_OFF_MAX=100)
    scene.worker.time.advance(5)
    scene.worker.ends(scene.probe)
    assert scene.waits_for() == pytest.approx(50)
    scene.worker.time.advance(51)
    assert scene.worker.sends(scene.next) is None
    scene.worker.time.advance(50)
    scene.worker.ends(scene.next)
    scene.next = page(4)
    assert scene.waits_for() == pytest.approx(100)


def test_a_longer_pause_may_be_too_long(caplog):
    scene = Probing(REP_DEFER_TIMEOUT=5)
    scene.worker.answered(scene.late, 429, 40)
    assert scene.worker.hosts.is_dropping("a.example")
    (line,) = [line for line in caplog.messages if "refuses all requests" in line]
    assert line.startswith("a.example")
    assert scene.worker.leaves(scene.next) is None, "it leaves to be dropped"
    assert scene.waits_for() == pytest.approx(40)
    scene.worker.time.advance(41)
    assert not scene.worker.hosts.is_dropping("a.example")


def test_a_delay_that_a_pause_keeps_is_no_time_of_refusals():
    worker = Worker(REP_DEFER_TIMEOUT=60)
    worker.knows_delay(delay=120)
    first = page(1)
    assert worker.sends(first) is None
    worker.answered(first, 429)
    worker.reads_pauses()
    assert worker.leaves(page(2)) == ("the site answered 429 or 503", 120)


def test_one_probe_is_sent_however_a_host_is_written():
    scene = Probing("http://[0:0:0:0:0:0:0:1]:8000")
    scene.worker.time.advance(3)
    assert scene.waits_for() == math.inf
    scene.worker.answered(scene.probe)
    assert scene.waits_for() == 0
    for as_written in ("HTTP://a.example/", " http://a.example/"):
        scene = Probing()
        scene.next = Request(as_written, meta={"verbatim_url": True})
        assert scene.waits_for() == math.inf


def test_a_worker_without_back_off_waits_for_the_lease_and_sends_no_probe(worker):
    other = worker.beside(REP_BACK_OFF_MAX=0)
    other.knows_delay()
    worker.sends(first := page(1))
    worker.answered(first, 429, 10)
    assert other.sends(page(2)) is not None
    worker.time.advance(10.1)
    for number in (2, 3):
        sent = page(number)
        assert other.sends(sent) is None
        other.answered(sent)
        worker.time.advance(DELAY + 0.1)


def test_a_probe_that_is_not_sent_begins_no_pause():
    worker = Worker()
    worker.knows_no_rules()
    worker.sends(first := page(1))
    worker.answered(first, 429, 2)
    worker.time.advance(2.1)
    probe = page(2)
    assert worker.sends(probe) is None
    worker.sent_at[probe] = None
    worker.ends(probe)
    assert worker.sends(page(3)) is None


def test_the_time_in_which_a_host_was_not_asked_is_no_time_of_refusals():
    worker = Worker(REP_DEFER_TIMEOUT=5)
    other = worker.beside(REP_DEFER_TIMEOUT=5)
    for each in (worker, other):
        each.knows_no_rules()
    for number in (1, 2):
        sent = page(number)
        assert worker.sends(sent) is None
        worker.answered(sent, 429, 2)
        other.reads_pauses()
        for each in (worker, other):
            assert each.sends(page(3)) == (REFUSED, pytest.approx(worker.time.now + 2))
            assert not each.hosts.is_dropping("a.example")
        worker.time.advance(7.1)


def test_hosts_that_nothing_waits_for_are_forgotten(monkeypatch):
    monkeypatch.setattr(hosts, "_MAX_HOSTS", 4)
    worker = Worker()

    def refuse(hosts):
        for number in hosts:
            request = page(1, f"http://{number}.example")
            worker.knows_no_rules(f"http://{number}.example")
            worker.sends(request)
            worker.answered(request, 429)

    refuse(range(32))
    assert len(worker.hosts.paused) == 32
    assert worker.leaves(page(2, "http://7.example"))
    worker.time.advance(60)
    refuse([32])
    assert list(worker.hosts.paused) == ["7.example", "32.example"]


def test_what_is_no_page_begins_no_pause(worker):
    """As the response to an s3 URL."""
    request = Request("s3://a.example/1")
    worker.sent_at[request] = 0.0
    worker.answered(request, 429, 5)
    assert not worker.hosts.paused
