"""What is particular to a file: its versions, its faults, its size, and other processes."""

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.utils.project import data_path

from scrapy_rep.stores import sqlite as module
from scrapy_rep.stores import sqlite_file
from scrapy_rep.stores.base import PAUSE, StoreError
from scrapy_rep.stores.registry import path_of
from scrapy_rep.stores.sqlite_file import FORMAT
from tests.stores import make_databases
from tests.stores.records import ORIGIN, available, unavailable
from tests.stores.test_contract import OTHER, sqlite
from tests.waiting import PATIENCE

pytestmark = pytest.mark.in_asyncio

KILLS = Path(__file__).with_name("kills.py")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robots.sqlite"


def rows(path, *queries):
    """What the last query returns."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for query in queries or ["SELECT origin FROM records"]:
            found = connection.execute(query).fetchall()
        return found


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_relative_path_is_in_the_data_directory_and_others_are_taken_as_they_are(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert path_of("sqlite:///robots.sqlite") == Path(data_path("robots.sqlite")).absolute()
    assert path_of("sqlite:///robots.sqlite") == tmp_path / ".scrapy" / "robots.sqlite"
    assert path_of("sqlite:////var/robots.sqlite") == Path("/var/robots.sqlite")
    assert not (tmp_path / ".scrapy").exists()


async def test_the_file_is_made_when_it_is_first_needed(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "a" / "b" / "robots.sqlite"
    store = sqlite(path)
    assert not path.parent.exists()
    await store.get(ORIGIN)
    assert rows(path, "PRAGMA application_id") == [(FORMAT.application_id,)]
    assert rows(path, "PRAGMA user_version") == [(FORMAT.version,)]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "PRAGMA auto_vacuum") == [(2,)]
    await store.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    again = sqlite(path)
    await again.get(ORIGIN)
    await again.close()
    told = [text for text in caplog.messages if "directory" in text]
    assert told == [f"Made the directory of REP_STORE: {path.parent}"]


async def test_a_file_that_another_crawl_has_written_is_read(path):
    shutil.copy(make_databases.DIRECTORY / f"v{FORMAT.version}.sqlite", path)
    store = sqlite(path, clock=lambda: 1_790_000_100.0)
    for record in make_databases.records():
        assert (await store.get(str(record.origin))).record == record
    await store.close()
    assert len(rows(path)) == len(make_databases.records())


def test_pauses_are_found_without_a_look_at_all_leases(path):
    make_databases.make(path)
    plan = rows(path, "EXPLAIN QUERY PLAN " + module._PAUSES.replace(":now", "0"))
    assert "leases_of_pauses" in plan[0][3]


async def test_pauses_that_cant_be_read_are_none(path):
    store = sqlite(path)
    for key in ("a", "b", "c", "d"):
        await store.claim(key, PAUSE, 1e9)
    await store.close()
    rows(
        path,
        "UPDATE leases SET taken = 'a text' WHERE origin = 'a'",
        "UPDATE leases SET seconds = X'ff' WHERE origin = 'b'",
        "UPDATE leases SET origin = CAST(X'ff' AS TEXT) WHERE origin = 'c'",
    )
    store = sqlite(path)
    assert sorted(await store.pauses_left()) == ["d", "\ufffd"]
    await store.close()


def test_the_version_is_that_of_the_schema(tmp_path):
    """A changed schema gets a new version."""
    schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
    make_databases.make(tmp_path / "now.sqlite")
    then = make_databases.DIRECTORY / f"v{FORMAT.version}.sqlite"
    assert rows(tmp_path / "now.sqlite", schema) == rows(shutil.copy(then, tmp_path), schema)


@pytest.mark.parametrize(("by", "age"), [(1, "a newer"), (-1, "an older")])
async def test_a_file_of_another_version_is_left_alone(path, by, age):
    make_databases.make(path)
    rows(path, f"PRAGMA user_version = {FORMAT.version + by}")
    before = path.read_bytes()
    store = sqlite(path)
    with pytest.raises(StoreError, match=f"{age} version of scrapy-rep; set REP_STORE to"):
        await store.get(ORIGIN)
    with pytest.raises(StoreError, match=f"written by {age} version"):
        await store.put(available())
    await store.close()
    assert path.read_bytes() == before


def make_garbage(path):
    path.write_bytes(b"not a database at all" * 500)


def make_cut(path):
    make_databases.make(path)
    path.write_bytes(path.read_bytes()[:9_000])


def make_overwritten(path):
    if not path.exists():
        make_databases.make(path)
    data = bytearray(path.read_bytes())
    data[4_096:] = os.urandom(len(data) - 4_096)
    path.write_bytes(data)


def make_foreign(path):
    rows(path, "CREATE TABLE customers (name)")


def make_foreign_by_id(path):
    rows(path, "PRAGMA application_id = 77")


def make_altered(path):
    make_databases.make(path)
    rows(path, "ALTER TABLE records RENAME COLUMN data TO body")


def make_schema_without_utf_8(path):
    """Python then fails to decode the message of SQLite."""
    make_databases.make(path)
    path.write_bytes(path.read_bytes().replace(b"leasesleases", b"\xefeases\xefeases"))


DAMAGED = [make_schema_without_utf_8, make_cut, make_overwritten]
FOREIGN = [make_garbage, make_foreign, make_foreign_by_id]


@pytest.mark.parametrize("make", DAMAGED, ids=lambda make: make.__name__)
async def test_a_damaged_file_is_replaced_by_a_new_one(path, caplog, make):
    make(path)
    store = sqlite(path)
    assert (await store.get("https://site-0.example")).record is None
    await store.put(available())
    assert (await store.get(ORIGIN)).record == available()
    await store.close()
    (warning,) = warnings(caplog)
    assert warning.startswith(f"{path} is damaged")
    assert warning.endswith("): it was deleted, and a new file is made")
    assert rows(path) == [(ORIGIN,)]


@pytest.mark.parametrize("make", [*FOREIGN, make_altered], ids=lambda make: make.__name__)
async def test_a_file_of_another_program_is_refused_and_stays(path, make):
    make(path)
    before = path.read_bytes()
    store = sqlite(path)
    says = "no such column" if make is make_altered else "another program.*; set REP_STORE to"
    with pytest.raises(StoreError, match=says):
        await store.get(ORIGIN)
    with pytest.raises(StoreError):
        await store.put(available())
    await store.close()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("records", [1, 300])
@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__)
async def test_a_file_that_is_moved_over_an_open_one_stays(path, make, records):
    """The write-ahead log of the open one must not be applied to it."""
    store = sqlite(path)
    for index in range(records):
        await store.put(available(f"https://site-{index}.example"))
    other = path.with_name("other")
    make(other)
    before = other.read_bytes()
    other.rename(path)
    for each in (store, sqlite(path)):
        with pytest.raises(StoreError, match="another program"):
            await each.get(ORIGIN)
        with pytest.raises(StoreError, match="another program"):
            await each.put(available())
        await each.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [*DAMAGED, *FOREIGN], ids=lambda make: make.__name__)
async def test_a_file_that_is_none_of_ours_is_left_alone_by_who_only_looks(path, make):
    make(path)
    before = path.read_bytes()
    store = sqlite(path, deletes_damaged=False)
    with pytest.raises(StoreError):
        await store.get("https://site-0.example")
    with pytest.raises(StoreError):
        await store.prune()
    with pytest.raises(StoreError):
        [key async for key in store.scan_keys()]
    with pytest.raises(StoreError):
        await store.discard("https://site-0.example")
    await store.close()
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == before


async def test_a_file_that_breaks_while_it_is_open_is_replaced(path, caplog):
    store = sqlite(path)
    for index in range(300):
        await store.put(available(f"https://site-{index}.example"))
    rows(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(os.urandom(path.stat().st_size - 4_096))
    for index in range(300):
        await store.get(f"https://site-{index}.example")
        await store.put(available(f"https://site-{index}.example"))
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert len(rows(path)) > 250
    assert len(warnings(caplog)) == 1


async def test_of_many_that_find_a_damaged_file_one_deletes_it(path, caplog):
    make_overwritten(path)
    stores = [sqlite(path) for _ in range(8)]
    await asyncio.gather(
        *(store.put(available(f"https://{i}.example")) for i, store in enumerate(stores))
    )
    assert len(warnings(caplog)) == 1
    for store in stores:
        await store.close()
    assert len(rows(path)) == 8


async def test_who_still_has_the_file_that_was_renamed_does_no_harm_to_the_new_one(path):
    """SQLite's own log of the new file must not go when the old one is closed."""
    old = sqlite(path)
    await old.put(available("https://old.example"))
    connection = sqlite3.connect(path)  # another program's, which knows nothing of this
    connection.execute("SELECT * FROM records").fetchall()
    for suffix in ("-wal", "-shm", ""):
        Path(f"{path}{suffix}").rename(f"{path}.bad{suffix}")
    new = sqlite(path)
    await new.put(available("https://new.example"))
    connection.close()
    await old.put(available("https://late.example"))
    await old.close()
    await new.put(available("https://newer.example"))
    again = sqlite(path)
    for name in ("new", "late", "newer"):
        assert (await again.get(f"https://{name}.example")).record is not None
    for store in (new, again):
        await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_file_that_was_removed_is_made_again(path):
    store = sqlite(path)
    await store.put(available())
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    assert (await store.get(ORIGIN)).record is None
    await store.put(unavailable())
    await store.close()
    assert rows(path) == [(ORIGIN,)]


