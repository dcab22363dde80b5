"""The queue alone: order, what it keeps back, what it leaves on disk."""

from __future__ import annotations

import random

import pytest
import scrapy
from scrapy import Request
from scrapy.squeues import (
    FifoMemoryQueue,
    LifoMemoryQueue,
)

from tests.scheduler.queues import Doors, FakeCrawler, drain, ours, scrapys

IN_TURNS = pytest.mark.skipif(
    scrapy.version_info < (2, 19), reason="Scrapy's queue takes slots of equal load by name alone"
)


def pages(host, *paths, **kwargs):
    return [Request(f"https://{host}/{path}", **kwargs) for path in paths]


def urls(*requests):
    return [request.url for request in requests]


@IN_TURNS
@pytest.mark.parametrize("downstream", [FifoMemoryQueue, LifoMemoryQueue])
@pytest.mark.parametrize("start", [None, FifoMemoryQueue])
@pytest.mark.parametrize("seed", range(6))
def test_order_is_that_of_scrapys_queue(downstream, start, seed):
    dice = random.Random(seed)
    crawler = FakeCrawler(Doors())
    queues = [make(crawler, downstream=downstream, start=start) for make in (scrapys, ours)]
    hosts = [f"{dice.randrange(10**6)}.example" for _ in range(1 + 5 * seed)]
    active = []
    popped = 0
    for step in range(1500):
        act = dice.random()
        if act < 0.45:
            request = Request(
                f"https://{dice.choice(hosts)}/{step}",
                priority=dice.choice([0, 0, 0, 1, -1, 10]),
                meta={"is_start_request": True} if dice.random() < 0.3 else None,
            )
            for queue in queues:
                queue.push(request.copy())
        elif act < 0.5:
            assert len(queues[0]) == len(queues[1])
            theirs, our = (queue.pop() for queue in queues)
            assert (theirs and theirs.url) == (our and our.url)
        elif act < 0.8:
            theirs, our = (queue.pop() for queue in queues)
            assert (theirs and theirs.url) == (our and our.url)
            if our is not None:
                popped += 1
                if dice.random() < 0.8:
                    crawler.downloader.begin(our)
                    active.append(our)
        elif active:
            crawler.downloader.end(active.pop(dice.randrange(len(active))))
    assert popped > 300
    assert drain(queues[0]) == drain(queues[1])
    assert len(queues[1]) == 0


def test_requests_wait_until_their_origin_is_open():
    doors = Doors()
    doors.open = set()
    queue = ours(FakeCrawler(doors))
    waiting = pages("a.example", 1, 2, 3)
    for request in (*waiting, *pages("b.example", 1)):
        queue.push(request)
    assert queue.pop() is None
    assert len(queue) == 4
    assert sorted(doors.asked) == ["https://a.example", "https://b.example"]
    assert queue.pop() is None
    assert len(doors.asked) == 2, "asked once, not at every pop"
    queue.push(Request("https://a.example/4", priority=9))
    doors.let("https://a.example")
    assert drain(queue) == ["https://a.example/4", *urls(*waiting)]
    assert len(queue) == 1
    doors.let("https://b.example")
    assert drain(queue) == ["https://b.example/1"]
    assert len(queue) == 0
    assert drain(queue) == []


def test_an_origin_that_waits_holds_up_no_other_of_its_slot():
    doors = Doors()
    doors.open = {"http://a.example"}
    queue = ours(FakeCrawler(doors))
    queue.push(Request("https://a.example/1", priority=5))
    queue.push(Request("http://a.example/1"))
    assert drain(queue) == ["http://a.example/1"]
    doors.let("https://a.example")
    assert drain(queue) == ["https://a.example/1"]


