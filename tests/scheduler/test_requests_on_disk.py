"""The requests on disk: what stays, what comes again, and what can't be read or written."""

import gc
import json
import math
import os
import shutil
import sqlite3
import weakref
from hashlib import sha256
from pathlib import Path

import pytest
from scrapy import Request, squeues
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.squeues import PickleFifoDiskQueue, PickleLifoDiskQueue

from scrapy_rep import SettingsError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.request_table import FORMAT
from tests.scheduler.queues import (
    Doors,
    FakeCrawler,
    drain,
    on_disk,
    pages,
    scrapys,
    urls,
)
from tests.sql import execute

QUEUE_CLASSES = [
    cls
    for writer in ("Pickle", "Marshal")
    for where in ("Disk", "SQLite")
    for order in ("Fifo", "Lifo")
    if (cls := getattr(squeues, f"{writer}{order}{where}Queue", None)) is not None
]
A = origin_of("https://a.example")
UNFIT = (math.inf, -math.inf, math.nan, 1e300, -1e300, 0.5)
"""Priorities that are no integers."""


def of_priority(priority):
    request = Request("https://a.example/")
    request.priority = priority  # as RetryMiddleware adjusts it
    return request


def file_of(folder):
    return Path(folder, "requests.sqlite")


def run_sql(folder, statement, *values):
    return execute(file_of(folder), statement, *values)


def connection_of(queue):
    return queue._requests._connection


# Order, and what a row is.


@pytest.mark.parametrize("start", [None, PickleFifoDiskQueue, PickleLifoDiskQueue])
@pytest.mark.parametrize("downstream", QUEUE_CLASSES, ids=lambda cls: cls.__mro__[1].__name__)
def test_order_is_that_of_scrapys_queue_before_and_after_a_restart(tmp_path, downstream, start):
    requests = [
        Request(
            f"https://a.example/{n}",
            priority=n % 3 - 1,
            meta={"is_start_request": True} if n % 2 else None,
        )
        for n in range(30)
    ]
    kinds = {"downstream": downstream, "start": start}
    theirs = scrapys(FakeCrawler(), key=tmp_path / "theirs", **kinds)
    for request in requests:
        theirs.push(request)
    (tmp_path / "ours").mkdir()
    queue = on_disk(tmp_path / "ours", *requests, **kinds)
    first = [queue.pop().url for _ in range(10)]
    queue = on_disk(tmp_path / "ours", state=queue.close(), **kinds)
    assert len(queue) == 20
    assert first + drain(queue) == drain(theirs)
    assert queue.close() == {}
    theirs.close()


@pytest.mark.parametrize(
    "slot", ["a" * 5000, "\N{SNOWMAN}" * 200, "a/b\\c:*?\x00", " ", "https://a.example b"]
)
def test_a_slot_may_have_any_name(tmp_path, slot):
    requests = [Request(f"https://a.example/{n}", meta={"download_slot": slot}) for n in range(2)]
    on_disk(tmp_path, *requests).close()
    queue = on_disk(tmp_path, crawler=(crawler := FakeCrawler()))
    crawler.downloader.begin(queue.pop())
    assert drain(queue) == [requests[1].url]


def test_a_pop_reads_as_much_however_many_sites_share_a_busy_slot(tmp_path):
    def steps_of_pops(sites):
        crawler, steps = FakeCrawler(Doors()), []
        folder = tmp_path / str(sites)
        folder.mkdir()
        proxy = {"download_slot": "proxy"}
        requests = [Request(f"https://{n}.example/", meta=proxy) for n in range(sites)]
        queue = on_disk(folder, *requests, *pages("z.example", 0), crawler=crawler)
        crawler.downloader.begin(queue.pop())
        connection_of(queue).set_progress_handler(lambda: steps.append(1), 10)
        slots = [crawler.downloader.get_slot_key(queue.pop()) for _ in range(2)]
        assert slots == ["z.example", "proxy"]
        return len(steps)

    assert steps_of_pops(2_000) < 1.5 * steps_of_pops(20)