async def test_damaged_files_one_after_the_other_are_not_deleted_for_ever(path):
    store = sqlite(path)
    make_overwritten(path)
    await store.put(available())
    await store.close()
    make_overwritten(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="damaged"):
        await store.put(available())
    await store.close()
    assert path.read_bytes() == before


async def test_old_records_go_and_the_file_gets_smaller(path, monkeypatch):
    monkeypatch.setattr(module, "_PRUNE_ROWS", 100)
    monkeypatch.setattr(module, "_PRUNE_EVERY", 0)
    now = 1_000.0
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    body, sites = os.urandom(5_000), [f"https://site-{i}.example" for i in range(1_000)]
    await asyncio.gather(*(store.put(available(site, body)) for site in sites))
    await store.claim(ORIGIN, "a", 30)
    await store.close()
    large = path.stat().st_size
    now += 499
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    await store.put(available("https://new.example"))
    assert len(rows(path)) == 1_001
    now += 2
    for _ in range(12):
        await store.put(available("https://new.example"))
    await store.close()
    assert rows(path) == [("https://new.example",)]
    assert rows(path, "SELECT * FROM leases") == []
    assert path.stat().st_size < large / 20


async def test_all_that_is_too_old_goes_at_once(path, monkeypatch):
    monkeypatch.setattr(module, "_PRUNE_ROWS", 100)
    now = 1_000.0
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    origins = [f"https://site-{number}.example" for number in range(350)]
    await asyncio.gather(*(store.put(available(origin)) for origin in origins))
    now += 501
    await store.put(available("https://new.example"))
    # The writer takes some by itself, when who wrote has been answered.
    assert len(rows(path)) > 1
    assert await store.prune() > 0
    assert rows(path) == [("https://new.example",)]
    await store.close()


