"""What Scrapy's own queue left in a JOBDIR is moved to ours."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
import scrapy
from scrapy import Request, squeues
from scrapy.squeues import PickleFifoDiskQueue, PickleLifoDiskQueue

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.scheduler.disk import Disk
from scrapy_rep.scheduler.scrapy_jobdir import OURS
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import Doors, FakeCrawler, drain, scrapys
from tests.scheduler.test_disk import QUEUE_CLASSES

NAMES = [
    *(f"https://a.example/{n}" for n in range(7)),
    "http://a.example/1",
    "https://b.example/1",
    "https://c.example/start",
]


class Slow(MadeUpTime):
    """Each look at the clock takes a while: one request is moved at a time."""

    def __init__(self):
        super().__init__()
        self.clock = type(self.clock)(self.clock.time, self.later, self.clock.call_later)

    def later(self):
        self.now += 1
        return self.now

    def go_on(self):
        self.advance(self.timers[0] - self.now if self.timers[0] > self.now else 0)


def left(folder, *, crawler=None, downstream=PickleLifoDiskQueue, start=PickleFifoDiskQueue):
    """Fill a queue of Scrapy's; return the state that it leaves."""
    queue = scrapys(crawler or FakeCrawler(), key=folder, downstream=downstream, start=start)
    for url in NAMES:
        priority = 3 if "/b." in url else -2 if url.endswith("/4") else 0
        meta = {"is_start_request": True} if url.endswith("/start") else None
        queue.push(Request(url, priority=priority, meta=meta))
    return queue.close()


def opened(
    folder,
    state,
    time=None,
    *,
    crawler=None,
    downstream=PickleLifoDiskQueue,
    start=PickleFifoDiskQueue,
):
    return RobotsAwarePriorityQueue(
        crawler or FakeCrawler(Doors()),
        downstream,
        str(folder),
        state,
        start_queue_cls=start,
        clock=(time or MadeUpTime()).clock,
    )


@pytest.mark.parametrize("start", [None, PickleFifoDiskQueue, PickleLifoDiskQueue])
@pytest.mark.parametrize("downstream", QUEUE_CLASSES, ids=lambda cls: cls.__mro__[1].__name__)
def test_all_that_scrapys_queue_left_is_moved(tmp_path, downstream, start):
    state = left(tmp_path, downstream=downstream, start=start)
    queue = opened(tmp_path, state, downstream=downstream, start=start)
    assert len(queue) == len(NAMES)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert sorted(drain(queue)) == sorted(NAMES)
    assert queue.close() == {}


def test_it_waits_for_its_origins_then(tmp_path):
    doors = Doors()
    doors.open = {"https://b.example", "http://a.example"}
    state = left(tmp_path)
    queue = opened(tmp_path, state, crawler=FakeCrawler(doors))
    assert sorted(drain(queue)) == ["http://a.example/1", "https://b.example/1"]
    assert sorted({*doors.asked}) == [f"https://{host}.example" for host in "ac"]
    queue.close()


def test_the_crawl_goes_on_while_it_is_moved(tmp_path):
    time = Slow()
    queue = opened(tmp_path, left(tmp_path), time)
    popped = drain(queue)
    assert len(popped) == 1
    assert len(queue) > 0, "the crawl must not end meanwhile"
    queue.push(Request("https://d.example/"))
    while time.timers:
        assert len(queue) > 0
        time.go_on()
        popped += drain(queue)
    assert sorted(popped) == sorted([*NAMES, "https://d.example/"])
    assert len(queue) == 0
    assert queue.close() == {}


@pytest.mark.parametrize("steps", range(0, 12, 2))
def test_a_crawl_that_is_stopped_meanwhile_goes_on_with_it(tmp_path, steps):
    time = Slow()
    queue = opened(tmp_path, left(tmp_path), time)
    popped = drain(queue)
    for _ in range(min(steps, len(NAMES) - 1)):
        time.go_on()
    popped += [queue.pop().url] if steps else []
    state = queue.close()
    assert time.timers == []
    assert_scrapys_queue_refuses(tmp_path, state)
    queue = opened(tmp_path, state)
    assert sorted(popped + drain(queue)) == sorted(NAMES)
    assert queue.close() == {}


@pytest.mark.parametrize("steps", range(11))
def test_a_crawl_that_is_killed_meanwhile_goes_on_with_it(tmp_path, steps):
    time = Slow()
    folder = tmp_path / "queue"
    folder.mkdir()
    state = left(folder)
    queue = opened(folder, state, time)
    for _ in range(min(steps, len(time.timers) and len(NAMES) - 1)):
        time.go_on()
    killed = tmp_path / "killed"
    shutil.copytree(folder, killed)
    queue.close()
    state = json.loads((killed / "active.json").read_text())
    assert_scrapys_queue_refuses(killed, state)
    queue = opened(killed, state)
    assert sorted(drain(queue)) == sorted(NAMES)
    assert queue.close() == {}


def assert_scrapys_queue_refuses(folder, state):
    with pytest.raises(ValueError, match="incompatible"):
        scrapys(FakeCrawler(), key=folder, downstream=PickleLifoDiskQueue, state=state)


