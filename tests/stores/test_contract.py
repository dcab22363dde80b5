"""What every store does, whatever it is made of."""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from contextlib import closing
from time import time

import pytest

from scrapy_rep.protocol.record import VERSION
from scrapy_rep.stores.base import ForeignKeyError, StoreError
from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite import SQLiteStore
from scrapy_rep.utils.concurrency import sleep
from tests.running import in_asyncio
from tests.stores.records import ORIGIN, available, every, unavailable, unreachable
from tests.waiting import PATIENCE

MAX_SIZE = 512_000
LONG = 3600
"""Seconds between two turns that no test waits for."""
OTHER = "http://example.com:8080"


def rewritten(data, old, new):
    """A record with another text."""
    return data[:1] + zlib.compress(zlib.decompress(data[1:]).replace(old, new))


class Contract:
    """Inherited by the tests of each store, which say how to open one."""

    persistent = False
    """Whether another store, opened in the same place, sees what this one holds."""

    @pytest.fixture
    def opened(self):
        raise NotImplementedError

    def bare(self, store):
        """Return what the commands look into."""
        return store

    @in_asyncio
    async def test_what_is_put_is_got(self, opened):
        store = opened()
        assert await store.get(ORIGIN) == (None, None)
        for record in every():
            await store.put(record)
            assert await store.get(ORIGIN) == (record, None)
        assert await store.get(OTHER) == (None, None)
        await store.close()

    @in_asyncio
    async def test_it_can_be_closed_unused_closed_twice_and_used_again(self, opened):
        store = opened()
        await store.close()
        await store.put(available())
        await store.close()
        await store.close()
        expected = available() if self.persistent else None
        assert (await store.get(ORIGIN)).record == expected
        await store.close()

    @in_asyncio
    async def test_many_at_once(self, opened):
        store = opened()
        origins = [f"https://site-{i}.example" for i in range(300)]
        await asyncio.gather(*(store.put(available(origin)) for origin in origins))
        held = await asyncio.gather(*(store.get(origin) for origin in origins))
        assert [each.record for each in held] == [available(origin) for origin in origins]
        await store.close()

    @in_asyncio
    async def test_a_lease_is_given_once_and_ends_when_it_is_released(self, opened):
        store = opened()
        assert (await store.claim(ORIGIN, "a", 30)).holder == "a"
        assert (await store.claim(ORIGIN, "b", 30)).holder == "a"
        assert (await store.get(ORIGIN)).holder == "a"
        assert (await store.claim(OTHER, "b", 30)).holder == "b"
        await store.release(ORIGIN, "b")
        assert (await store.get(ORIGIN)).holder == "a"
        await store.release(ORIGIN, "a")
        assert (await store.get(ORIGIN)).holder is None
        assert (await store.claim(ORIGIN, "b", 30)).holder == "b"
        await store.close()

    @in_asyncio
    async def test_a_lease_ends_by_itself(self, opened):
        store = opened()
        assert (await store.claim(ORIGIN, "a", 0.2)).holder == "a"
        await sleep(0.25)
        assert (await store.get(ORIGIN)).holder is None
        assert (await store.claim(ORIGIN, "b", 30)).holder == "b"
        await store.release(ORIGIN, "a")
        assert (await store.get(ORIGIN)).holder == "b"
        await store.close()

    @in_asyncio
    async def test_a_record_ends_the_lease_of_who_puts_it_alone(self, opened):
        store = opened()
        await store.claim(ORIGIN, "a", 30)
        await store.put(available(), "b")
        assert await store.get(ORIGIN) == (available(), "a")
        await store.put(unavailable(), "a")
        assert await store.get(ORIGIN) == (unavailable(), None)
        await store.close()

    @in_asyncio
    async def test_who_gets_the_lease_sees_the_record_of_the_last_holder(self, opened):
        store = opened()
        await store.claim(ORIGIN, "a", 30)
        record = unreachable()
        held = await asyncio.gather(store.put(record, "a"), store.claim(ORIGIN, "b", 30))
        assert held[1] in {(record, "b"), (None, "a")}
        assert await store.claim(ORIGIN, "b", 30) == (record, "b")
        await store.close()

    @in_asyncio
    async def test_one_of_many_gets_the_lease(self, opened):
        stores = [opened() for _ in range(4)] if self.persistent else [opened()] * 4
        for round_ in range(10):
            origin = f"https://site-{round_}.example"
            claims = await asyncio.gather(
                *(store.claim(origin, f"{i}", 30) for i, store in enumerate(stores))
            )
            assert len({claim.holder for claim in claims}) == 1
        for store in stores:
            await store.close()

    @in_asyncio
    async def test_turns_are_as_far_apart_as_is_asked_for(self, opened):
        store = opened()
        first = await store.reserve(ORIGIN, LONG)
        others = [await store.reserve(ORIGIN, LONG) for _ in range(3)]
        assert first.seconds < LONG
        assert [turn.number - first.number for turn in others] == [
            LONG * 1e6 * n for n in (1, 2, 3)
        ]
        assert others[2].seconds > 2 * LONG
        assert (await store.reserve(OTHER, LONG)).seconds < LONG
        await store.close()

    @in_asyncio
    async def test_the_last_turn_may_be_given_back_and_no_other(self, opened):
        store = opened()
        turns = [await store.reserve(ORIGIN, LONG) for _ in range(3)]
        again = await store.reserve(ORIGIN, LONG, turns[2].number)
        assert again.number == turns[2].number
        later = await store.reserve(ORIGIN, LONG, turns[1].number)
        assert later.number == turns[2].number + LONG * 1e6
        await store.close()

    @in_asyncio
    async def test_many_ask_at_once_and_each_gets_a_turn_of_its_own(self, opened):
        stores = [opened() for _ in range(3)] if self.persistent else [opened()] * 3
        origins = [f"https://site-{n}.example" for n in range(100)]
        asked = [store.reserve(origin, LONG) for store in stores for origin in origins]
        turns = await asyncio.gather(*asked)
        for n in range(len(origins)):
            first, second, third = sorted(turn.number for turn in turns[n :: len(origins)])
            assert third - second == second - first == LONG * 1e6
        for store in stores:
            await store.close()

    @in_asyncio
    async def test_a_turn_that_is_over_delays_nobody(self, opened):
        store = opened()
        await store.reserve(ORIGIN, 0.01)
        await sleep(0.05)
        before = await store.reserve(ORIGIN, LONG)
        assert before.seconds < LONG
        await store.close()

    @in_asyncio
    async def test_all_origins_are_listed_across_pages(self, opened):
        store = opened()
        assert [key async for key in self.bare(store).scan_keys()] == []
        origins = {f"https://site-{i}.example" for i in range(2_500)}
        await asyncio.gather(*(store.put(unavailable(origin)) for origin in origins))
        await store.claim("https://leased.example", "a", 30)
        found = [key async for key in self.bare(store).scan_keys()]
        assert set(found) == origins
        assert len(found) == len(origins)
        await store.close()

    @in_asyncio
    async def test_a_dropped_record_is_gone_and_its_lease_stays(self, opened):
        store = opened()
        await store.put(available())
        await store.put(available(OTHER))
        await store.claim(ORIGIN, "a", 30)
        assert await self.bare(store).discard(ORIGIN) is True
        assert await self.bare(store).discard(ORIGIN) is False
        assert await store.get(ORIGIN) == (None, "a")
        assert [key async for key in self.bare(store).scan_keys()] == [OTHER]
        await store.put(unavailable(), "a")
        assert await store.get(ORIGIN) == (unavailable(), None)
        await store.close()

    @in_asyncio
    async def test_nothing_is_pruned_within_the_bounds(self, opened):
        store = opened()
        await store.put(available())
        assert await self.bare(store).prune() == 0
        assert (await store.get(ORIGIN)).record == available()
        await store.close()


