"""Which record an outcome follows."""

from scrapy_rep.cache.records import Records
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.record import Record
from scrapy_rep.stores.base import Stored
from scrapy_rep.stores.write_behind import Known
from tests.made_up_network import POLICY, Network
from tests.made_up_time import MadeUpTime

A = origin_of("http://a.example")
DAY = 86_400.0


def test_failures_after_a_success_that_could_not_be_stored_are_one_outage():
    time = MadeUpTime()
    network = Network(time)
    records = Records(network.lookups().store, POLICY, time.clock, lambda: 0.0)
    available = records.after(None, A, network.outcome(A, unreachable=False, seconds=1))
    not_written = Known({str(A): Stored(*available.encode())}, False, is_complete=False)
    for tries in range(1, 4):
        time.advance(10)
        failed = network.outcome(A, unreachable=True, seconds=1)
        record = records.after(records.previous(A, not_written, failed), A, failed)
        assert (record.tries, record.unreachable_since) == (tries, 1e9 + 10)
        records.keep(record, not_written)


def test_a_failure_that_is_not_stored_has_the_copy_of_the_store():
    time = MadeUpTime()
    network = Network(time)
    records = Records(network.lookups().store, POLICY, time.clock, lambda: 0.0)
    available = records.after(None, A, network.outcome(A, b"Disallow: /", seconds=1))
    unreadable = Known({}, False, is_complete=False)
    time.advance(10)
    failed = records.after(None, A, network.outcome(A, unreachable=True, seconds=1))
    records.keep(failed, unreadable)
    last = records.last(A, Known({str(A): Stored(*available.encode())}, False))
    assert (last.last, last.copy) == (failed.last, available.copy)
    assert not records.is_stored(last)


def test_a_failure_while_the_store_fails_does_not_end_an_outage_that_it_has():
    time = MadeUpTime()
    network = Network(time)
    records = Records(network.lookups().store, POLICY, time.clock, lambda: 0.0)
    down = network.outcome(A, unreachable=True, seconds=1)
    outage = Record(A, down, None, time.wall - 31 * DAY, 31 * DAY, 9, time.wall)
    readable = Known({str(A): Stored(outage.encode()[0], b"")}, False)
    unreadable = Known({}, False, is_complete=False)
    time.advance(10)
    failed = network.outcome(A, unreachable=True, seconds=1)
    records.keep(records.after(records.previous(A, unreadable, failed), A, failed), unreadable)
    assert records.last(A, readable).unreachable_for == 0
    time.advance(10)
    failed = network.outcome(A, unreachable=True, seconds=1)
    record = records.after(records.previous(A, readable, failed), A, failed)
    assert record.unreachable_for > 31 * DAY
    assert POLICY.access(record, time.wall).may_allow
