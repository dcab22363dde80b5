"""Lanes that are on disk alone: order, memory, and errors while they are loaded."""

import sqlite3
from itertools import count

import pytest
from scrapy import Request

from scrapy_rep.protocol.origin import origin_of
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import Doors, FakeCrawler, drain, in_memory, on_disk, timed, urls

HOSTS = 40
NEW = "http://new.example/"


@pytest.fixture(autouse=True)
def _small_memory(monkeypatch):
    """As in a crawl of a million hosts: most slots are on disk alone."""
    monkeypatch.setattr("scrapy_rep.scheduler.lanes_on_disk._MAX_LANES", 10)
    monkeypatch.setattr("scrapy_rep.scheduler.lanes_on_disk._STEP", 5)


def many_pages(slots=HOSTS):
    # Neither in the order of their names nor against it.
    return [
        Request(f"http://{n * 37 % slots:03}.example/{page}") for page in "ab" for n in range(slots)
    ]


@pytest.fixture
def opened(tmp_path):
    """A queue with two requests to each of 40 hosts, all of them on disk, and its time."""
    on_disk(tmp_path, *many_pages()).close()
    time = MadeUpTime()
    queue, _ = timed(tmp_path, time)
    return queue, time


def drain_in_time(queue, time):
    """Pop all that comes within five minutes; the engine asks every five seconds."""
    popped = drain(queue)
    for _ in range(60):
        time.advance(5)
        popped += drain(queue)
    return sorted(popped)


def test_what_is_not_next_is_on_disk_alone(tmp_path):
    requests = many_pages(300)
    queue, other = on_disk(tmp_path, *requests), in_memory(*requests)
    assert (len(queue), len(queue._lanes)) == (600, 10)
    queue.close()
    queue = on_disk(tmp_path)
    assert (len(queue), len(queue._lanes)) == (600, 0)
    assert "050.example" in queue
    for left in range(600, 0, -1):
        assert len(queue) == left
        assert queue.pop().url == other.pop().url
        assert len(queue._lanes) <= 10 + 5
    assert len(queue) == 0


def test_origins_of_a_slot_keep_their_turns_in_memory(tmp_path):
    requests = [
        Request(f"{scheme}://{n:03}.example/{page}")
        for page in range(3)
        for n in range(20)
        for scheme in ("http", "https")
    ]
    assert drain(on_disk(tmp_path, *requests)) == drain(in_memory(*requests))


def test_links_that_come_meanwhile_have_their_turns(tmp_path):
    queue, other = on_disk(tmp_path, *many_pages()), in_memory(*many_pages())
    for number in range(60):
        links = [f"http://{number * 7 % 40:03}.example/{number}", f"http://new-{number}.example/"]
        for each in (queue, other):
            each.pop()
            for link in links:
                each.push(Request(link))
    assert sorted(drain(queue)) == sorted(drain(other))
    assert len(queue) == 0


def test_no_more_is_loaded_than_lookups_have_room_for(tmp_path):
    on_disk(tmp_path, *many_pages()).close()
    doors = Doors(set())
    crawler = FakeCrawler(doors)
    queue = on_disk(tmp_path, crawler=crawler)
    crawler.engine.paused = True
    doors.admission.lookups.add(origin_of(NEW))
    assert queue.pop() is None
    assert len(queue._lanes) == 0
    doors.admission.lookups.close()
    doors.open = None
    assert len(drain(queue)) == 2 * HOSTS


def steps_of_pops(folder, pages):
    """Return the steps that SQLite takes for 120 pops, with so many pages of each host."""
    folder.mkdir()
    crawler = FakeCrawler()
    queue = on_disk(folder, crawler=crawler)
    for page in range(pages):
        for host in range(HOSTS):
            queue.push(Request(f"http://{host:03}.example/{page}"))
    steps = count()
    connection = queue._lanes._file._connection
    connection.set_progress_handler(lambda: next(steps) < 0, 1)
    for _ in range(120):
        crawler.downloader.begin(request := queue.pop())
        crawler.downloader.end(request)
    connection.set_progress_handler(None, 1)
    queue.close()
    return next(steps)


def test_a_pop_takes_the_same_steps_whatever_a_host_has_waiting(tmp_path):
    few, many = (steps_of_pops(tmp_path / str(pages), pages) for pages in (10, 200))
    assert many <= few


@pytest.mark.parametrize("url", ["data:,x", "file:///x"])
def test_a_request_whose_url_has_no_host_is_loaded(tmp_path, url):
    requests = [Request(url), *many_pages()]
    on_disk(tmp_path, *requests).close()
    queue = on_disk(tmp_path)
    assert sorted(drain(queue)) == sorted(urls(requests))
    queue.push(Request(url))
    assert drain(queue) == [url]


def fail_to_load(queue, times):
    """Let so many reads of the lanes fail; return the function that reads."""
    run = queue._lanes._file._run
    left = iter(range(times))

    def failing(sql, *values):
        if "SELECT * FROM lanes" in sql and next(left, None) is not None:
            raise sqlite3.OperationalError("disk I/O error")
        return run(sql, *values)

    queue._lanes._file._run = failing
    return run


@pytest.mark.parametrize("times", [1, 6])
def test_an_error_while_slots_are_loaded_is_tried_again(opened, times):
    queue, time = opened
    fail_to_load(queue, times)
    assert queue.pop() is None
    assert drain_in_time(queue, time) == sorted(urls(many_pages()))
    assert len(queue) == 0


def test_slots_that_can_never_be_loaded_are_left_so_that_the_crawl_ends(opened, caplog):
    queue, time = opened
    run = fail_to_load(queue, 99)
    assert drain_in_time(queue, time) == []
    assert len(queue) == 0
    assert caplog.messages == [
        *["Requests in JOBDIR can't be read: 80"] * 6,
        "Requests can't be read, and are left in JOBDIR: 80",
    ]
    assert run("SELECT count(*) FROM requests").fetchone() == (80,)
    queue._lanes._file._run = run
    queue.push(Request(NEW))
    assert drain(queue) == [NEW]


@pytest.mark.parametrize("name", ["000.example", "003.example"])
def test_a_lane_that_was_left_comes_with_what_is_new_of_it(opened, name):
    queue, _ = opened
    first = queue.pop().url
    (lane,) = [lane for lane in queue._lanes._lanes.values() if lane.slot.name == name]
    left = lane.size
    queue._leave_on_disk(lane)
    assert len(queue) == 79 - left
    request = Request(f"http://{name}/new")
    queue.push(request)
    assert len(queue) == 80
    assert sorted([first, *drain(queue)]) == sorted(urls([*many_pages(), request]))
    assert len(queue) == 0
