"""What every store does, whatever it is made of."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import sleep, time

import pytest

from scrapy_rep.protocol.record import VERSION, Record, RecordError
from scrapy_rep.stores.base import (
    PAUSE,
    WORKER,
    Claim,
    Lease,
    Release,
    StoreError,
    key_of_host,
)
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite import SQLiteStore
from tests.sql import execute
from tests.stores.records import ORIGIN, available, every, put, unavailable, unreachable
from tests.waiting import PATIENCE

LONG = 3600
"""Seconds of a lease that no test waits for."""
OTHER = "http://example.com:8080"
HOST = key_of_host("example.com")


def is_about(lease, holder, seconds):
    """Whether ``holder`` was given ``lease`` for ``seconds`` in this test."""
    return lease.holder == holder and seconds - PATIENCE < lease.left < seconds + 1


def memory(**kwargs):
    return MemoryStore(max_bytes=2**26, **kwargs)


def sqlite(path, **kwargs):
    values = {"max_age": 1e10, "max_bytes": 2**30, "timeout": PATIENCE}
    return SQLiteStore(path, **{**values, "clock": time, **kwargs})


def record(store, key=ORIGIN):
    """The record of ``key``; None if there is none that can be read."""
    found = store.read([key]).records.get(key)
    try:
        return None if found is None else Record.decode(*found, key)
    except RecordError:
        return None


def write(store, *records):
    store.write([put(each) for each in records])


def claim(store, key, holder, seconds, **how):
    (lease,) = store.write([Claim(key, holder, seconds, **how)])
    return lease


def release(store, key, holder):
    assert store.write([Release(key, holder)]) == [None]


def at_once(*calls):
    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(lambda call: call(), calls))


class Contract:
    """Inherited by the tests of each store, which say how to open one."""

    persistent = False
    """Whether another store, opened in the same place, sees what this one holds."""

    @pytest.fixture
    def make(self):
        """A function that returns a new store in the same place."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, make):
        """``make``, whose stores are closed in the end."""
        stores = []

        def opened():
            stores.append(make())
            return stores[-1]

        yield opened
        for store in stores:
            store.close()

    @pytest.fixture
    def store(self, opened):
        return opened()

    def test_what_is_put_is_read(self, store):
        assert record(store) is None
        for each in every():
            write(store, each)
            assert record(store) == each
            peeked = store.peek([ORIGIN])
            assert peeked is None or peeked == store.read([ORIGIN])
        assert record(store, OTHER) is None

    def test_a_failure_keeps_the_copy_and_what_is_unavailable_drops_it(self, store):
        copy = available().copy
        write(store, available(), unreachable())
        assert record(store) == unreachable(copy=copy)
        write(store, unavailable(at=20.0), unreachable(at=30.0))
        assert record(store) == unreachable(at=30.0)

    def test_it_can_be_closed_unused_closed_twice_and_used_again(self, store):
        store.close()
        write(store, available())
        store.close()
        store.close()
        assert record(store) == (available() if self.persistent else None)

    def test_many_at_once(self, store):
        records = [available(f"https://site-{i}.example") for i in range(2_500)]
        write(store, *records)
        keys = [str(each.origin) for each in records]
        found = store.read(keys).records
        assert [Record.decode(*found[key], key) for key in keys] == records
        claim(store, "https://leased.example", "a", 30)
        assert sorted(store.keys()) == sorted(keys)

    def test_a_lease_is_given_once_and_ends_when_it_is_released(self, store):
        assert claim(store, ORIGIN, "a", 30).holder == "a"
        assert claim(store, ORIGIN, "b", 30).holder == "a"
        assert claim(store, OTHER, "b", 30).holder == "b"
        release(store, ORIGIN, "b")
        assert claim(store, ORIGIN, "b", 30).holder == "a"
        release(store, ORIGIN, "a")
        assert claim(store, ORIGIN, "b", 30).holder == "b"

    def test_changes_are_made_in_their_order(self, store):
        changes = [Claim(ORIGIN, "a", LONG), put(available()), Release(ORIGIN, "a")]
        leases = store.write([*changes, Claim(ORIGIN, "b", LONG), Claim(ORIGIN, "c", LONG)])
        assert [lease and lease.holder for lease in leases] == ["a", None, None, "b", "b"]
        assert record(store) == available()

    def test_leases_and_pauses_end_by_themselves(self, store):
        for key, how in ((ORIGIN, {}), (OTHER, {"force": True})):
            assert claim(store, key, "a", 0.2, **how).holder == "a"
        claim(store, HOST, PAUSE, 0.2, force=True)
        claim(store, f"{WORKER}a", "a", 0.2)
        sleep(0.25)
        assert dict(store.pauses_left()) == {}
        assert store.read([]).workers == 0
        for key, how in ((ORIGIN, {}), (OTHER, {"force": True}), (HOST, {})):
            assert is_about(claim(store, key, "b", LONG, **how), "b", LONG)
        release(store, ORIGIN, "a")
        assert claim(store, ORIGIN, "a", LONG).holder == "b"

    def test_one_of_many_gets_the_lease(self, opened):
        stores = [opened() for _ in range(4)] if self.persistent else [opened()] * 4
        for round_ in range(10):
            origin = f"https://site-{round_}.example"
            claims = [
                lambda s=s, i=i, o=origin: claim(s, o, f"{i}", 30) for i, s in enumerate(stores)
            ]
            assert len({lease.holder for lease in at_once(*claims)}) == 1

    def test_who_has_a_lease_says_anew_when_it_ends(self, store):
        for seconds in (LONG, 3 * LONG, 2 * LONG):
            assert is_about(claim(store, HOST, "a", seconds), "a", seconds)
            assert is_about(claim(store, HOST, "b", 5 * LONG), "a", seconds)
        assert claim(store, HOST, "a", 0.1).holder == "a"
        sleep(0.15)
        assert claim(store, HOST, "b", LONG).holder == "b"

    @pytest.mark.parametrize("holder", ["a", "b", PAUSE])
    @pytest.mark.parametrize("seconds", [LONG, 3 * LONG])
    def test_a_forced_lease_takes_the_place_of_any_other_and_ends_with_the_later_of_both(
        self, store, holder, seconds
    ):
        claim(store, HOST, "a", 2 * LONG)
        lease = claim(store, HOST, holder, seconds, force=True)
        assert is_about(lease, holder, max(2 * LONG, seconds))
        for left in store.pauses_left().values():
            assert is_about(Lease(holder, left), PAUSE, max(2 * LONG, seconds))

    def test_who_has_lost_a_lease_neither_renews_nor_ends_it(self, store):
        claim(store, HOST, "a", LONG)
        claim(store, HOST, PAUSE, 2 * LONG, force=True)
        assert is_about(claim(store, HOST, "a", 3 * LONG), PAUSE, 2 * LONG)
        release(store, HOST, "a")
        assert is_about(claim(store, HOST, "b", LONG), PAUSE, 2 * LONG)

    def test_all_pauses_are_known_and_no_other_lease(self, opened, store):
        claim(store, ORIGIN, "a", LONG)
        claim(store, HOST, "a", LONG)
        assert dict(store.pauses_left()) == {}
        hosts = {key_of_host(f"site-{n}.example"): (n + 2) * LONG for n in range(300)}
        store.write([Claim(key, PAUSE, seconds, force=True) for key, seconds in hosts.items()])
        other = opened() if self.persistent else store
        pauses = other.pauses_left()
        assert set(pauses) == set(hosts)
        for key, seconds in hosts.items():
            assert is_about(Lease(PAUSE, pauses[key]), PAUSE, seconds)
        first, second, *_ = hosts
        assert claim(other, first, "a", LONG).holder == PAUSE
        release(other, second, PAUSE)
        assert second not in store.pauses_left()
        assert claim(store, second, "a", LONG).holder == "a"

    def test_of_pauses_that_begin_at_once_the_longest_holds(self, opened):
        stores = [opened() for _ in range(4)] if self.persistent else [opened()]

        def pause(store):
            for hours in (2, 5, 3, 1):
                claim(store, HOST, PAUSE, hours * LONG, force=True)

        at_once(*(lambda store=store: pause(store) for store in stores))
        for store in stores:
            ((key, left),) = store.pauses_left().items()
            assert key == HOST
            assert is_about(Lease(PAUSE, left), PAUSE, 5 * LONG)

    def test_a_deleted_record_is_gone_and_its_lease_stays(self, store):
        write(store, available(), available(OTHER))
        claim(store, ORIGIN, "a", 30)
        assert store.delete(ORIGIN) is True
        assert store.delete(ORIGIN) is False
        assert record(store) is None
        assert list(store.keys()) == [OTHER]
        assert claim(store, ORIGIN, "b", 30).holder == "a"


