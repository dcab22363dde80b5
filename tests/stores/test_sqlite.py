"""What is particular to a file: its versions, its faults, its size, and other processes."""

import logging
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.utils.project import data_path

from scrapy_rep.stores import sqlite as module
from scrapy_rep.stores.base import PAUSE, StoreError
from scrapy_rep.stores.sqlite import FORMAT
from scrapy_rep.stores.uri import path_of
from tests.sql import execute
from tests.stores import make_databases
from tests.stores.records import ORIGIN, available, unavailable
from tests.stores.test_contract import OTHER, at_once, claim, record, sqlite, write


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robots.sqlite"


def origins(path):
    return [origin for (origin,) in execute(path, "SELECT origin FROM records ORDER BY written")]


def test_a_relative_path_is_in_the_data_directory_and_others_are_taken_as_they_are(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert path_of("sqlite:///robots.sqlite") == Path(data_path("robots.sqlite")).absolute()
    assert path_of("sqlite:///robots.sqlite?timeout=1") == tmp_path / ".scrapy" / "robots.sqlite"
    assert path_of("sqlite:////var/robots.sqlite") == Path("/var/robots.sqlite")
    assert not (tmp_path / ".scrapy").exists()


def test_the_file_is_made_when_it_is_first_needed(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "a" / "b" / "robots.sqlite"
    store = sqlite(path)
    assert store.peek([ORIGIN]) is None
    assert not path.parent.exists()
    assert record(store) is None
    assert execute(path, "PRAGMA application_id") == [(FORMAT.application_id,)]
    assert execute(path, "PRAGMA user_version") == [(FORMAT.version,)]
    assert execute(path, "PRAGMA journal_mode") == [("wal",)]
    store.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    again = sqlite(path)
    assert record(again) is None
    again.close()
    told = [text for text in caplog.messages if "directory" in text]
    assert told == [f"Made the directory of REP_STORE: {path.parent}"]


def test_a_file_that_another_crawl_has_written_is_read(path):
    shutil.copy(make_databases.DIRECTORY / f"v{FORMAT.version}.sqlite", path)
    store = sqlite(path, clock=lambda: 1_790_000_100.0)
    for each in make_databases.records():
        assert record(store, str(each.origin)) == each
    store.close()
    assert len(origins(path)) == len(make_databases.records())


def test_pauses_are_found_without_a_look_at_all_leases(path):
    make_databases.make(path)
    plan = execute(path, "EXPLAIN QUERY PLAN " + module._PAUSES.replace(":now", "0"))
    assert "leases_of_pauses" in plan[0][3]
    plan = execute(path, "EXPLAIN QUERY PLAN " + module._WORKERS.replace(":now", "0"))
    assert "SEARCH" in plan[0][3]


def test_the_version_is_that_of_the_schema(tmp_path):
    """A changed schema gets a new version."""
    schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
    make_databases.make(tmp_path / "now.sqlite")
    then = make_databases.DIRECTORY / f"v{FORMAT.version}.sqlite"
    assert execute(tmp_path / "now.sqlite", schema) == execute(shutil.copy(then, tmp_path), schema)


def after(*queries, ours=True):
    """A function that makes a file, ours or that of another program, with the queries made in it."""

    def make(path):
        if ours:
            make_databases.make(path)
        for query in queries:
            execute(path, query)

    return make


def changed(change):
    """A function that makes a file of ours whose bytes are changed."""

    def make(path):
        make_databases.make(path)
        path.write_bytes(change(path.read_bytes()))

    return make


def content_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


OTHER_FILE = "; delete it, or set REP_STORE to another file"
FOREIGN = "it is of another program, or of another version.*; set REP_STORE to another file"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (after(f"PRAGMA user_version = {FORMAT.version + 1}"), FOREIGN),
        (after(f"PRAGMA user_version = {FORMAT.version - 1}"), FOREIGN),
        (after("CREATE TABLE customers (name)", ours=False), FOREIGN),
        (after("PRAGMA application_id = 77", ours=False), FOREIGN),
        # Python then fails to decode the message of SQLite.
        (
            changed(lambda data: data.replace(b"leasesleases", b"\xefeases\xefeases")),
            f"it is damaged .its schema is not valid UTF-8.{OTHER_FILE}",
        ),
        (changed(lambda data: data[:9_000]), f"it is damaged.*{OTHER_FILE}"),
        (changed(lambda data: data[:4_096] + os.urandom(8_192)), f"it is damaged.*{OTHER_FILE}"),
        (changed(lambda _: b"no database" * 999), f"it is damaged, or of another.*{OTHER_FILE}"),
    ],
    ids=["newer", "older", "foreign", "foreign by id", "no UTF-8", "cut", "overwritten", "garbage"],
)
def test_a_file_that_is_not_ours_or_damaged_is_refused_and_stays(path, make, says):
    make(path)
    before = content_of(path.parent)
    store = sqlite(path)
    for call in (
        lambda: store.read(["https://site-0.example"]),
        lambda: write(store, available()),
        lambda: list(store.keys()),
        lambda: store.delete("https://site-0.example"),
    ):
        with pytest.raises(StoreError, match=says) as caught:
            call()
        assert "\n" not in str(caught.value)
    store.close()
    assert content_of(path.parent) == before


