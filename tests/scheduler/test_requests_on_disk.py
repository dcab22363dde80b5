"""The requests on disk: what stays, what comes again, and what can't be read or written."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import sqlite3
import weakref
from contextlib import closing, suppress
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pytest
import scrapy
from scrapy import Request, squeues
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.squeues import PickleFifoDiskQueue, PickleLifoDiskQueue

from scrapy_rep import RobotsAwarePriorityQueue, SettingsError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.request_file import FORMAT
from scrapy_rep.scheduler.slots_on_disk import RETRY_DELAYS
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import Doors, FakeCrawler, drain, ours, scrapys

QUEUE_CLASSES = [
    cls
    for writer in ("Pickle", "Marshal")
    for where in ("Disk", "SQLite")
    for order in ("Fifo", "Lifo")
    if (cls := getattr(squeues, f"{writer}{order}{where}Queue", None)) is not None
]

A = origin_of("https://a.example")
UNFIT = (1 << 63, -(1 << 63), math.inf, -math.inf, math.nan, 1e300, -1e300, 0.5)
"""Priorities that are no 64-bit integers."""


def of_priority(priority):
    request = Request("https://a.example/")
    request.priority = priority  # as RetryMiddleware adjusts it
    return request


def pages(host, *paths, **kwargs):
    return [Request(f"https://{host}/{path}", **kwargs) for path in paths]


def urls(requests):
    return [request.url for request in requests]


def filled(folder, *requests, crawler=None, **kwargs):
    queue = ours(crawler or FakeCrawler(Doors()), key=folder, **kwargs)
    for request in requests:
        queue.push(request)
    return queue


def file_of(folder):
    return Path(folder, "requests.sqlite")


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
    queue = ours(FakeCrawler(Doors()), key=_made(tmp_path / "ours"), **kinds)
    for request in requests:
        theirs.push(request)
        queue.push(request)
    expected = drain(theirs)
    first = [queue.pop().url for _ in range(10)]
    queue = ours(FakeCrawler(Doors()), key=tmp_path / "ours", state=queue.close(), **kinds)
    assert len(queue) == 20
    assert first + drain(queue) == expected
    assert queue.close() == {}
    theirs.close()


def _made(folder):
    folder.mkdir()
    return folder


def test_all_of_a_request_comes_back(tmp_path):
    class Spider(scrapy.Spider):
        name = "whole"

    crawler = FakeCrawler(Doors())
    crawler.spider = Spider()
    request = Request(
        "https://a.example/x",
        method="POST",
        body=b"\x00\xff",
        headers={"A": ["1", "2"]},
        cookies={"c": "d"},
        meta={"download_slot": "x" * 300, "depth": 4},
        priority=-7,
        callback=crawler.spider.parse,
        cb_kwargs={"k": [1]},
        dont_filter=True,
        flags=["f"],
    )
    filled(tmp_path, request, crawler=crawler).close()
    (back,) = _popped(ours(crawler, key=tmp_path))
    del back.meta["_robotstxt"]
    assert back.to_dict(spider=crawler.spider) == request.to_dict(spider=crawler.spider)


def _popped(queue):
    requests = []
    while (request := queue.pop()) is not None:
        requests.append(request)
    return requests


@pytest.mark.parametrize(
    "slot", ["a" * 5000, "\N{SNOWMAN}" * 200, "a/b\\c:*?\x00", " ", "https://a.example b"]
)
def test_a_slot_may_have_any_name(tmp_path, slot):
    request = Request("https://a.example/", meta={"download_slot": slot})
    filled(tmp_path, request).close()
    queue = ours(FakeCrawler(Doors()), key=tmp_path)
    assert slot in queue
    assert drain(queue) == [request.url]


def test_what_can_not_be_written_is_scrapys_to_keep_in_memory(tmp_path):
    queue = ours(FakeCrawler(Doors()), key=tmp_path)
    for request in (
        Request("https://a.example/", meta={"x": lambda: None}),
        Request("https://a.example/", callback=print),
        *map(of_priority, UNFIT),
        Request("https://a.example/", meta={"download_slot": "\ud800"}),
    ):
        with pytest.raises(ValueError, match=r"."):
            queue.push(request)
        assert len(queue) == 0
        assert "a.example" not in queue
    assert queue.pop() is None
    assert queue.close() == {}


# What stays until it has ended.


def test_a_request_stays_on_disk_until_the_engine_is_done_with_it(tmp_path):
    crawler = FakeCrawler(Doors())
    queue = filled(tmp_path, *pages("a.example", 1, 2, 3, 4), crawler=crawler)
    active = []
    for _ in range(3):
        active.append(queue.pop())
        crawler.downloader.begin(active[-1])
    crawler.downloader.answer(active[0])
    crawler.downloader.end(active[1])
    queue.push(Request("https://b.example/"))
    crawler.doors.open = set()
    assert queue.pop() is None
    killed = _as_after_a_kill(tmp_path)
    assert sorted(drain(ours(FakeCrawler(Doors()), key=killed))) == [
        *(f"https://a.example/{n}" for n in (1, 3, 4)),
        "https://b.example/",
    ]
    for request in (active[0], active[2]):
        crawler.downloader.end(request)
    queue = ours(FakeCrawler(Doors()), key=tmp_path, state=queue.close())
    assert sorted(drain(queue)) == ["https://a.example/4", "https://b.example/"]


def test_what_takes_the_place_of_a_request_is_there_before_that_goes(tmp_path):
    """A redirect, a retry, a request that is given back."""
    crawler = FakeCrawler(Doors())
    queue = filled(tmp_path, *pages("a.example", 1), crawler=crawler)
    request = queue.pop()
    crawler.downloader.begin(request)
    statements = []
    queue._disk._file._connection.set_trace_callback(statements.append)
    queue.push(request.replace(url="https://a.example/2"))
    crawler.downloader.end(request)
    crawler.doors.open = set()
    assert queue.pop() is None
    # A statement with triggers is traced several times.
    words = [text.split()[0] for text, _ in groupby(statements)]
    assert words == ["INSERT", "BEGIN", "DELETE", "COMMIT"]
    queue.close()


def _as_after_a_kill(folder):
    """Return a copy of the files as they are: what another process would find."""
    copy = Path(f"{folder}-killed")
    shutil.copytree(folder, copy)
    return copy


def test_nothing_that_is_on_its_way_is_given_out_twice(tmp_path):
    crawler = FakeCrawler(Doors())
    queue = filled(tmp_path, *pages("a.example", 1, 2), crawler=crawler)
    out = [queue.pop()]
    crawler.downloader.begin(out[0])
    # It is next by its key again, as what is on its way comes before it.
    queue.push(Request("https://a.example/0", priority=1))
    out.append(queue.pop())
    crawler.downloader.begin(out[1])
    assert drain(queue) == ["https://a.example/2"]
    assert len(queue) == 0


# What can't be read.


class WithCallback(scrapy.Spider):
    name = "renamed"

    def gone(self, response):
        pass


def test_a_request_whose_callback_is_gone_is_told_and_comes_when_it_is_back(tmp_path, caplog):
    crawler = FakeCrawler(Doors())
    crawler.spider = WithCallback()
    requests = pages("a.example", 1, 2, 3, 4)
    requests[1] = requests[1].replace(callback=crawler.spider.gone)
    filled(tmp_path, *requests, crawler=crawler).close()
    without = FakeCrawler(Doors())
    queue = ours(without, key=tmp_path)
    assert len(queue) == 4
    assert sorted(drain(queue)) == [f"https://a.example/{n}" for n in (1, 3, 4)]
    assert len(queue) == 0
    assert without.stats == {"robotstxt/queue/unreadable": 1, "robotstxt/queue/error_count": 1}
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.getMessage().startswith(
        "Unable to read request: <GET https://a.example/2> - reason: Method 'gone' not found in: "
    )
    assert record.exc_info is None, "there may be many"
    state = queue.close()
    assert state
    assert drain(ours(crawler, key=tmp_path, state=state)) == ["https://a.example/2"]


def test_a_lane_of_which_nothing_can_be_read_ends_nothing_and_hangs_nothing(tmp_path):
    crawler = FakeCrawler(Doors())
    crawler.spider = WithCallback()
    lost = pages("a.example", 1, 2, callback=crawler.spider.gone)
    filled(tmp_path, *lost, *pages("b.example", 1), crawler=crawler).close()
    doors = Doors()
    doors.open = {"https://b.example"}
    queue = ours(FakeCrawler(doors), key=tmp_path)
    assert drain(queue) == ["https://b.example/1"]
    assert doors.asked == ["https://a.example"]
    (waiting,) = doors.admission._queues
    assert waiting.head_of(A, ()) is None
    assert len(queue) == 0
    doors.let("https://a.example")
    assert drain(queue) == []


def timed(folder, time, doors=None):
    crawler = FakeCrawler(doors or Doors())
    queue = RobotsAwarePriorityQueue(
        crawler, PickleLifoDiskQueue, str(folder), clock=time.clock
    )  # as from_crawler makes it
    return queue, crawler


@pytest.mark.parametrize("errors", [1, len(RETRY_DELAYS)])
def test_a_passing_error_of_the_disk_is_tried_again(tmp_path, errors, caplog):
    time = MadeUpTime()
    queue, crawler = timed(tmp_path, time)
    for request in (*pages("a.example", 1, 2), *pages("b.example", 1)):
        queue.push(request)
    take = queue._requests.pop
    failures = iter([OSError("made up")] * errors)

    def failing(lane):
        if lane.slot.name == "a.example" and (failure := next(failures, None)):
            raise failure
        return take(lane)

    queue._requests.pop = failing
    assert drain(queue) == ["https://b.example/1"]
    assert len(queue) == 2
    for _ in range(errors):
        (timer,) = time.timers
        time.advance(timer - time.now)
        popped = drain(queue)
    assert popped == ["https://a.example/2", "https://a.example/1"]
    assert crawler.stats["robotstxt/queue/error_count"] == errors
    assert time.timers == []
    queue.close()


def test_what_can_never_be_read_is_left_so_that_the_crawl_ends(tmp_path, caplog):
    time = MadeUpTime()
    queue, _ = timed(tmp_path, time)
    for request in pages("a.example", 1, 2):
        queue.push(request)
    queue._disk._data = lambda lane: 1 / 0
    assert drain(queue) == []
    while time.timers:
        assert len(queue) == 2
        time.advance(time.timers[0] - time.now)
        assert drain(queue) == []
    assert len(queue) == 0
    says = "The requests of a.example can't be read, and are left in JOBDIR: 2"
    assert says in caplog.messages
    state = queue.close()
    assert len(_popped(ours(FakeCrawler(Doors()), key=tmp_path, state=state))) == 2


def test_what_can_not_be_ordered_is_left_and_keeps_nothing_else(tmp_path, caplog):
    queue = filled(tmp_path, *pages("a.example", 1), *pages("b.example", 1, 2))
    queue.close()
    with closing(sqlite3.connect(file_of(tmp_path))) as connection, connection:
        connection.execute("UPDATE requests SET priority = -9e999 WHERE slot = 'b.example'")
    queue = ours(FakeCrawler(Doors()), key=tmp_path)
    assert drain(queue) == urls(pages("a.example", 1))
    assert caplog.messages == ["The requests of b.example can't be read, and are left in JOBDIR: 2"]
    assert len(queue) == 0
    assert queue.close() != {}


def test_a_lane_that_is_found_to_be_unreadable_when_it_is_asked_about_is_gone(tmp_path, caplog):
    class Reads(Doors):
        def hold(self, ask):
            with suppress(LookupError):
                ask.head()

    queue = filled(tmp_path, *pages("a.example", 1, 2), *pages("b.example", 1))
    queue.close()
    with closing(sqlite3.connect(file_of(tmp_path))) as connection, connection:
        connection.execute("UPDATE requests SET request = x'00' WHERE slot = 'a.example'")
    queue = ours(FakeCrawler(Reads()), key=tmp_path)
    assert drain(queue) == urls(pages("b.example", 1))
    assert len(queue) == 0
    assert ["Unable to read request" in text for text in caplog.messages] == [True, True]
    queue.close()


def test_the_close_leaves_no_timer(tmp_path):
    time = MadeUpTime()
    queue, _ = timed(tmp_path, time)
    queue.push(Request("https://a.example/"))
    queue._disk._data = lambda lane: 1 / 0
    assert queue.pop() is None
    assert time.timers
    queue.close()
    assert time.timers == []


# What can't be written.


def test_a_disk_that_is_full_is_said_once_and_loses_nothing(tmp_path, caplog):
    crawler = FakeCrawler(Doors())
    queue = filled(tmp_path, *pages("a.example", *range(20)), crawler=crawler)
    connection = queue._disk._file._connection
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
    queue.close()


def test_a_file_that_has_become_read_only_gives_out_what_it_has(tmp_path, caplog):
    crawler = FakeCrawler(Doors())
    queue = filled(tmp_path, *pages("a.example", 1, 2, 3), crawler=crawler)
    queue._disk._file._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(ValueError, match="can't be written"):
        queue.push(Request("https://a.example/4"))
    assert sorted(drain(queue)) == urls(pages("a.example", 1, 2, 3))
    assert len([text for text in caplog.messages if "can't be written" in text]) == 1
    queue.close()


def test_rows_that_can_not_be_deleted_are_deleted_together_later(tmp_path, caplog):
    time = MadeUpTime()
    queue, crawler = timed(tmp_path, time)
    for request in pages("a.example", *range(40)):
        queue.push(request)
    connection = queue._disk._file._connection
    statements, ended = [], []
    connection.set_trace_callback(statements.append)

    def fetch(number):
        for _ in range(number):
            request = queue.pop()
            crawler.downloader.begin(request)
            crawler.downloader.end(request)
            ended.append(request.url)
        found = statements.count("BEGIN IMMEDIATE")
        statements.clear()
        return found

    connection.execute("PRAGMA query_only = 1")
    fetch(1)
    assert fetch(10) == 1
    for seconds in (1, 2, 4):
        time.advance(seconds - 0.1)
        assert fetch(2) == 0
        time.advance(0.1)
        assert fetch(2) == 1
    (reference,) = [weakref.ref(request) for request in queue._disk._in_progress.values()]
    assert len(queue._disk._ended) == len(ended) - 1
    connection.execute("PRAGMA query_only = 0")
    time.advance(100)
    assert fetch(1) == 1
    gc.collect()
    assert reference() is None
    assert queue._disk._ended == set()
    (said,) = [text for text in caplog.messages if "can't be written" in text]
    assert said.endswith("A request that was downloaded may come again")
    assert sorted([*ended, *drain(queue)]) == sorted(urls(pages("a.example", *range(40))))
    queue.close()


def test_what_has_ended_is_not_given_out_again_while_it_can_not_be_deleted(tmp_path):
    queue, crawler = timed(tmp_path, MadeUpTime())
    for request in pages("a.example", 1, 2, 3):
        queue.push(request)
    request = queue.pop()
    crawler.downloader.begin(request)
    queue._disk._file._connection.execute("PRAGMA query_only = 1")
    crawler.downloader.end(request)
    assert queue.pop().url == "https://a.example/2"
    queue._disk._file._connection.execute("PRAGMA query_only = 0")
    # It is the next by its place: what has ended comes behind it.
    queue.push(Request("https://a.example/4"))
    assert drain(queue) == ["https://a.example/4", "https://a.example/1"]
    queue.close()


# A file that is no longer there.


def test_the_file_is_looked_at_now_and_then_and_told_of_once(tmp_path, caplog):
    time = MadeUpTime()
    queue, _ = timed(tmp_path, time)
    for request in pages("a.example", *range(5)):
        queue.push(request)
    assert queue.pop() is not None
    file_of(tmp_path).rename(tmp_path / "elsewhere")
    assert queue.pop() is not None
    assert caplog.messages == []
    for _ in range(2):
        time.advance(60)
        assert queue.pop() is not None
    (said,) = caplog.messages
    assert said.startswith(f"{file_of(tmp_path)} was removed or replaced: ")
    assert queue.pop() is not None
    queue.close()
    assert caplog.messages == [said], "nothing is left that could be lost"


# What is refused.


def refused(folder, match, **how):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(SettingsError, match=match):
        ours(FakeCrawler(Doors()), key=folder, **how)
    assert {path: path.read_bytes() for path in before} == before


def test_a_second_crawl_on_the_same_jobdir_is_refused(tmp_path):
    queue = filled(tmp_path, *pages("a.example", 1))
    refused(tmp_path, "in use by another process.*Another crawl is using this JOBDIR$")
    assert drain(queue) == ["https://a.example/1"]
    queue.close()


def damage_page(folder, page):
    content = bytearray(file_of(folder).read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file_of(folder).write_bytes(content)


def first_page_of(folder, name):
    """Return the number of the first page of a table or an index."""
    with closing(sqlite3.connect(file_of(folder))) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return connection.execute(query, [name]).fetchone()[0]


def contains(data):
    return lambda folder: file_of(folder).write_bytes(data)


def runs(script):
    def change(folder):
        with closing(sqlite3.connect(file_of(folder))) as connection:
            connection.executescript(script)

    return change


def replaced(old, new):
    def change(folder):
        content = file_of(folder).read_bytes()
        assert content.count(old) == 1
        file_of(folder).write_bytes(content.replace(old, new))

    return change


def damaged(name):
    return lambda folder: damage_page(folder, first_page_of(folder, name))


def overwritten(folder):
    size = file_of(folder).stat().st_size
    file_of(folder).write_bytes(file_of(folder).read_bytes()[:4096] + b"\xff" * (size - 4096))


NEW = "set JOBDIR to a new directory$"
DAMAGED = f"damaged.*, and is not changed. Restore a copy of it, or {NEW}"
FOREIGN = "of another program, and is not changed. Set JOBDIR to a new directory$"
OLDER, NEWER = (
    f"written by {age} version of scrapy-rep, and is not changed. Finish its crawl with that "
    f"version, or {NEW}"
    for age in ("an older", "a newer")
)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (contains(b"no database"), DAMAGED),
        (contains(b"SQLite format 3\x00" + b"\x07" * 5000), DAMAGED),
        (overwritten, DAMAGED),
        (damaged("requests"), DAMAGED),
        (damaged("by_rank"), DAMAGED),
        (damaged("unreadable"), DAMAGED),
        (
            replaced(b"requestsrequests", b"\xefequests\xefequests"),
            DAMAGED.replace(".*", ".*not valid UTF-8.*"),
        ),
        (runs("PRAGMA application_id = 7"), FOREIGN),
        (runs("PRAGMA user_version = 99"), NEWER),
        (runs("PRAGMA user_version = -1"), OLDER),
        # Its schema had another column, before the first release.
        (
            runs("ALTER TABLE requests RENAME COLUMN position TO place; PRAGMA user_version = 1"),
            OLDER,
        ),
    ],
)
def test_a_file_that_is_damaged_or_none_of_ours_is_refused_and_stays(tmp_path, change, says):
    filled(tmp_path, *pages("a.example", *range(200))).close()
    change(tmp_path)
    for _ in range(2):
        refused(tmp_path, f"^{file_of(tmp_path)} is {says}")


@pytest.mark.parametrize("state", [{"a.example": [0]}, [0, 1]])
def test_what_another_queue_has_left_is_refused_and_stays(tmp_path, state):
    (tmp_path / "active.json").write_text(json.dumps(state))
    refused(tmp_path, "another priority queue, and is not changed", state=state)


def test_a_database_of_somebody_else_is_refused_and_stays(tmp_path):
    runs("CREATE TABLE theirs (x)")(tmp_path)
    refused(tmp_path, FOREIGN)


def test_the_version_is_that_of_the_schema():
    """A changed schema gets a new version. Those of releases are migrated."""
    schema = "\n".join(FORMAT.steps[-1])
    assert (FORMAT.version, sha256(schema.encode()).hexdigest()[:16]) == (3, "7fd6e8e6f05d44fb")


def test_a_file_that_can_not_be_opened_is_refused(tmp_path):
    file_of(tmp_path).mkdir()
    refused(tmp_path, "not usable .*JOBDIR must be a directory that can be written$")


def test_an_empty_file_is_filled(tmp_path):
    file_of(tmp_path).touch()
    queue = filled(tmp_path, *pages("a.example", 1))
    assert drain(queue) == ["https://a.example/1"]
    queue.close()


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="on Windows, or as the superuser, one may write"
)
def test_a_folder_that_can_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    refused(tmp_path, "not usable .*JOBDIR must be a directory that can be written$")


@pytest.mark.parametrize("killed", [False, True])
def test_scrapys_queues_refuse_what_ours_left(tmp_path, killed):
    queue = filled(tmp_path, *pages("a.example", 1))
    folder = _as_after_a_kill(tmp_path) if killed else tmp_path
    state = queue.close()
    if killed:
        state = json.loads((folder / "active.json").read_text())
    with pytest.raises(ValueError, match="incompatible"):
        scrapys(FakeCrawler(), key=folder, state=state)
    with pytest.raises(TypeError):
        ScrapyPriorityQueue(FakeCrawler(), PickleLifoDiskQueue, str(folder), state)
    assert drain(ours(FakeCrawler(Doors()), key=folder, state=state)) == ["https://a.example/1"]


def test_an_error_behind_a_request_that_can_not_be_read_is_the_admissions_to_tell(tmp_path):
    time = MadeUpTime()
    doors = Doors()
    doors.open = set()
    queue, _ = timed(tmp_path, time, doors)
    for request in pages("a.example", 1, 2):
        queue.push(request)
    assert queue.pop() is None
    queue._disk._file._run("UPDATE requests SET request = x'80' WHERE number = 2")
    take, queue._requests.pop = queue._requests.pop, lambda lane: 1 / 0
    (waiting,) = doors.admission._queues
    with pytest.raises(ZeroDivisionError):
        waiting.head_of(A, ())
    assert time.timers == [], "it waits for the admission alone"
    queue._requests.pop = take
    assert waiting.head_of(A, ()).url == "https://a.example/1"
    queue.close()


def many_pages(slots):
    # Neither in the order of their names nor against it.
    return [
        Request(f"http://{n * 37 % slots:03}.example/{page}") for page in "ab" for n in range(slots)
    ]


def test_what_is_not_next_is_on_disk_alone(tmp_path, small_memory):
    queue = filled(tmp_path, *many_pages(100))
    assert len(queue) == 200
    assert len(queue._lanes) == 10
    queue.close()
    queue = ours(FakeCrawler(), key=tmp_path)
    assert (len(queue), len(queue._lanes)) == (200, 0)
    assert "050.example" in queue
    queue.pop()
    assert (len(queue), len(queue._lanes)) == (199, 5)


def test_links_that_come_meanwhile_have_their_turns(tmp_path, small_memory):
    queue = filled(tmp_path, *many_pages(40))
    in_memory = ours(FakeCrawler())
    for request in many_pages(40):
        in_memory.push(request)
    for number in range(60):
        links = [f"http://{number * 7 % 40:03}.example/{number}", f"http://new-{number}.example/"]
        for each in (queue, in_memory):
            each.pop()
            for link in links:
                each.push(Request(link))
    assert sorted(drain(queue)) == sorted(drain(in_memory))
    assert len(queue) == 0


def test_no_more_is_loaded_than_lookups_have_room_for(tmp_path, small_memory):
    filled(tmp_path, *many_pages(100)).close()
    doors = Doors()
    doors.open = set()
    crawler = FakeCrawler(doors)
    queue = ours(crawler, key=tmp_path)
    crawler.engine.paused = True
    doors.admission.lookups.add(A)
    assert queue.pop() is None
    assert len(queue._lanes) == 0
    doors.admission.lookups.close()
    doors.open = None
    assert len(drain(queue)) == 200


def test_a_damaged_row_stops_no_other_of_its_lane(tmp_path, caplog):
    filled(tmp_path, *pages("a.example", 1, 2, 3)).close()
    with closing(sqlite3.connect(file_of(tmp_path))) as connection, connection:
        connection.execute("UPDATE requests SET position = 'damaged' WHERE number = 2")
    queue = ours(FakeCrawler(Doors()), key=tmp_path)
    assert drain(queue) == urls(pages("a.example", 1, 3))
    assert caplog.messages == ["The requests of a.example can't be read, and are left in JOBDIR: 1"]
    assert len(queue) == 0
    assert queue.close() != {}


def test_a_page_that_is_damaged_while_the_crawl_runs_does_not_fail_the_close(tmp_path):
    filled(tmp_path, *pages("a.example", *range(200))).close()
    page = first_page_of(tmp_path, "requests")
    queue = ours(FakeCrawler(Doors()), key=tmp_path)
    queue._disk._file._run("PRAGMA shrink_memory")
    damage_page(tmp_path, page)
    assert queue.close() != {}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("origin", "'nonsense'"),
        ("origin", "x'ff'"),
        ("origin", "CAST(x'ff' AS TEXT)"),
        ("slot", "x'ff'"),
        ("slot", "CAST(x'ff' AS TEXT)"),
        ("slot", "CAST(x'00ff' AS TEXT)"),
        ("position", "'first'"),
    ],
)
def test_a_damaged_row_stops_no_other(tmp_path, caplog, column, value):
    requests = [each for host in "abc" for each in pages(f"{host}.example", 0)]
    queue = filled(tmp_path, *requests)
    state = queue.close()
    with closing(sqlite3.connect(file_of(tmp_path))) as connection, connection:
        connection.execute(f"UPDATE requests SET {column} = {value} WHERE slot = 'b.example'")
    time = MadeUpTime()
    queue = RobotsAwarePriorityQueue(
        FakeCrawler(Doors()), PickleFifoDiskQueue, str(tmp_path), state, clock=time.clock
    )
    found = []
    for _ in range(len(RETRY_DELAYS) + 1):
        found += drain(queue)
        time.advance(max(RETRY_DELAYS))
    assert found == ["https://a.example/0", "https://c.example/0"]
    assert len(queue) == 0
    assert "left in JOBDIR: 1" in caplog.text
    queue.close()
    with closing(sqlite3.connect(file_of(tmp_path))) as connection:
        assert connection.execute("SELECT count(*) FROM requests").fetchone() == (1,)