class PersistentContract(Contract):
    """What a store does whose records outlive it."""

    persistent = True

    def alter(self, key, part, change):
        """Change the ``state`` or the ``body`` of a record behind the store's back."""
        raise NotImplementedError

    def test_records_leases_and_pauses_outlive_the_store(self, opened, store):
        write(store, available(), unavailable(OTHER))
        claim(store, ORIGIN, "a", LONG)
        claim(store, HOST, PAUSE, LONG)
        store.close()
        store = opened()
        assert record(store) == available()
        assert record(store, OTHER) == unavailable(OTHER)
        assert claim(store, ORIGIN, "b", LONG).holder == "a"
        assert list(store.pauses_left()) == [HOST]

    def test_how_many_workers_there_are(self, opened, store):
        other = opened()
        assert store.read([ORIGIN]).workers == 0
        for number, each in enumerate((store, other)):
            claim(each, f"{WORKER}{number}", f"{WORKER}{number}", LONG)
            claim(each, f"{WORKER}{number}", f"{WORKER}{number}", LONG)
            assert {one.read([]).workers for one in (store, other)} == {number + 1}
        release(other, f"{WORKER}1", f"{WORKER}1")
        assert store.read([ORIGIN]).workers == 1
        assert dict(store.pauses_left()) == {}

    @pytest.mark.parametrize("order", [1, -1])
    def test_of_two_workers_the_later_fetch_stays(self, opened, store, order):
        made = [available(at=5.0), unavailable(at=6.0)]
        for worker, each in list(zip((store, opened()), made, strict=True))[::order]:
            write(worker, each)
        assert record(store) == made[1]

    def test_a_record_from_the_future_gives_way(self, store):
        """It was written by a worker whose clock is wrong."""
        write(store, available(at=time() + 1e6))
        write(store, available(at=5.0))
        assert record(store) == available(at=5.0)

    @pytest.mark.parametrize("part", ["state", "body"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda data: data[:20],
            lambda data: bytes([VERSION + 1]) + data[1:],
            lambda data: data[:-1],
            lambda data: data + b"x",
            lambda data: data + b"\0" * 2_000_000,
            lambda data: b"\x80\x04}\x94.",
        ],
        ids=["cut", "version", "short", "behind", "huge", "pickle"],
    )
    def test_a_record_altered_by_hand_is_a_miss(self, opened, store, part, change):
        write(store, available())
        store.close()
        self.alter(ORIGIN, part, change)
        store = opened()
        assert record(store) is None
        assert list(store.keys()) == [ORIGIN]
        write(store, unavailable())
        assert record(store) == unavailable()


