"""What every store does, whatever it is made of."""

import asyncio
import re
import sqlite3
import zlib
from contextlib import closing
from time import time

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from scrapy_rep.protocol.record import VERSION
from scrapy_rep.stores.base import PAUSE, StoreError, host_of_key, key_of_host
from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite import SQLiteStore
from scrapy_rep.utils.concurrency import sleep
from tests.stores.records import ORIGIN, available, every, unavailable, unreachable
from tests.waiting import PATIENCE

MAX_SIZE = 512_000
LONG = 3600
"""Seconds of a lease that no test waits for."""
OTHER = "http://example.com:8080"
HOST = key_of_host("example.com")


def held(found):
    """The record, and who has the lease."""
    return found.record, found.holder


def is_about(lease, holder, seconds):
    """Whether ``holder`` was given ``lease`` for ``seconds`` in this test."""
    return lease.holder == holder and seconds - PATIENCE < lease.left < seconds + 1


def rewritten(data, old, new):
    """A record with another text."""
    return data[:1] + zlib.compress(zlib.decompress(data[1:]).replace(old, new))


@pytest.mark.in_asyncio
class Contract:
    """Inherited by the tests of each store, which say how to open one."""

    persistent = False
    """Whether another store, opened in the same place, sees what this one holds."""

    @pytest.fixture
    def make(self):
        """A function that returns a new store in the same place."""
        raise NotImplementedError

    @pytest_twisted.async_yield_fixture
    async def opened(self, make):
        """``make``, whose stores are closed in the end."""
        stores = []

        def opened():
            stores.append(make())
            return stores[-1]

        yield opened
        for store in stores:
            await Deferred.fromFuture(asyncio.ensure_future(store.close()))

    @pytest.fixture
    def store(self, opened):
        return opened()

    def bare(self, store):
        """Return what the commands look into."""
        return store

    async def test_what_is_put_is_got(self, store):
        assert await store.get(ORIGIN) == (None, None)
        for record in every():
            await store.put(record)
            assert await store.get(ORIGIN) == (record, None)
        assert await store.get(OTHER) == (None, None)

    async def test_it_can_be_closed_unused_closed_twice_and_used_again(self, store):
        await store.close()
        await store.put(available())
        await store.close()
        await store.close()
        expected = available() if self.persistent else None
        assert (await store.get(ORIGIN)).record == expected

    async def test_many_at_once(self, store):
        origins = [f"https://site-{i}.example" for i in range(300)]
        await asyncio.gather(*(store.put(available(origin)) for origin in origins))
        found = await asyncio.gather(*(store.get(origin) for origin in origins))
        assert [each.record for each in found] == [available(origin) for origin in origins]

    async def test_a_lease_is_given_once_and_ends_when_it_is_released(self, store):
        assert (await store.claim(ORIGIN, "a", 30)).holder == "a"
        assert (await store.claim(ORIGIN, "b", 30)).holder == "a"
        assert (await store.get(ORIGIN)).holder == "a"
        assert (await store.claim(OTHER, "b", 30)).holder == "b"
        await store.release(ORIGIN, "b")
        assert (await store.get(ORIGIN)).holder == "a"
        await store.release(ORIGIN, "a")
        assert (await store.get(ORIGIN)).holder is None
        assert (await store.claim(ORIGIN, "b", 30)).holder == "b"

    async def test_a_claim_of_what_is_new_gives_the_record_or_the_lease(self, store):
        first = await store.claim(ORIGIN, "a", 30, if_absent=True)
        assert (first.record, first.holder) == (None, "a")
        assert held(await store.claim(ORIGIN, "b", 30, if_absent=True)) == (None, "a")
        await store.put(available(), "a")
        assert await store.claim(ORIGIN, "b", 30, if_absent=True) == (available(), None)
        assert held(await store.claim(ORIGIN, "b", 30)) == (available(), "b")
        assert held(await store.claim(ORIGIN, "c", 30, if_absent=True)) == (available(), "b")

    async def test_a_longer_claim_of_what_is_new_lasts_as_long_as_the_former(self, store):
        await store.claim(ORIGIN, "a", 60)
        longer = (await store.claim(ORIGIN, "b", 5, force=True, if_absent=True)).lease
        assert longer.holder == "b"
        assert longer.left == pytest.approx(60, abs=5)

    async def test_many_claims_at_once_find_their_own_records(self, store):
        known = [f"https://known-{number}.example" for number in range(600)]
        new = [f"https://new-{number}.example" for number in range(600)]
        await asyncio.gather(*(store.put(available(origin=origin)) for origin in known))
        found = await asyncio.gather(
            *(store.claim(origin, origin, 30, if_absent=True) for origin in (*known, *new))
        )
        assert found[:600] == [(available(origin=origin), None) for origin in known]
        assert [held(each) for each in found[600:]] == [(None, origin) for origin in new]

    async def test_leases_and_pauses_end_by_themselves(self, store):
        for key, how in ((ORIGIN, {}), (OTHER, {"force": True})):
            assert (await store.claim(key, "a", 0.2, **how)).holder == "a"
        await store.claim(HOST, PAUSE, 0.2, force=True)
        await sleep(0.25)
        assert dict(await store.pauses_left()) == {}
        for key, how in ((ORIGIN, {}), (OTHER, {"force": True}), (HOST, {})):
            assert (await store.get(key)).lease is None
            assert is_about((await store.claim(key, "b", LONG, **how)).lease, "b", LONG)
        await store.release(ORIGIN, "a")
        assert (await store.get(ORIGIN)).holder == "b"

    async def test_a_record_ends_the_lease_of_who_puts_it_alone(self, store):
        await store.claim(ORIGIN, "a", 30)
        await store.put(available(), "b")
        assert held(await store.get(ORIGIN)) == (available(), "a")
        await store.put(unavailable(), "a")
        assert await store.get(ORIGIN) == (unavailable(), None)

    async def test_who_gets_the_lease_sees_the_record_of_the_last_holder(self, store):
        await store.claim(ORIGIN, "a", 30)
        record = unreachable()
        _, claim = await asyncio.gather(store.put(record, "a"), store.claim(ORIGIN, "b", 30))
        assert held(claim) in {(record, "b"), (None, "a")}
        assert held(await store.claim(ORIGIN, "b", 30)) == (record, "b")

    async def test_one_of_many_gets_the_lease(self, opened):
        stores = [opened() for _ in range(4)] if self.persistent else [opened()] * 4
        for round_ in range(10):
            origin = f"https://site-{round_}.example"
            claims = await asyncio.gather(
                *(store.claim(origin, f"{i}", 30) for i, store in enumerate(stores))
            )
            assert len({claim.holder for claim in claims}) == 1

    async def test_one_of_many_at_once_gets_a_lease_that_has_ended(self, store):
        assert (await store.claim(HOST, "dead", 0.05)).holder == "dead"
        await sleep(0.1)
        claims = await asyncio.gather(*(store.claim(HOST, f"{i}", LONG) for i in range(50)))
        (holder,) = {claim.holder for claim in claims}
        assert holder in {f"{i}" for i in range(50)}
        assert all(is_about(claim.lease, holder, LONG) for claim in claims)

    async def test_who_has_a_lease_says_anew_when_it_ends(self, store):
        for seconds in (LONG, 3 * LONG, 2 * LONG):
            assert is_about((await store.claim(HOST, "a", seconds)).lease, "a", seconds)
            assert is_about((await store.get(HOST)).lease, "a", seconds)
            assert is_about((await store.claim(HOST, "b", 5 * LONG)).lease, "a", seconds)
            assert is_about((await store.get(HOST)).lease, "a", seconds)
        assert (await store.claim(HOST, "a", 0.1)).holder == "a"
        await sleep(0.15)
        assert (await store.claim(HOST, "b", LONG)).holder == "b"

    @pytest.mark.parametrize(
        ("holder", "seconds", "expected"),
        [
            ("a", 3 * LONG, ("a", 3 * LONG)),
            ("a", LONG, ("a", 2 * LONG)),
            ("b", 3 * LONG, ("b", 3 * LONG)),
            ("b", LONG, ("b", 2 * LONG)),
        ],
    )
    async def test_a_longer_lease_takes_the_place_of_any_other_and_ends_with_the_later_of_both(
        self, store, holder, seconds, expected
    ):
        await store.claim(HOST, "a", 2 * LONG)
        claim = await store.claim(HOST, holder, seconds, force=True)
        assert is_about(claim.lease, *expected)
        assert is_about((await store.get(HOST)).lease, *expected)

    async def test_who_has_lost_a_lease_neither_renews_nor_ends_it(self, store):
        await store.claim(HOST, "a", LONG)
        await store.claim(HOST, PAUSE, 2 * LONG, force=True)
        assert is_about((await store.claim(HOST, "a", 3 * LONG)).lease, PAUSE, 2 * LONG)
        await store.release(HOST, "a")
        assert is_about((await store.get(HOST)).lease, PAUSE, 2 * LONG)

    async def test_all_pauses_are_known_and_no_other_lease(self, opened, store):
        assert dict(await store.pauses_left()) == {}
        await store.claim(ORIGIN, "a", LONG)
        await store.claim(HOST, "a", LONG)
        assert dict(await store.pauses_left()) == {}
        hosts = {f"site-{n}.example": (n + 2) * LONG for n in range(300)}
        claims = await asyncio.gather(
            *(store.claim(key_of_host(h), PAUSE, s, force=True) for h, s in hosts.items())
        )
        assert {claim.holder for claim in claims} == {PAUSE}
        other = opened() if self.persistent else store
        pauses = await other.pauses_left()
        assert {host_of_key(key) for key in pauses} == set(hosts)
        for host, seconds in hosts.items():
            assert seconds - PATIENCE < pauses[key_of_host(host)] < seconds + 1
        assert (await other.claim(key_of_host("site-0.example"), "a", LONG)).holder == PAUSE

    async def test_a_pause_that_was_released_is_none(self, store):
        await store.claim(HOST, PAUSE, LONG, force=True)
        await store.claim(OTHER, PAUSE, LONG, force=True)
        await store.release(HOST, PAUSE)
        assert list(await store.pauses_left()) == [OTHER]
        assert (await store.claim(HOST, "a", LONG)).holder == "a"

    async def test_of_pauses_that_begin_at_once_the_longest_holds(self, opened):
        stores = [opened() for _ in range(4)] if self.persistent else [opened()] * 4
        pauses = [(store, n * LONG) for store in stores for n in (2, 5, 3, 1)]
        await asyncio.gather(
            *(store.claim(HOST, PAUSE, seconds, force=True) for store, seconds in pauses)
        )
        for store in stores:
            assert is_about((await store.get(HOST)).lease, PAUSE, 5 * LONG)
            ((key, left),) = (await store.pauses_left()).items()
            assert key == HOST
            assert 5 * LONG - PATIENCE < left < 5 * LONG + 1

    async def test_all_origins_are_listed_across_pages(self, store):
        assert [key async for key in self.bare(store).scan_keys()] == []
        origins = {f"https://site-{i}.example" for i in range(2_500)}
        await asyncio.gather(*(store.put(unavailable(origin)) for origin in origins))
        await store.claim("https://leased.example", "a", 30)
        found = [key async for key in self.bare(store).scan_keys()]
        assert set(found) == origins
        assert len(found) == len(origins)

    async def test_a_dropped_record_is_gone_and_its_lease_stays(self, store):
        await store.put(available())
        await store.put(available(OTHER))
        await store.claim(ORIGIN, "a", 30)
        assert await self.bare(store).discard(ORIGIN) is True
        assert await self.bare(store).discard(ORIGIN) is False
        assert held(await store.get(ORIGIN)) == (None, "a")
        assert [key async for key in self.bare(store).scan_keys()] == [OTHER]
        await store.put(unavailable(), "a")
        assert await store.get(ORIGIN) == (unavailable(), None)

    async def test_nothing_is_pruned_within_the_bounds(self, store):
        await store.put(available())
        assert await self.bare(store).prune() == 0
        assert (await store.get(ORIGIN)).record == available()


