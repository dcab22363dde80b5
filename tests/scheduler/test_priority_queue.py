"""The queue alone: order, what it keeps back, what it leaves on disk."""

import random

import pytest
import scrapy
from scrapy import Request
from scrapy.http import Response
from scrapy.squeues import FifoMemoryQueue, LifoMemoryQueue

from scrapy_rep.admission.deferral import MARGIN
from scrapy_rep.admission.ticket import TICKET_KEY, Ticket
from tests.admission.parts import TIMEOUT
from tests.admission.scene import A, Scene
from tests.scheduler.queues import Doors, FakeCrawler, drain, in_memory, ours, pages, scrapys, urls


@pytest.mark.skipif(
    scrapy.version_info < (2, 19), reason="Scrapy's queue takes slots of equal load by name alone"
)
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


def test_origins_of_a_slot_take_turns_by_priority():
    popped = drain(
        in_memory(
            *(
                Request(f"{scheme}://a.example/{path}", priority=priority)
                for path, priority in ((1, 0), (2, 0), (3, 7))
                for scheme in ("https", "http")
            )
        )
    )
    assert {*popped[:2]} == {"https://a.example/3", "http://a.example/3"}
    turns = [url.split(":")[0] for url in popped[2:]]
    assert turns in (["https", "http"] * 2, ["http", "https"] * 2)


def test_what_robots_txt_does_not_govern_does_not_wait():
    doors = Doors(set())
    requests = [
        Request("https://a.example/1", meta={"dont_obey_robotstxt": True}),
        *map(Request, ["https://a.example/robots.txt", "data:,x", "http:///x", "file:///x"]),
    ]
    assert sorted(drain(in_memory(*requests, crawler=FakeCrawler(doors)))) == sorted(urls(requests))
    assert doors.asked == []


def test_pop_looks_at_no_slot_twice():
    """Ten times as many slots that wait make no pop slower: each is asked about once."""
    requests = [Request(f"https://{n}.example/") for n in range(1_200)]
    requests += pages("open.example", *range(50))
    queue = in_memory(*requests, crawler=FakeCrawler(Doors({"https://open.example"})))
    looked = []
    queue._source_if_free = lambda lane, ask=queue._source_if_free: looked.append(lane) or ask(lane)
    # A pop asks about 200 lanes at most, and wakes the engine.
    assert sum(len(drain(queue)) for _ in range(7)) == 50
    assert len(looked) <= 1_200 + 50 + 2


def test_a_slot_that_is_busy_with_a_direct_download_comes_after_idle_ones():
    crawler = FakeCrawler()
    queue = in_memory(*(Request(f"https://{host}.example/") for host in "abc"), crawler=crawler)
    assert queue.pop().url == "https://a.example/"
    crawler.downloader.begin(Request("https://b.example/direct"))
    assert drain(queue) == ["https://c.example/", "https://b.example/"]


# How long requests of unreachable origins are deferred, in made-up time.


@pytest.mark.event_loop
def test_patience_counts_from_the_first_time_through_all_tries():
    scene = Scene()
    scene.push(A)
    scene.knows(A, unreachable=True, seconds=7)
    while not (popped := scene.pop()):
        scene.time.advance(7 + MARGIN)
        scene.knows(A, unreachable=True, seconds=7)
    assert popped == [(A, "overdue")]
    # The next try would come after the end.
    assert TIMEOUT - 7 - MARGIN <= scene.time.now <= TIMEOUT
    assert scene.crawler.stats == {"robotstxt/deferred": 1}


@pytest.mark.event_loop
def test_an_origin_that_is_reached_again_has_new_patience():
    scene = Scene()
    scene.knows(A, unreachable=True, seconds=TIMEOUT - 5)
    assert scene.asks(A, A) == []
    scene.time.advance(TIMEOUT - 5 + MARGIN)
    scene.knows(A)
    assert scene.pop() == [(A, "queue")] * 2
    scene.knows(A, unreachable=True, seconds=TIMEOUT - 5)
    assert scene.asks(A) == []
    assert scene.admission.deferral.count_deferred() == 1


@pytest.mark.event_loop
def test_what_a_middleware_returns_in_place_of_a_request_takes_its_turn():
    scene = Scene()
    scene.knows(A, b"User-agent: *\nCrawl-delay: 9\n")
    scene.queue.push(Request(f"{A}/1"))
    request = scene.queue.pop()
    request.meta[TICKET_KEY] = tuple(Ticket(request.url, delay=9.0))
    scene.queue.push(request.replace(url=f"{A}/2"))
    scene.queue.push(Request(f"{A}/3"))
    assert drain(scene.queue) == [f"{A}/2"]


@pytest.mark.event_loop
def test_an_unreachable_site_of_a_host_that_refuses_all_requests_is_deferred():
    scene = Scene(REP_DEFER_TIMEOUT=10)
    scene.knows(A, unreachable=True, seconds=7)
    refusal = Response(f"{A}/", status=429, headers={"Retry-After": "100"})
    scene.admission.hosts.ended(Request(f"{A}/"), 0.0, refusal)
    assert scene.admission.hosts.is_dropping(A.host)
    assert scene.asks(A) == []