class PersistentContract(Contract):
    """What a store does whose records outlive it."""

    persistent = True

    def alter(self, origin, change):
        """Change the bytes of a record behind the store's back."""
        raise NotImplementedError

    def forge_turn(self, made, after):
        """Write a turn of ORIGIN behind the store's back, in microseconds of its clock."""
        raise NotImplementedError

    @in_asyncio
    async def test_a_clock_that_was_set_back_makes_nobody_wait_for_it(self, opened):
        store = opened()
        await store.reserve(ORIGIN, LONG)
        self.forge_turn(made=2**52, after=LONG * 10**6)
        assert LONG - 1 < (await store.reserve(ORIGIN, LONG)).seconds < 2 * LONG
        assert 2 * LONG - 1 < (await store.reserve(ORIGIN, LONG)).seconds < 3 * LONG
        await store.close()

    @in_asyncio
    async def test_what_is_put_outlives_the_store(self, opened):
        store = opened()
        await store.put(available())
        await store.put(unavailable(OTHER))
        await store.close()
        store = opened()
        assert (await store.get(ORIGIN)).record == available()
        assert (await store.get(OTHER)).record == unavailable(OTHER)
        await store.close()

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
    @in_asyncio
    async def test_a_record_altered_by_hand_is_a_miss(self, opened, change, request):
        store = opened()
        await store.put(available())
        await store.close()
        self.alter(ORIGIN, change)
        store = opened()
        if "shape" in request.node.name:
            # Tries without a time since when: of no use, and of no harm.
            held = await store.get(ORIGIN)
            assert held.record is None or held.record.copy == available().copy
        else:
            assert (await store.get(ORIGIN)).record is None
        assert [key async for key in self.bare(store).scan_keys()] == [ORIGIN]
        assert await self.bare(store).discard(ORIGIN) is True
        await store.put(unavailable())
        assert (await store.get(ORIGIN)).record == unavailable()
        await store.close()