async def test_records_from_a_future_that_never_comes_go_too(path, monkeypatch):
    monkeypatch.setattr(module, "_PRUNE_EVERY", 0)
    now = 1e9
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    await store.put(available("https://future.example"))
    now = 1_000.0
    await store.put(available())
    await store.put(available())
    await store.close()
    assert rows(path) == [(ORIGIN,)]


async def test_the_file_stays_as_small_as_it_is_told_to(path, monkeypatch):
    monkeypatch.setattr(module, "_PRUNE_ROWS", 50)
    monkeypatch.setattr(module, "_PRUNE_AFTER", 50)
    bound = 2**20
    store = sqlite(path, max_bytes=bound)
    for start in range(0, 1_000, 50):
        sites = [f"https://site-{i}.example" for i in range(start, start + 50)]
        await asyncio.gather(*(store.put(available(site, os.urandom(3_000))) for site in sites))
    await store.close()
    kept = [origin for (origin,) in rows(path)]
    assert path.stat().st_size < 1.5 * bound
    assert 100 < len(kept) < 400
    assert "https://site-999.example" in kept
    assert "https://site-0.example" not in kept


async def test_a_locked_database_is_an_error_and_not_a_wait_without_end(path):
    store = sqlite(path, timeout=0.3)
    await store.put(available())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked"):
            await store.put(unavailable())
        assert (await store.get(ORIGIN)).record == available()
    await store.put(unavailable())
    assert (await store.get(ORIGIN)).record == unavailable()
    await store.close()


