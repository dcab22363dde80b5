"""Which record an outcome follows."""

import pytest

from scrapy_rep.cache.records import Records
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.record import Record
from scrapy_rep.stores.base import Stored
from scrapy_rep.stores.write_behind import Known
from tests.made_up_network import POLICY, Network
from tests.made_up_time import MadeUpTime

A = origin_of("http://a.example")
DAY = 86_400.0
READABLE = Known({}, False)
UNREADABLE = Known({}, False, is_complete=False)


@pytest.fixture
def scene():
    time = MadeUpTime()
    network = Network(time)
    return time, network, Records(network.lookups().store, POLICY, time.clock, lambda: 0.0)


def test_failures_after_a_success_that_could_not_be_stored_are_one_outage(scene):
    time, network, records = scene
    available = records.after(None, A, network.outcome(A, unreachable=False, seconds=1), READABLE)
    not_written = Known({str(A): Stored(*available.encode())}, False, is_complete=False)
    for tries in range(1, 4):
        time.advance(10)
        failed = network.outcome(A, unreachable=True, seconds=1)
        record = records.after(records.previous(A, not_written, failed), A, failed, not_written)
        assert (record.tries, record.unreachable_since) == (tries, 1e9 + 10)
        records.keep(record)


def test_a_failure_that_is_not_stored_has_the_copy_of_the_store(scene):
    time, network, records = scene
    available = records.after(None, A, network.outcome(A, b"Disallow: /", seconds=1), READABLE)
    time.advance(10)
    failed = records.after(None, A, network.outcome(A, unreachable=True, seconds=1), UNREADABLE)
    records.keep(failed)
    last = records.last(A, Known({str(A): Stored(*available.encode())}, False))
    assert (last.last, last.copy) == (failed.last, available.copy)
    assert not records.is_stored(last)


def test_a_failure_while_the_store_fails_does_not_end_an_outage_that_it_has(scene):
    time, network, records = scene
    down = network.outcome(A, unreachable=True, seconds=1)
    outage = Record(A, down, None, time.wall - 31 * DAY, 31 * DAY, 9, time.wall)
    readable = Known({str(A): Stored(outage.encode()[0], b"")}, False)
    time.advance(10)
    failed = network.outcome(A, unreachable=True, seconds=1)
    records.keep(records.after(records.previous(A, UNREADABLE, failed), A, failed, UNREADABLE))
    assert records.last(A, readable).unreachable_for == 0
    time.advance(10)
    failed = network.outcome(A, unreachable=True, seconds=1)
    record = records.after(records.previous(A, readable, failed), A, failed, readable)
    assert record.unreachable_for > 31 * DAY
    assert POLICY.access(record, time.wall).may_allow


def test_a_site_whose_copy_can_not_be_read_never_opens(scene):
    time, network, records = scene
    record = None
    for known, allows in (UNREADABLE, False), (READABLE, True):
        for _ in range(31):
            time.advance(DAY)
            failed = network.outcome(A, unreachable=True, seconds=1)
            record = records.after(record, A, failed, known)
        assert POLICY.access(record, time.wall).may_allow is allows


def test_of_two_copies_the_newer_one_counts(scene):
    time, network, records = scene
    mine = records.after(None, A, network.outcome(A, b""), READABLE)
    time.advance(10)
    theirs = records.after(None, A, network.outcome(A, b"Disallow: /"), READABLE)
    time.advance(10)
    records.keep(records.after(mine, A, network.outcome(A, unreachable=True), UNREADABLE))
    assert records.last(A, Known({str(A): Stored(*theirs.encode())}, False)).copy == theirs.copy