class TestMemory(Contract):
    @pytest.fixture
    def make(self):
        return memory

    def test_above_the_limit_the_least_recently_used_go(self):
        store = MemoryStore(max_bytes=2_000)
        origins = [f"https://site-{i}.example" for i in range(9)]
        write(store, *map(unavailable, origins))
        assert list(store.keys()) == origins[-len(list(store.keys())) :]
        assert 1 < len(list(store.keys())) < 5

    @pytest.mark.parametrize("seconds", [1, 2, 3, 4])
    def test_a_lease_that_ends_while_it_is_claimed_goes_to_one(self, seconds):
        """Else the claim would return None, as that of a store that fails."""
        store = memory(clock=count().__next__)
        assert claim(store, ORIGIN, "a", seconds).holder == "a"
        assert claim(store, ORIGIN, "b", LONG).holder in {"a", "b"}

    def test_leases_that_have_ended_go_when_there_are_many(self, monkeypatch):
        monkeypatch.setattr("scrapy_rep.stores.memory._MANY_LEASES", 2)
        now = 0.0
        store = memory(clock=lambda: now)
        for number in range(8):
            claim(store, f"{number}", "a", number)
            now = number - 3
        assert list(store._leases) == ["4", "5", "6", "7"]


class TestSQLite(PersistentContract):
    @pytest.fixture
    def make(self, tmp_path):
        self.path = tmp_path / "robots.sqlite"
        return lambda: sqlite(self.path)

    def alter(self, key, part, change):
        ((data,),) = execute(self.path, f"SELECT {part} FROM records WHERE origin = ?", key)
        execute(self.path, f"UPDATE records SET {part} = ? WHERE origin = ?", change(data), key)

    @pytest.mark.parametrize("data", ["CAST(X'ff' AS TEXT)", "'a text'", "5", "2.5"])
    def test_a_record_of_another_type_is_a_miss(self, opened, store, data):
        write(store, available(), available(OTHER))
        store.close()
        execute(self.path, f"UPDATE records SET body = {data} WHERE origin = '{ORIGIN}'")
        store = opened()
        assert record(store) is None
        assert record(store, OTHER) == available(OTHER)