class PersistentContract(Contract):
    """What a store does whose records outlive it."""

    persistent = True

    def alter(self, origin, change):
        """Change the bytes of a record behind the store's back."""
        raise NotImplementedError

    async def test_records_leases_and_pauses_outlive_the_store(self, opened, store):
        await store.put(available())
        await store.put(unavailable(OTHER))
        await store.claim(ORIGIN, "a", LONG)
        await store.claim(HOST, PAUSE, LONG)
        await store.close()
        store = opened()
        assert held(await store.get(ORIGIN)) == (available(), "a")
        assert await store.get(OTHER) == (unavailable(OTHER), None)
        assert is_about((await store.get(HOST)).lease, PAUSE, LONG)
        assert list(await store.pauses_left()) == [HOST]

    @pytest.mark.parametrize(
        "change",
        [
            lambda data: b"",
            lambda data: data[:20],
            lambda data: bytes([VERSION + 1]) + data[1:],
            lambda data: rewritten(data, b"https://example.com", b"https://example.org"),
            lambda data: data[:-1],
            lambda data: data + b"x",
            lambda data: data + b"\0" * 2_000_000,
            lambda data: b"\x80\x04}\x94.",
            lambda data: rewritten(data, b'"tries":0', b'"tries":7'),
        ],
        ids=["empty", "cut", "version", "origin", "body", "behind", "huge", "pickle", "shape"],
    )
    async def test_a_record_altered_by_hand_is_a_miss(self, opened, store, change, request):
        await store.put(available())
        await store.close()
        self.alter(ORIGIN, change)
        store = opened()
        if "shape" in request.node.name:
            # Tries without a time since when: of no use, and of no harm.
            record = (await store.get(ORIGIN)).record
            assert record is None or record.copy == available().copy
        else:
            assert (await store.get(ORIGIN)).record is None
        assert [key async for key in self.bare(store).scan_keys()] == [ORIGIN]
        assert await self.bare(store).discard(ORIGIN) is True
        await store.put(unavailable())
        assert (await store.get(ORIGIN)).record == unavailable()


