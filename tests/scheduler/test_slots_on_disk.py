"""Slots that are on disk alone: memory, and errors while they are loaded."""

from __future__ import annotations

import sqlite3
from itertools import count

import pytest
from scrapy import Request

from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import FakeCrawler, drain, ours
from tests.scheduler.test_requests_on_disk import filled, many_pages, timed


def drain_in_time(queue, time):
    """Pop all that comes within five minutes; the engine asks every five seconds."""
    urls = drain(queue)
    for _ in range(60):
        time.advance(5)
        urls += drain(queue)
    return urls


def urls_of(requests):
    return sorted(request.url for request in requests)


@pytest.fixture
def opened(tmp_path, small_memory):
    """A queue with two requests to each of 40 hosts, all of them on disk, and its time."""
    filled(tmp_path, *many_pages(40)).close()
    time = MadeUpTime()
    queue, _ = timed(tmp_path, time)
    yield queue, time
    queue.close()


def test_what_was_served_is_on_disk_until_its_next_turn(tmp_path, small_memory):
    requests = many_pages(300)
    filled(tmp_path, *requests).close()
    queue = ours(FakeCrawler(), key=tmp_path)
    in_memory = ours(FakeCrawler())
    for request in requests:
        in_memory.push(request)
    for left in range(600, 0, -1):
        assert len(queue) == left
        assert queue.pop().url == in_memory.pop().url
        assert len(queue._lanes) <= 10 + 5
    assert len(queue) == 0
    queue.close()


def steps_of_pops(folder, pages):
    """Return the steps that SQLite takes for 120 pops, with so many pages of each of 40 hosts."""
    folder.mkdir()
    crawler = FakeCrawler()
    queue = ours(crawler, key=folder)
    for page in range(pages):
        for host in range(40):
            queue.push(Request(f"http://{host:03}.example/{page}"))
    steps = count()
    queue._disk._file._connection.set_progress_handler(lambda: next(steps) < 0, 1)
    for _ in range(120):
        crawler.downloader.begin(request := queue.pop())
        crawler.downloader.end(request)
    queue._disk._file._connection.set_progress_handler(None, 1)
    queue.close()
    return next(steps)


def test_a_pop_takes_the_same_steps_whatever_a_host_has_waiting(tmp_path, small_memory):
    few, many = (steps_of_pops(tmp_path / str(pages), pages) for pages in (10, 200))
    assert many <= few


@pytest.mark.parametrize("url", ["data:,x", "file:///x"])
def test_a_request_whose_url_has_no_host_is_loaded(tmp_path, small_memory, url):
    requests = [Request(url), *many_pages(20)]
    filled(tmp_path, *requests).close()
    queue = ours(FakeCrawler(), key=tmp_path)
    assert sorted(drain(queue)) == urls_of(requests)
    queue.push(Request(url))
    assert drain(queue) == [url]
    queue.close()


def test_origins_of_a_slot_keep_their_turns_in_memory(tmp_path, small_memory):
    requests = [
        Request(f"{scheme}://{n:03}.example/{page}")
        for page in range(3)
        for n in range(20)
        for scheme in ("http", "https")
    ]
    queue = filled(tmp_path, *requests)
    in_memory = ours(FakeCrawler())
    for request in requests:
        in_memory.push(request)
    assert drain(queue) == drain(in_memory)
    queue.close()


def failing(times, fails, call):
    """Return ``call``, with so many errors where ``fails`` says so of its first argument."""
    left = iter(range(times))

    def calls(of, *others):
        if fails(of) and next(left, None) is not None:
            raise sqlite3.OperationalError("disk I/O error")
        return call(of, *others)

    return calls


@pytest.mark.parametrize("times", [1, 6])
def test_a_lane_that_can_not_be_looked_at_is_tried_again(opened, times):
    queue, time = opened
    queue._disk.set_next_key = failing(
        times, lambda lane: lane.slot.name[:3] == "003", queue._disk.set_next_key
    )
    assert drain(queue), "others go on"
    queue.push(Request("http://003.example/new"))
    expected = urls_of([*many_pages(40), Request("http://003.example/new")])
    assert len(queue) == 3
    assert sorted(drain_in_time(queue, time)) == [url for url in expected if "//003." in url]


@pytest.mark.parametrize("times", [1, 6])
def test_an_error_while_slots_are_loaded_is_tried_again(opened, times):
    queue, time = opened
    queue._disk._file._run = failing(
        times, lambda sql: "SELECT * FROM lanes" in sql, queue._disk._file._run
    )
    assert queue.pop() is None
    assert sorted(drain_in_time(queue, time)) == urls_of(many_pages(40))
    assert len(queue) == 0


def test_slots_that_can_never_be_loaded_are_left_so_that_the_crawl_ends(opened, caplog):
    queue, time = opened
    run = queue._disk._file._run
    queue._disk._file._run = failing(99, lambda sql: "SELECT * FROM lanes" in sql, run)
    assert drain_in_time(queue, time) == []
    assert len(queue) == 0
    assert caplog.messages == [
        *["Requests in JOBDIR can't be read: 80"] * 6,
        "Requests can't be read, and are left in JOBDIR: 80",
    ]
    assert queue._disk.number_of_requests() == 80
    queue._disk._file._run = run
    queue.push(Request("http://new.example/"))
    assert drain(queue) == ["http://new.example/"]


@pytest.mark.parametrize("name", ["000.example", "003.example"])
def test_a_lane_that_was_left_comes_with_what_is_new_of_it(opened, name):
    queue, _ = opened
    first = queue.pop().url
    (lane,) = [lane for lane in queue._lanes if lane.slot.name == name]
    left = lane.size
    queue._leave_on_disk(lane)
    assert len(queue) == 79 - left
    queue.push(Request(f"http://{name}/new"))
    assert len(queue) == 80
    expected = urls_of([*many_pages(40), Request(f"http://{name}/new")])
    assert sorted([first, *drain(queue)]) == expected
    assert len(queue) == 0