def test_a_crawl_that_is_killed_before_it_moves_anything_moves_what_scrapys_left_then(tmp_path):
    """Killed between the two files: Scrapy's queue still takes the folder, and goes on with it."""
    state = left(tmp_path)
    Disk(FakeCrawler(), str(tmp_path), state, marshals=False).close()
    queue = scrapys(
        FakeCrawler(),
        key=tmp_path,
        downstream=PickleLifoDiskQueue,
        start=PickleFifoDiskQueue,
        state=state,
    )
    first = [queue.pop().url for _ in range(4)]
    queue.push(Request("https://e.example/"))
    queue = opened(tmp_path, queue.close())
    assert sorted(first + drain(queue)) == sorted([*NAMES, "https://e.example/"])
    assert queue.close() == {}


@pytest.mark.parametrize("start", [None, PickleFifoDiskQueue, PickleLifoDiskQueue])
@pytest.mark.parametrize("downstream", QUEUE_CLASSES, ids=lambda cls: cls.__mro__[1].__name__)
def test_order_is_that_of_scrapys_queue(tmp_path, downstream, start):
    kinds = {"downstream": downstream, "start": start}
    requests = [
        Request(
            f"https://a.example/{n}",
            priority=n % 3 - 1,
            meta={"is_start_request": True} if n % 4 == 0 else None,
        )
        for n in range(30)
    ]
    theirs = scrapys(FakeCrawler(), key=tmp_path / "theirs", **kinds)
    (tmp_path / "ours").mkdir()
    moved = scrapys(FakeCrawler(), key=tmp_path / "ours", **kinds)
    for request in requests:
        theirs.push(request)
        moved.push(request)
    # Closed in the middle, too.
    time = Slow()
    queue = opened(tmp_path / "ours", moved.close(), time, **kinds)
    for _ in range(10):
        time.go_on()
    queue = opened(tmp_path / "ours", queue.close(), **kinds)
    late = Request("https://a.example/late")
    theirs.push(late)
    queue.push(late)
    assert drain(queue) == drain(theirs)
    assert queue.close() == {}
    theirs.close()


class WithCallback(scrapy.Spider):
    name = "renamed"

    def gone(self, response):
        pass


def test_a_request_that_can_not_be_read_is_told_and_left_out(tmp_path, caplog):
    crawler = FakeCrawler()
    crawler.spider = WithCallback()
    queue = scrapys(crawler, key=tmp_path, downstream=PickleLifoDiskQueue)
    for n in range(5):
        callback = crawler.spider.gone if n == 2 else None
        queue.push(Request(f"https://a.example/{n}", callback=callback))
    queue.push(Request("https://b.example/", callback=crawler.spider.gone))
    state = queue.close()
    after = FakeCrawler(Doors())
    queue = opened(tmp_path, state, crawler=after)
    assert sorted(drain(queue)) == [f"https://a.example/{n}" for n in (0, 1, 3, 4)]
    assert after.stats == {"robotstxt/queue/unreadable": 2, "robotstxt/queue/error_count": 2}
    (reason, _) = [text for text in caplog.messages if text.startswith("Unable to read request")]
    assert reason.startswith("Unable to read request: one of a.example - reason: Method 'gone' not")
    assert queue.close() == {}


def test_a_slot_whose_files_can_not_be_read_stays_where_it_is(tmp_path, caplog):
    state = left(tmp_path)
    (damaged,) = tmp_path.glob("c.example-*")
    (info,) = damaged.rglob("info.json")
    content = info.read_text()
    info.write_text("nonsense")
    queue = opened(tmp_path, state)
    assert sorted(drain(queue)) == sorted(url for url in NAMES if "//c." not in url)
    assert len(queue) == 0, "nothing keeps the crawl from its end"
    assert "The requests of c.example can't be moved; they stay where they are" in caplog.messages
    state = queue.close()
    assert_scrapys_queue_refuses(tmp_path, state)
    info.write_text(content)
    queue = opened(tmp_path, state)
    assert drain(queue) == ["https://c.example/start"]
    assert queue.close() == {}


def test_files_that_are_gone_are_no_error(tmp_path):
    state = left(tmp_path)
    for path in tmp_path.iterdir():
        shutil.rmtree(path)
    queue = opened(tmp_path, state)
    assert len(queue) == 0
    assert queue.close() == {}


def test_a_disk_that_fills_up_meanwhile_loses_nothing(tmp_path, caplog):
    state = left(tmp_path)
    queue = opened(tmp_path, state, time := Slow())
    queue._disk._connection.execute("PRAGMA query_only = 1")
    while time.timers:
        time.go_on()
    queue._disk._connection.execute("PRAGMA query_only = 0")
    before = drain(queue)
    queue = opened(tmp_path, queue.close())
    assert sorted(before + drain(queue)) == sorted(NAMES)
    assert queue.close() == {}


def test_there_are_queues_of_every_kind_to_move():
    assert len(QUEUE_CLASSES) == (8 if hasattr(squeues, "PickleFifoSQLiteQueue") else 4)


def test_a_damaged_row_about_a_slot_hinders_no_other(tmp_path, caplog):
    state = left(tmp_path)
    time = Slow()
    opened(tmp_path, state, time).close()
    with closing(sqlite3.connect(tmp_path / "requests.sqlite")) as connection, connection:
        connection.execute("UPDATE to_move SET priorities = 'x' WHERE slot = 'a.example'")
    queue = opened(tmp_path, OURS)
    assert {"https://b.example/1", "https://c.example/start"} <= {*drain(queue)}
    assert "The requests of a.example can't be moved; they stay where they are" in caplog.messages
    assert queue.close() == OURS