def test_what_can_not_be_written_is_scrapys_to_keep_in_memory(tmp_path):
    queue = on_disk(tmp_path)
    for request in (
        Request("https://a.example/", meta={"x": lambda: None}),
        Request("https://a.example/", callback=print),
        *map(of_priority, UNFIT),
        Request("https://a.example/", meta={"download_slot": "\ud800"}),
    ):
        with pytest.raises(ValueError, match=r"."):
            queue.push(request)
        assert len(queue) == 0
    assert queue.pop() is None
    assert queue.close() == {}


def test_a_priority_of_any_size_is_written(tmp_path):
    priorities = [-(1 << 70), -(1 << 63), 0, (1 << 63) + 1]
    queue = on_disk(tmp_path, *map(of_priority, priorities))
    queue = on_disk(tmp_path, state=queue.close())
    found = [queue.pop().priority for _ in priorities]
    assert found[:2] == [(1 << 63) + 1, 0]
    assert sorted(found[2:]) == priorities[:2]


# What can't be read.


def test_what_the_disk_does_not_give_is_left_so_that_the_crawl_ends(tmp_path, caplog):
    queue = on_disk(tmp_path, *pages("a.example", 1, 2))
    connection_of(queue).execute("DROP TABLE temp.popped")
    assert drain(queue) == []
    assert len(queue) == 0
    assert "The requests in JOBDIR can't be read, and are left there: 2" in caplog.messages
    with pytest.raises(ValueError, match="closed"):
        queue.push(*pages("a.example", 3))
    assert len(drain(on_disk(tmp_path, state=queue.close()))) == 2


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ("origin = 'nonsense'", True),
        ("origin = CAST(x'ff' AS TEXT)", True),
        ("slot = CAST(x'00ff' AS TEXT)", True),
        ("slot = x'ff'", True),
        # Only the order is damaged.
        ("priority = -9e999", False),
        ("position = 'damaged'", False),
    ],
)
def test_a_damaged_name_ends_the_crawl_and_what_is_left_stays(tmp_path, caplog, change, ends):
    requests = [each for host in "abc" for each in pages(f"{host}.example", 0, 1)]
    state = on_disk(tmp_path, *requests).close()
    run_sql(tmp_path, f"UPDATE requests SET {change} WHERE slot = 'b.example'")
    queue = on_disk(tmp_path, state=state)
    left = len(requests) - len(drain(queue))
    assert (left > 0) == ends
    assert len(queue) == 0
    says = [f"The requests in JOBDIR can't be read, and are left there: {left}"] if ends else []
    assert caplog.messages == says
    assert (queue.close() != {}) == ends
    assert run_sql(tmp_path, "SELECT count(*) FROM requests") == [(left,)]


# What can't be written.


def test_a_disk_that_is_full_is_said_once_and_loses_nothing(tmp_path, caplog):
    queue = on_disk(tmp_path, *pages("a.example", *range(20)))
    connection = connection_of(queue)
    pages_now = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages_now}")
    kept = []
    for n in range(100):
        request = Request(f"https://b.example/{n}", meta={"padding": "x" * 1000})
        try:
            queue.push(request)
        except ValueError:
            kept.append(request.url)
    assert kept
    (said,) = [text for text in caplog.messages if "can't be written to JOBDIR" in text]
    assert "full" in said
    assert len(queue) == 120 - len(kept)
    connection.execute("PRAGMA max_page_count = 1000000")
    queue.push(Request("https://c.example/"))
    assert len({*drain(queue), *kept}) == 121


def test_rows_that_can_not_be_deleted_are_deleted_together_later(tmp_path, caplog):
    requests = pages("a.example", *range(40))
    crawler = FakeCrawler(Doors())
    queue = on_disk(tmp_path, *requests, crawler=crawler)
    connection = connection_of(queue)
    ended = []

    def fetch(number):
        for _ in range(number):
            request = queue.pop()
            crawler.downloader.begin(request)
            crawler.downloader.end(request)
            ended.append(request.url)
        return weakref.ref(request)

    connection.set_authorizer(
        lambda action, table, *_: (action, table) == (sqlite3.SQLITE_DELETE, "requests")
    )
    reference = fetch(20)
    connection.set_authorizer(None)
    fetch(1)
    gc.collect()
    assert reference() is None
    assert connection.execute("SELECT count(*) FROM requests").fetchone() == (20,)
    (said,) = [text for text in caplog.messages if "can't be written" in text]
    assert said.endswith("A request that was downloaded may come again")
    assert sorted([*ended, *drain(queue)]) == sorted(urls(requests))