class TestRedis(PersistentContract):
    @pytest.fixture
    def make(self, redis_server):
        self.client = redis_server.client
        self.client.flushall()
        from scrapy_rep.stores.redis import RedisStore

        # Keys of others, one of which a pattern made of the prefix without escapes would find.
        self.client.set("robots:record:https://others.example", b"x")
        self.client.hset("s?*:record:https://others.example", "state", b"x")
        values = {"prefix": "[rs]?*:", "max_age": 5e6, "timeout": PATIENCE}
        return lambda: RedisStore(redis_server.uri, **values)

    def alter(self, key, part, change):
        name = f"[rs]?*:record:{key}"
        self.client.hset(name, part, change(self.client.hget(name, part)))

    def test_calls_that_are_made_at_once_go_together(self, store):
        store.read([])
        before = self.client.info("stats")["total_reads_processed"]
        records = [available(f"https://site-{i}.example") for i in range(300)]
        write(store, *records)
        store.read([str(each.origin) for each in records])
        assert self.client.info("stats")["total_reads_processed"] - before < len(records)

    def test_a_key_of_another_type_is_an_error(self, store):
        for kind in ("record", "lease"):
            self.client.rpush(f"[rs]?*:{kind}:{ORIGIN}", "a list")
        for change in (put(available()), Claim(ORIGIN, "a", LONG)):
            with pytest.raises(StoreError, match="WRONGTYPE"):
                store.write([change])

    def test_nothing_is_kept_for_longer_than_it_holds(self, store):
        claim(store, HOST, PAUSE, LONG, force=True)
        claim(store, OTHER, PAUSE, 2 * LONG, force=True)
        claim(store, f"{WORKER}a", "a", LONG)
        write(store, available())
        ends = {key: self.client.pttl(key) for key in self.client.keys("[[]rs*")}
        assert len(ends) == 6
        assert all(end > 0 for end in ends.values())
        assert 2 * LONG - PATIENCE < ends[b"[rs]?*:pauses"] / 1000 <= 2 * LONG

    def test_a_lease_without_an_end_is_none(self, store):
        key = f"[rs]?*:lease:{HOST}"
        self.client.set(key, "of another program")
        assert is_about(claim(store, HOST, "a", LONG), "a", LONG)
        assert 0 < self.client.pttl(key) <= LONG * 1000