async def test_a_file_without_a_write_ahead_log_is_waited_for_as_long(path):
    make_databases.make(path)
    rows(path, "PRAGMA journal_mode = DELETE")
    store = sqlite(path, timeout=0.3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="in use by another process"):
            await store.get(ORIGIN)
    await store.put(available())
    await store.close()
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


async def test_a_lease_taken_by_a_clock_that_was_ahead_is_none(path):
    now = 10_000.0
    store = sqlite(path, clock=lambda: now)
    await store.claim(ORIGIN, "a", 30)
    await store.claim(OTHER, PAUSE, 30)
    now = 1_000.0
    assert (await store.get(ORIGIN)).holder is None
    assert dict(await store.pauses_left()) == {}
    assert (await store.claim(ORIGIN, "b", 30)).holder == "b"
    await store.close()


async def test_a_clock_read_a_little_before_a_lease_was_taken_takes_it_from_nobody(path):
    first, second = sqlite(path, clock=lambda: 1_000.0), sqlite(path, clock=lambda: 999.99)
    await first.claim(ORIGIN, "a", 30)
    # Its first write is followed by a look for what is too old.
    assert (await second.claim(OTHER, "b", 30)).holder == "b"
    assert (await second.get(ORIGIN)).holder == "a"
    assert (await second.claim(ORIGIN, "b", 30)).holder == "a"
    await first.close()
    await second.close()


async def test_of_stores_that_make_the_file_at_the_same_moment_one_gets_the_lease(tmp_path):
    for round_ in range(10):
        stores = [sqlite(tmp_path / f"{round_}.sqlite") for _ in range(4)]
        for origin in (ORIGIN, OTHER):  # the second while they look for what is too old
            claims = await asyncio.gather(
                *(store.claim(origin, f"{i}", 30) for i, store in enumerate(stores))
            )
            assert len({claim.holder for claim in claims}) == 1
        for store in stores:
            await store.close()


@pytest.mark.parametrize("where", ["file.txt/robots.sqlite", "directory"])
async def test_a_place_where_no_file_can_be_is_an_error(tmp_path, where):
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "directory").mkdir()
    store = sqlite(tmp_path / where)
    for _ in range(2):
        with pytest.raises(StoreError):
            await store.get(ORIGIN)
        with pytest.raises(StoreError):
            await store.put(available())
    await store.close()


async def test_a_full_disk_is_an_error_and_what_was_written_stays(path, monkeypatch):
    store = sqlite(path)
    await store.put(available())
    # As a disk that has no place for another page.
    pages = rows(path, "PRAGMA page_count")[0][0]
    original = sqlite_file.DatabaseFile.open

    def connect(file):
        connection = original(file)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite_file.DatabaseFile, "open", connect)
    await store.close()
    with pytest.raises(StoreError, match="full"):
        await store.put(available("https://large.example", os.urandom(100_000)))
    assert (await store.get(ORIGIN)).record == available()
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what it kills")
def test_kill_in_mid_write_loses_nothing_that_was_said_to_be_written(path):
    """Fifty times, at moments that wander through the writes."""
    run = subprocess.run(
        [sys.executable, str(KILLS), str(path), "50"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    print(f"50 kills, {result['written']} records said to be written, {len(result['lost'])} lost")
    assert result["written"] >= 1_000
    assert result["lost"] == []
    assert result["checks"] == ["ok"]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert not Path(f"{path}.lock").exists(), "none was found to be damaged"


async def test_several_processes_write_at_once(path):
    program = [sys.executable, str(KILLS), str(path)]
    writers = [subprocess.Popen([*program, name], stdout=subprocess.DEVNULL) for name in "abcd"]
    assert [writer.wait(PATIENCE) for writer in writers] == [0] * 4
    assert len(rows(path)) == 4 * 20 * 20
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