def memory(**kwargs):
    return MemoryStore(max_bytes=2**26, max_size=MAX_SIZE, **kwargs)


class TestMemory(Contract):
    @pytest.fixture
    def opened(self):
        return memory


def sqlite(path, **kwargs):
    values = {"max_size": MAX_SIZE, "max_age": 1e9, "max_bytes": 2**30, "timeout": PATIENCE}
    return SQLiteStore(path, **{**values, "clock": time, **kwargs})


class TestSQLite(PersistentContract):
    @pytest.fixture
    def opened(self, tmp_path):
        self.path = tmp_path / "robots.sqlite"
        return lambda: sqlite(self.path)

    def alter(self, origin, change):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            query = "SELECT data FROM records WHERE origin = ?"
            (data,) = connection.execute(query, (origin,)).fetchone()
            query = "UPDATE records SET data = ? WHERE origin = ?"
            connection.execute(query, (change(data), origin))

    @pytest.mark.parametrize("data", ["CAST(X'ff' AS TEXT)", "'a text'", "5", "2.5"])
    @in_asyncio
    async def test_a_record_of_another_type_is_a_miss(self, opened, data):
        store = opened()
        await store.put(available())
        await store.put(available(OTHER))
        await store.close()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE records SET data = {data} WHERE origin = '{ORIGIN}'")
        store = opened()
        assert await store.get(ORIGIN) == (None, None)
        assert (await store.get(OTHER)).record == available(OTHER)
        await store.close()

    @pytest.mark.parametrize(
        "change",
        ["holder = X'ff'", "taken = 'a text'", "seconds = 'a text'", "seconds = X'ff'"],
    )
    @in_asyncio
    async def test_a_lease_of_another_type_holds_nothing(self, opened, change):
        store = opened()
        await store.claim(ORIGIN, "a", 1e9)
        await store.close()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE leases SET {change}")
        store = opened()
        assert await store.get(ORIGIN) == (None, None)
        assert (await store.claim(ORIGIN, "b", 30)).holder == "b"
        await store.close()

    @in_asyncio
    async def test_texts_that_are_no_utf8_are_no_error(self, opened):
        store = opened()
        await store.claim(ORIGIN, "a", 1e9)
        origins = {f"https://site-{i}.example" for i in range(1_500)}
        await asyncio.gather(*(store.put(unavailable(origin)) for origin in origins))
        await store.close()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("UPDATE leases SET holder = CAST(X'ff' AS TEXT)")
            connection.execute(
                "UPDATE records SET origin = CAST(X'ff' AS TEXT) || origin WHERE rowid > 200"
            )
        store = opened()
        assert await store.get(ORIGIN) == (None, "\ufffd")
        found = [key.removeprefix("\ufffd") async for key in self.bare(store).scan_keys()]
        assert sorted(found) == sorted(origins)
        await store.close()

    def forge_turn(self, made, after):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("UPDATE turns SET made = ?, next = ?", (made, made + after))


