"""The guard of a store whose file can't be used for a while: what holds meanwhile, and afterwards."""

import logging
import sqlite3
from contextlib import closing

import pytest

from scrapy_rep.stores.base import PAUSE
from scrapy_rep.stores.guarded import GuardedStore
from tests.stores.records import ORIGIN, available, unavailable, unreachable
from tests.stores.test_contract import HOST, LONG, OTHER, is_about, memory, sqlite
from tests.waiting import PATIENCE

pytestmark = pytest.mark.in_asyncio


class Disk:
    """A directory that can be taken away, and the stores of two workers in it."""

    def __init__(self, directory):
        self.directory = directory / "data"
        self.directory.mkdir()
        self.now = 1_000.0
        path = self.directory / "robots.sqlite"
        self.path = path
        self.store, self.other = (
            GuardedStore(
                sqlite(path, timeout=0),
                memory(),
                name="it",
                timeout=PATIENCE,
                clock=lambda: self.now,
            )
            for _ in range(2)
        )

    def remove(self):
        self.directory.rename(self.directory.with_name("elsewhere"))
        self.directory.write_text("no directory any more")

    def mount(self):
        self.directory.unlink()
        self.directory.with_name("elsewhere").rename(self.directory)
        self.now += 60  # the guard tries again

    async def close(self):
        for store in (self.store, self.other):
            await store.close()


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path)


async def test_the_leases_of_the_store_count_again_when_it_is_back(disk):
    await disk.store.claim(HOST, "a", LONG)
    disk.remove()
    # Not known to be another worker's: who can't ask is not held up.
    assert (await disk.other.claim(HOST, "b", LONG)).holder == "b"
    disk.mount()
    assert is_about((await disk.other.claim(HOST, "b", 2 * LONG)).lease, "a", LONG)
    assert (await disk.other.get(HOST)).holder == "a"
    await disk.close()


async def test_pauses_of_the_store_and_of_this_process_hold_together(disk):
    await disk.store.claim("stored", PAUSE, 2 * LONG, force=True)
    await disk.store.claim("longer here", PAUSE, LONG, force=True)
    await disk.store.claim("longer there", PAUSE, 5 * LONG, force=True)
    disk.remove()
    assert dict(await disk.other.pauses_left()) == {}
    for key, seconds in (("mine", LONG), ("longer here", 4 * LONG), ("longer there", LONG)):
        assert (await disk.other.claim(key, PAUSE, seconds, force=True)).holder == PAUSE
    assert set(await disk.other.pauses_left()) == {"mine", "longer here", "longer there"}
    disk.mount()
    pauses = await disk.other.pauses_left()
    hours = {key: round((left + PATIENCE) / LONG) for key, left in pauses.items()}
    assert hours == {"stored": 2, "mine": 1, "longer here": 4, "longer there": 5}
    await disk.close()


async def test_a_lease_that_was_given_while_the_store_was_down_can_be_ended_after_it(disk):
    disk.remove()
    await disk.store.claim(HOST, "a", LONG)
    disk.mount()
    assert (await disk.store.get(HOST)).holder == "a"
    await disk.store.release(HOST, "a")
    assert (await disk.store.get(HOST)).lease is None
    assert (await disk.store.claim(HOST, "b", LONG)).holder == "b"
    await disk.close()


async def test_records_that_were_kept_are_written_when_the_store_is_back(disk):
    await disk.store.put(available())
    disk.remove()
    await disk.store.put(unavailable())
    await disk.store.put(available(OTHER))
    assert (await disk.other.get(ORIGIN)).record is None
    disk.mount()
    await disk.store.put(available("https://third.example"))
    for origin, record in ((ORIGIN, unavailable()), (OTHER, available(OTHER))):
        assert await disk.other.get(origin) == (record, None)
    await disk.close()


@pytest.mark.parametrize("is_back_before", [True, False])
async def test_a_failed_fetch_keeps_the_copy_that_could_not_be_read(disk, is_back_before):
    good = available(at=2.0)
    await disk.store.put(good)
    disk.remove()
    assert (await disk.store.claim(ORIGIN, "a", LONG)).record is None
    if is_back_before:
        disk.mount()
    await disk.store.put(unreachable(at=9.0), "a")
    assert (await disk.store.get(ORIGIN)).record.last == unreachable().last
    if not is_back_before:
        disk.mount()
        assert (await disk.store.claim(ORIGIN, "b", LONG)).record.copy == good.copy
        await disk.store.release(ORIGIN, "b")
    await disk.store.close()
    record = unreachable(copy=good.copy)
    assert await disk.other.get(ORIGIN) == (record, None)
    await disk.other.close()


async def test_a_record_is_stored_under_the_lease_from_before_an_outage(disk):
    assert (await disk.store.claim(ORIGIN, "a", LONG)).holder == "a"
    disk.remove()
    await disk.store.put(available(), "a")
    disk.mount()
    await disk.store.close()
    assert await disk.other.get(ORIGIN) == (available(), None)
    await disk.other.close()


async def test_a_claim_that_succeeds_does_not_leave_records_in_memory(disk):
    disk.remove()
    await disk.store.put(available())
    disk.mount()
    assert (await disk.store.claim(OTHER, "a", LONG)).holder == "a"
    await disk.store.put(available(OTHER), "a")
    assert await disk.other.get(ORIGIN) == (available(), None)
    await disk.close()


async def test_each_outage_is_logged(disk, caplog):
    caplog.set_level(logging.INFO)
    for _ in range(2):
        disk.remove()
        for _ in range(2):
            await disk.store.get(ORIGIN)
            disk.now += 60
        disk.mount()
        await disk.store.get(ORIGIN)
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.WARNING, logging.INFO] * 2
    await disk.close()


async def test_what_can_be_read_is_read_while_nothing_can_be_written(disk):
    await disk.store.put(available())
    await disk.store.claim(OTHER, PAUSE, 2 * LONG, force=True)
    with closing(sqlite3.connect(disk.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        claim = await disk.store.claim(ORIGIN, "a", LONG)
        assert claim.record == available()
        assert is_about(claim.lease, "a", LONG)
        assert (await disk.store.claim(HOST, PAUSE, LONG, force=True)).holder == PAUSE
        assert set(await disk.store.pauses_left()) == {HOST, OTHER}
    disk.now += 60
    await disk.close()