def memory(**kwargs):
    return MemoryStore(max_bytes=2**26, max_size=MAX_SIZE, **kwargs)


class TestMemory(Contract):
    @pytest.fixture
    def make(self):
        return memory


def sqlite(path, **kwargs):
    values = {"max_size": MAX_SIZE, "max_age": 1e9, "max_bytes": 2**30, "timeout": PATIENCE}
    return SQLiteStore(path, **{**values, "clock": time, **kwargs})


class TestSQLite(PersistentContract):
    @pytest.fixture
    def make(self, tmp_path):
        self.path = tmp_path / "robots.sqlite"
        return lambda: sqlite(self.path)

    def execute(self, statement, *values):
        """Do what another program does to the file."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(statement, values).fetchone()

    def alter(self, origin, change):
        (data,) = self.execute("SELECT data FROM records WHERE origin = ?", origin)
        self.execute("UPDATE records SET data = ? WHERE origin = ?", change(data), origin)

    @pytest.mark.parametrize("data", ["CAST(X'ff' AS TEXT)", "'a text'", "5", "2.5"])
    async def test_a_record_of_another_type_is_a_miss(self, opened, store, data):
        await store.put(available())
        await store.put(available(OTHER))
        await store.close()
        self.execute(f"UPDATE records SET data = {data} WHERE origin = '{ORIGIN}'")
        store = opened()
        assert await store.get(ORIGIN) == (None, None)
        assert (await store.get(OTHER)).record == available(OTHER)

    @pytest.mark.parametrize(
        "change",
        ["holder = X'ff'", "taken = 'a text'", "seconds = 'a text'", "seconds = X'ff'"],
    )
    async def test_a_lease_of_another_type_holds_nothing(self, opened, store, change):
        await store.claim(ORIGIN, "a", 1e9)
        await store.close()
        self.execute(f"UPDATE leases SET {change}")
        store = opened()
        assert await store.get(ORIGIN) == (None, None)
        assert (await store.claim(ORIGIN, "b", 30)).holder == "b"

    async def test_texts_that_are_no_utf8_are_no_error(self, opened, store):
        await store.claim(ORIGIN, "a", 1e9)
        origins = {f"https://site-{i}.example" for i in range(1_500)}
        await asyncio.gather(*(store.put(unavailable(origin)) for origin in origins))
        await store.close()
        self.execute("UPDATE leases SET holder = CAST(X'ff' AS TEXT)")
        self.execute("UPDATE records SET origin = CAST(X'ff' AS TEXT) || origin WHERE rowid > 200")
        store = opened()
        assert held(await store.get(ORIGIN)) == (None, "\ufffd")
        found = [key.removeprefix("\ufffd") async for key in self.bare(store).scan_keys()]
        assert sorted(found) == sorted(origins)


class TestRedis(PersistentContract):
    @pytest.fixture
    def make(self, redis_server):
        self.client = redis_server.client
        self.client.flushall()
        from scrapy_rep.stores.redis import RedisStore

        # Keys of others, one of which a pattern made of the prefix without escapes would find.
        self.client.set("robots:record:{https://others.example}", b"x")
        self.client.set("s?*:record:{https://others.example}", b"x")
        values = {"prefix": "[rs]?*:", "max_size": MAX_SIZE, "max_age": 5e6, "timeout": PATIENCE}
        return lambda: RedisStore(redis_server.uri, **values)

    def alter(self, origin, change):
        key = f"[rs]?*:record:{{{origin}}}"
        self.client.set(key, change(self.client.get(key)))

    def keys_not_ours(self, caplog):
        """The keys of which a warning says that another program wrote them."""
        warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        return [re.match("The Redis key '(.*)' was not", text)[1] for text in warned]

    async def test_calls_that_are_made_at_once_go_together(self, store):
        origins = [f"https://site-{i}.example" for i in range(300)]
        before = self.client.info("stats")["total_reads_processed"]
        await asyncio.gather(*(store.put(available(origin)) for origin in origins))
        await asyncio.gather(*(store.get(origin) for origin in origins))
        assert self.client.info("stats")["total_reads_processed"] - before < len(origins)

    async def test_what_is_refused_is_refused_to_who_asked_for_it(self, store):
        await store.put(available())
        memory = self.client.config_get("maxmemory")["maxmemory"]
        self.client.config_set("maxmemory", 1)
        try:
            asked = [store.get(ORIGIN), store.put(available(OTHER)), store.discard(ORIGIN)]
            found, error, dropped = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            self.client.config_set("maxmemory", memory)
        assert found == (available(), None)
        assert isinstance(error, StoreError)
        assert dropped

    async def test_a_lease_of_another_type_is_left_alone(self, opened, caplog):
        key = f"[rs]?*:lease:{{{ORIGIN}}}"
        self.client.rpush(key, "a list")
        store = opened()
        for holder in ("a", "b"):
            assert await store.get(ORIGIN) == (None, None)
            assert held(await store.claim(ORIGIN, holder, 30)) == (None, holder)
            await store.release(ORIGIN, holder)
        await store.put(available(), "a")
        assert await store.get(ORIGIN) == (available(), None)
        assert self.client.lrange(key, 0, -1) == [b"a list"]
        assert self.keys_not_ours(caplog) == [key]

    async def test_pauses_of_another_type_are_left_alone(self, opened, caplog):
        self.client.set("[rs]?*:pauses", "a text")
        store = opened()
        await store.put(available())
        for _ in range(2):
            assert dict(await store.pauses_left()) == {}
            claim = await store.claim(HOST, PAUSE, LONG, force=True)
            assert is_about(claim.lease, PAUSE, LONG)
        # A worker that asks for the lease is told of the pause all the same.
        assert is_about((await store.claim(HOST, "a", LONG)).lease, PAUSE, LONG)
        assert self.client.get("[rs]?*:pauses") == b"a text"
        assert self.keys_not_ours(caplog) == ["[rs]?*:pauses"]

    async def test_pauses_that_are_lost_hold_for_who_asks_for_the_lease(self, store):
        await store.claim(HOST, PAUSE, LONG, force=True)
        self.client.delete("[rs]?*:pauses")
        assert dict(await store.pauses_left()) == {}
        assert (await store.claim(HOST, "a", LONG)).holder == PAUSE
        # Whoever pauses the host again tells all.
        await store.claim(HOST, PAUSE, LONG / 2, force=True)
        assert list(await store.pauses_left()) == [HOST]

    async def test_nothing_is_kept_for_longer_than_it_holds(self, store):
        await store.claim(HOST, PAUSE, LONG, force=True)
        await store.claim(OTHER, PAUSE, 2 * LONG, force=True)
        await store.claim(ORIGIN, "a", LONG)
        await store.put(available())
        ends = {key: self.client.pttl(key) for key in self.client.keys("[[]rs*")}
        assert len(ends) == 5
        assert all(end > 0 for end in ends.values())
        assert 2 * LONG - PATIENCE < ends[b"[rs]?*:pauses"] / 1000 <= 2 * LONG

    async def test_pauses_that_have_ended_are_removed_when_another_begins(self, store):
        await store.claim(HOST, PAUSE, 0.01, force=True)
        await store.claim(ORIGIN, PAUSE, LONG, force=True)
        await sleep(0.05)
        await store.claim(OTHER, PAUSE, LONG, force=True)
        kept = self.client.zrange("[rs]?*:pauses", 0, -1)
        assert sorted(kept) == sorted([ORIGIN.encode(), OTHER.encode()])

    @pytest.mark.parametrize("force", [False, True])
    async def test_a_lease_without_an_end_is_none(self, opened, force):
        key = f"[rs]?*:lease:{{{HOST}}}"
        self.client.set(key, "of another program")
        store = opened()
        assert (await store.get(HOST)).lease is None
        claim = await store.claim(HOST, "a", LONG, force=force)
        assert is_about(claim.lease, "a", LONG)
        assert 0 < self.client.pttl(key) <= LONG * 1000


class TestGuardedSQLite(TestSQLite):
    @pytest.fixture
    def make(self, tmp_path):
        self.path = tmp_path / "robots.sqlite"
        return lambda: GuardedStore(sqlite(self.path), memory(), name="it", timeout=PATIENCE)

    def bare(self, store):
        return store._store


class TestGuardedDown(Contract):
    """A store that can't be used: its guard does by itself what a store in memory does."""

    @pytest.fixture
    def make(self, tmp_path):
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "robots.sqlite"
        return lambda: GuardedStore(sqlite(path), memory(), name="it", timeout=PATIENCE)

    def bare(self, store):
        return store._fallback