@pytest.mark.parametrize("suffixes", [("", "-wal", "-shm"), ("",)])
def test_a_file_that_was_removed_is_made_again(path, suffixes):
    store = sqlite(path)
    write(store, available())
    assert store.peek([ORIGIN]).records
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink()
    assert record(store) is None
    write(store, unavailable())
    assert store.peek([ORIGIN]) == store.read([ORIGIN])
    store.close()
    assert origins(path) == [ORIGIN]
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]


def test_old_records_go(path, monkeypatch):
    monkeypatch.setattr(module, "_PRUNED", 100)
    monkeypatch.setattr(module, "_PRUNE_EVERY", 0)
    now = 1_000.0
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    body, sites = os.urandom(5_000), [f"https://site-{i}.example" for i in range(1_000)]
    write(store, *(available(site, body, at=now) for site in sites))
    write(store, available("https://from-the-future.example", at=1e9))
    claim(store, ORIGIN, "a", 30)
    store.close()
    now += 499
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    write(store, available("https://new.example", at=now))
    assert len(origins(path)) == 1_001
    now += 2
    for _ in range(12):
        write(store, available("https://new.example", at=now))
    store.close()
    assert origins(path) == ["https://new.example"]
    assert execute(path, "SELECT * FROM leases") == []


def test_a_file_that_is_too_large_loses_no_more_than_it_must(path):
    store = sqlite(path)
    sites = [f"https://site-{number}.example" for number in range(500)]
    # The newest first, so that the order of the rows is not that of their times.
    for number, site in reversed(list(enumerate(sites))):
        write(store, available(site, os.urandom(3_000), at=1e9 + number))
    store.close()
    store = sqlite(path, max_bytes=2**20)
    write(store, available("https://new.example", at=2e9))
    store.close()
    kept = origins(path)
    assert kept == [*sites[-len(kept) + 1 :], "https://new.example"]
    (size,) = execute(path, "SELECT sum(length(state) + length(body)) FROM records")[0]
    assert 0.5 * 2**20 < size < 2**20


def test_a_file_without_a_write_ahead_log_is_waited_for_as_long(path):
    make_databases.make(path)
    execute(path, "PRAGMA journal_mode = DELETE")
    store = sqlite(path, timeout=0.3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="in use by another process"):
            store.read([ORIGIN])
    write(store, available())
    store.close()
    assert execute(path, "PRAGMA journal_mode") == [("wal",)]


def test_a_lease_taken_by_a_clock_that_was_ahead_is_none(path):
    now = 10_000.0
    store = sqlite(path, clock=lambda: now)
    claim(store, ORIGIN, "a", 30)
    claim(store, OTHER, PAUSE, 30)
    now = 1_000.0
    assert dict(store.pauses_left()) == {}
    assert claim(store, ORIGIN, "b", 30).holder == "b"
    store.close()


def test_a_clock_read_a_little_before_a_lease_was_taken_takes_it_from_nobody(path):
    first, second = sqlite(path, clock=lambda: 1_000.0), sqlite(path, clock=lambda: 999.99)
    claim(first, ORIGIN, "a", 30)
    # Its first write is followed by a look for what is too old.
    assert claim(second, OTHER, "b", 30).holder == "b"
    assert claim(second, ORIGIN, "b", 30).holder == "a"
    first.close()
    second.close()


def test_of_stores_that_make_the_file_at_the_same_moment_one_gets_the_lease(tmp_path):
    for round_ in range(10):
        stores = [sqlite(tmp_path / f"{round_}.sqlite") for _ in range(4)]
        for origin in (ORIGIN, OTHER):  # the second while they look for what is too old
            claims = at_once(
                *(
                    lambda store=store, i=i, origin=origin: claim(store, origin, f"{i}", 30)
                    for i, store in enumerate(stores)
                )
            )
            assert len({lease.holder for lease in claims}) == 1
        for store in stores:
            store.close()


def test_a_full_disk_is_an_error_and_what_was_written_stays(path, monkeypatch):
    store = sqlite(path)
    write(store, available())
    store.close()
    # As a disk that has no place for another page.
    pages = execute(path, "PRAGMA page_count")[0][0]
    original = module.open_file

    def connect(*args, **kwargs):
        connection = original(*args, **kwargs)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(module, "open_file", connect)
    with pytest.raises(StoreError, match="full"):
        write(store, available("https://large.example", os.urandom(100_000)))
    assert record(store) == available()
    store.close()
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