def test_a_page_that_is_damaged_while_the_crawl_runs_does_not_fail_the_close(tmp_path):
    on_disk(tmp_path, *pages("a.example", *range(200))).close()
    page = first_page_of(tmp_path, "requests")
    queue = on_disk(tmp_path)
    connection_of(queue).execute("PRAGMA shrink_memory")
    damage_page(tmp_path, page)
    assert queue.close() != {}


def damage_page(folder, page):
    content = bytearray(file_of(folder).read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file_of(folder).write_bytes(content)


def first_page_of(folder, name):
    ((page,),) = run_sql(folder, "SELECT rootpage FROM sqlite_master WHERE name = ?", name)
    return page


# What is refused.


def refused(folder, match, **how):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(SettingsError, match=match):
        on_disk(folder, **how)
    assert {path: path.read_bytes() for path in before} == before


def test_a_second_crawl_on_the_same_jobdir_is_refused(tmp_path):
    queue = on_disk(tmp_path, *pages("a.example", 1))
    refused(tmp_path, "in use by another process.*Another crawl is using this JOBDIR$")
    assert drain(queue) == ["https://a.example/1"]


def runs(*statements):
    return lambda folder: [run_sql(folder, statement) for statement in statements]


def damaged(name):
    return lambda folder: damage_page(folder, first_page_of(folder, name))


def overwritten(folder):
    size = file_of(folder).stat().st_size
    file_of(folder).write_bytes(file_of(folder).read_bytes()[:4096] + b"\xff" * (size - 4096))


NEW = "set JOBDIR to a new directory$"
DAMAGED = f"damaged.*, and is not changed. Restore a copy of it, or {NEW}"
OTHER = (
    "of another program, or of another version of scrapy-rep, and is not changed. Finish its crawl "
    f"with that version, or {NEW}"
)
NO_FOLDER = "not usable .*Set JOBDIR to a new directory that can be written$"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: file_of(folder).write_bytes(b"no database"), DAMAGED),
        (overwritten, DAMAGED),
        (damaged("requests"), DAMAGED),
        (damaged("by_rank"), DAMAGED),
        (damaged("unreadable"), DAMAGED),
        (runs("PRAGMA application_id = 7"), OTHER),
        (runs("PRAGMA user_version = 99"), OTHER),
        # Its schema had another column, before the first release.
        (
            runs("ALTER TABLE requests RENAME COLUMN position TO p", "PRAGMA user_version = 1"),
            OTHER,
        ),
    ],
)
def test_a_file_that_is_damaged_or_none_of_ours_is_refused_and_stays(tmp_path, change, says):
    on_disk(tmp_path, *pages("a.example", *range(200))).close()
    change(tmp_path)
    for _ in range(2):
        refused(tmp_path, f"^{file_of(tmp_path)} is {says}")


def test_the_version_is_that_of_the_schema():
    """A changed schema gets a new version."""
    schema = "\n".join(FORMAT.schema)
    assert (FORMAT.version, sha256(schema.encode()).hexdigest()[:16]) == (3, "7fd6e8e6f05d44fb")


def test_a_file_that_can_not_be_opened_is_refused(tmp_path):
    file_of(tmp_path).mkdir()
    refused(tmp_path, NO_FOLDER)


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="on Windows, or as the superuser, one may write"
)
def test_a_folder_that_can_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    refused(tmp_path, NO_FOLDER)


@pytest.mark.parametrize("killed", [False, True])
def test_scrapys_queues_refuse_what_ours_left(tmp_path, killed):
    queue = on_disk(tmp_path, *pages("a.example", 1))
    # After a kill another process finds the files as they are now.
    folder = shutil.copytree(tmp_path, Path(f"{tmp_path}-killed")) if killed else tmp_path
    state = queue.close()
    if killed:
        state = json.loads((folder / "active.json").read_text())
    with pytest.raises(ValueError, match="incompatible"):
        scrapys(FakeCrawler(), key=folder, state=state)
    with pytest.raises(TypeError):
        ScrapyPriorityQueue(FakeCrawler(), PickleLifoDiskQueue, str(folder), state)
    assert drain(on_disk(folder, state=state)) == ["https://a.example/1"]