class TestRedis(PersistentContract):
    @pytest.fixture
    def opened(self, redis_server):
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

    @in_asyncio
    async def test_calls_that_are_made_at_once_go_together(self, opened):
        store = opened()
        origins = [f"https://site-{i}.example" for i in range(300)]
        before = self.client.info("stats")["total_reads_processed"]
        await asyncio.gather(*(store.put(available(origin)) for origin in origins))
        await asyncio.gather(*(store.get(origin) for origin in origins))
        assert self.client.info("stats")["total_reads_processed"] - before < len(origins)
        await store.close()

    @in_asyncio
    async def test_what_is_refused_is_refused_to_who_asked_for_it(self, opened):
        store = opened()
        await store.put(available())
        memory = self.client.config_get("maxmemory")["maxmemory"]
        self.client.config_set("maxmemory", 1)
        try:
            asked = [store.get(ORIGIN), store.put(available(OTHER)), store.discard(ORIGIN)]
            held, error, dropped = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            self.client.config_set("maxmemory", memory)
        assert held == (available(), None)
        assert isinstance(error, StoreError)
        assert dropped
        await store.close()

    @in_asyncio
    async def test_a_lease_of_another_type_is_left_alone(self, opened, caplog):
        key = f"[rs]?*:lease:{{{ORIGIN}}}"
        self.client.rpush(key, "a list")
        store = opened()
        for holder in ("a", "b"):
            assert await store.get(ORIGIN) == (None, None)
            assert await store.claim(ORIGIN, holder, 30) == (None, holder)
            await store.release(ORIGIN, holder)
        await store.put(available(), "a")
        assert await store.get(ORIGIN) == (available(), None)
        assert self.client.lrange(key, 0, -1) == [b"a list"]
        warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert [text.partition(" was not")[0] for text in warned] == [f"The Redis key '{key}'"]
        await store.close()

    def forge_turn(self, made, after):
        self.client.set(f"[rs]?*:turn:{{{ORIGIN}}}", f"{made} {made + after}")

    @pytest.mark.parametrize("value", [b"", b"x", b"1", b"1 2 3", b"-1 x"])
    @in_asyncio
    async def test_a_turn_that_cant_be_read_is_none(self, opened, value):
        store = opened()
        self.client.set(f"[rs]?*:turn:{{{ORIGIN}}}", value)
        assert (await store.reserve(ORIGIN, LONG)).seconds < LONG
        await store.close()

    @in_asyncio
    async def test_a_turn_of_another_type_is_an_error_of_that_origin_alone(self, opened):
        store = opened()
        self.client.rpush(f"[rs]?*:turn:{{{ORIGIN}}}", b"a list")
        asked = [store.reserve(origin, LONG) for origin in (OTHER, ORIGIN, OTHER)]
        first, error, second = await asyncio.gather(*asked, return_exceptions=True)
        assert second.number - first.number == LONG * 1e6
        assert isinstance(error, ForeignKeyError)
        await store.close()


class TestGuardedSQLite(TestSQLite):
    @pytest.fixture
    def opened(self, tmp_path):
        self.path = tmp_path / "robots.sqlite"
        return lambda: GuardedStore(sqlite(self.path), memory(), name="it", timeout=PATIENCE)

    def bare(self, store):
        return store._store