def test_origins_of_a_slot_take_turns_by_priority():
    queue = ours(FakeCrawler(Doors()))
    for path, priority in ((1, 0), (2, 0), (3, 7)):
        queue.push(Request(f"https://a.example/{path}", priority=priority))
        queue.push(Request(f"http://a.example/{path}", priority=priority))
    popped = drain(queue)
    assert {*popped[:2]} == {"https://a.example/3", "http://a.example/3"}
    assert [url.split(":")[0] for url in popped[2:]] in (
        ["https", "http"] * 2,
        ["http", "https"] * 2,
    )


@pytest.mark.parametrize(
    "request_",
    [
        Request("https://a.example/1", meta={"dont_obey_robotstxt": True}),
        Request("https://a.example/robots.txt"),
        Request("data:,x"),
        Request("http:///x"),
        Request("file:///x"),
    ],
    ids=lambda request: request.url,
)
def test_what_robots_txt_does_not_govern_does_not_wait(request_):
    doors = Doors()
    doors.open = set()
    queue = ours(FakeCrawler(doors))
    queue.push(request_)
    assert drain(queue) == [request_.url]
    assert doors.asked == []


def test_without_the_middleware_nothing_waits():
    queue = ours(FakeCrawler())
    for request in pages("a.example", 1, 2):
        queue.push(request)
    assert "a.example" in queue
    assert drain(queue) == ["https://a.example/1", "https://a.example/2"]
    assert "a.example" not in queue


def test_a_busy_slot_whose_requests_wait_is_passed_over():
    doors = Doors()
    crawler = FakeCrawler(doors)
    queue = ours(crawler)
    for request in (*pages("a.example", 1, 2), *pages("b.example", 1, 2)):
        queue.push(request)
        crawler.downloader.begin(request)
    doors.open = {"https://b.example"}
    assert drain(queue) == ["https://b.example/1", "https://b.example/2"]
    assert len(queue) == 2


@pytest.mark.filterwarnings("ignore:The CONCURRENT_REQUESTS_PER_IP setting is deprecated")
def test_concurrent_requests_per_ip_is_refused_as_by_scrapys_queue():
    crawler = FakeCrawler(Doors())
    crawler.settings.set("CONCURRENT_REQUESTS_PER_IP", 2)
    with pytest.raises(ValueError, match="CONCURRENT_REQUESTS_PER_IP"):
        ours(crawler)


def test_pop_looks_at_no_slot_twice():
    """Ten times as many slots that wait make no pop slower: each is asked about once."""
    doors = Doors()
    doors.open = {"https://open.example"}
    queue = ours(FakeCrawler(doors))
    for n in range(500):
        queue.push(Request(f"https://{n}.example/"))
    for request in pages("open.example", *range(50)):
        queue.push(request)
    looked = []
    queue._ready_lane = lambda slot, look=queue._ready_lane: looked.append(slot.name) or look(slot)
    assert len(drain(queue)) == 50
    assert len(looked) <= 500 + 50 + 2


def test_a_slot_whose_name_is_no_text_hinders_no_other(tmp_path):
    for key in ("", tmp_path):
        queue = ours(FakeCrawler(), key=key)
        names = [5, "a", 2.5, "b", True]
        for name in names:
            queue.push(Request("https://a.example/", meta={"download_slot": name}))
        assert len(drain(queue)) == len(names)
        queue.close()


def test_a_slot_that_is_busy_with_a_direct_download_comes_after_idle_ones():
    crawler = FakeCrawler()
    queue = ours(crawler)
    for host in "abc":
        queue.push(Request(f"https://{host}.example/"))
    assert queue.pop().url == "https://a.example/"
    crawler.downloader.begin(Request("https://b.example/direct"))
    assert drain(queue) == ["https://c.example/", "https://b.example/"]


def test_ranks_that_have_changed_take_no_memory():
    queue = ours(FakeCrawler())
    requests = [Request(f"https://a.example/{n}", priority=n) for n in range(100)]
    for request in requests:
        queue.push(request)
    assert len(queue._lanes.slots["a.example"].ranks) < 20
    assert drain(queue) == urls(*reversed(requests))
