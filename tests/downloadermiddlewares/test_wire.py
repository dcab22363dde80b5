"""What waits at the wire, in made-up time; on the network: tests/wire."""

import asyncio
import math
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_rep.admission.hold import IN_PAUSE, Hold
from scrapy_rep.admission.ticket import TICKET_KEY, Source, Ticket, store_grant
from scrapy_rep.downloadermiddlewares import wire
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.downloadermiddlewares.wire import GivenBackError, Wire
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import origin_of
from tests.admission.worker import SITE, Worker, page
from tests.waiting import settle

pytestmark = pytest.mark.event_loop


class Scene:
    """The wire of a worker whose site has a delay of one second, and whose scheduler keeps requests."""

    def __init__(self, places=16):
        self.worker = worker = Worker(CONCURRENT_REQUESTS=places)
        worker.knows_delay(delay=1)
        self.sent = []
        crawler, admission, clock = worker.crawler, worker.admission, worker.time.clock
        drops, more = SimpleNamespace(announcer=None), {"dry_run": None, "stores_requests": True}
        self.gate = Gate(crawler, admission, drops, clock, self.decide_again, **more)
        self.wire = Wire(crawler, admission, self.gate, clock)

    async def decide_again(self, request):
        self.allow(request, 60)

    def allow(self, request, seconds, delay=1.0, **more):
        ticket = Ticket(request.url, None, self.worker.time.wall + seconds, delay)
        request.meta[TICKET_KEY] = tuple(ticket._replace(**more))

    async def handler(self, request):
        self.sent.append((request, self.worker.time.now))
        return Response(request.url)

    def downloads(self, request, seconds=60.0):
        """Download a request whose decision is valid for ``seconds``."""
        self.allow(request, seconds)
        return self.starts(request)

    def starts(self, request):
        task = asyncio.ensure_future(self.wire.download(request, self.handler))
        settle()
        return task


def test_a_decision_that_is_not_valid_any_longer_is_made_again():
    scene = Scene()
    request = page(1)
    scene.downloads(request, seconds=0)
    assert scene.sent == [(request, 0.0)]


def test_a_direct_request_stays_direct_after_a_new_decision():
    scene = Scene()

    async def decides(request):
        scene.allow(request, 60, source="wire")

    scene.gate.process_request = decides
    request = page(1)
    scene.allow(request, 0, source="direct")
    asyncio.ensure_future(scene.gate.again(request, Source.WIRE))  # noqa: RUF006 - it ends now
    settle()
    assert Ticket(*request.meta[TICKET_KEY]).source == "direct"


def test_what_waits_when_the_crawl_closes_is_given_back():
    scene = Scene()
    scene.downloads(page(1))
    scene.allow(request := page(2), 60, source="queue")
    task = scene.starts(request)
    scene.gate.waits.close()
    settle()
    assert isinstance(task.exception(), GivenBackError)
    assert task.exception().request.url == request.url
    assert len(scene.sent) == 1


def test_what_has_to_wait_long_is_given_back():
    scene = Scene()
    scene.downloads(page(1))
    scene.worker.knows_delay(delay=30)
    scene.worker.time.advance(2)
    assert scene.worker.sends(page(2)) is None
    request = page(3)
    assert scene.downloads(request).exception().request.url == request.url
    assert len(scene.sent) == 1


def test_what_is_given_back_by_the_new_decision_is_not_sent_and_has_its_own_headers():
    scene = Scene()
    request, returned = page(1), []

    async def gives_back(request):
        returned.append(request.copy())
        return returned[0]

    scene.gate.process_request = gives_back
    assert scene.downloads(request, seconds=0).exception().request is returned[0]
    assert returned[0].headers == request.headers == {}
    assert scene.sent == []


def test_what_a_subclass_does_not_decide_on_any_longer_is_sent():
    scene = Scene()

    async def undecided(request):
        del request.meta[TICKET_KEY]

    scene.gate.process_request = undecided
    request = page(1)
    scene.downloads(request, seconds=0)
    assert scene.sent == [(request, 0.0)]


@pytest.mark.parametrize(
    ("lives", "path", "sent"), [([60, 60], "/x", 0), ([0, 0], "", 0), ([0, 60], "", 1)]
)
def test_what_a_subclass_changes_or_keeps_after_two_decisions_is_dropped(lives, path, sent):
    scene, lives = Scene(), iter(lives)

    async def changes_it(request):
        scene.allow(request, next(lives))
        request._set_url(request.url + path)

    scene.gate.process_request = changes_it
    scene.gate.drops.report = lambda *_, **__: None
    end = scene.downloads(page(1), seconds=0).exception()
    assert (len(scene.sent), "error" in str(end)) == (sent, not sent)


def test_in_a_pause_nothing_waits_here_that_has_waited_here_for_a_delay():
    scene = Scene()
    scene.worker.knows_delay(delay=30)
    first, request = page(1), page(2)
    assert scene.worker.sends(first) is None
    scene.allow(request, 600, delay=30.0, own_dont_filter=False)
    task = scene.starts(request)
    scene.worker.answered(first)
    scene.worker.time.advance(10)
    assert not task.done()
    scene.worker.answered(first, 429, retry_after=100)
    assert task.exception().request.url == request.url
    assert scene.sent == []


def test_what_the_host_holds_is_not_decided_on_again_until_it_may_be_sent():
    scene, first, request, decided = Scene(), page(1), page(2), []
    other = scene.worker.beside()
    other.knows_delay(delay=1)
    assert other.sends(first) is None

    async def for_a_second(request):
        decided.append((scene.worker.time.now, scene.wire._places._all))
        scene.allow(request, 1, own_dont_filter=False)

    scene.gate.process_request = for_a_second
    scene.allow(request, 0, own_dont_filter=False)
    scene.starts(request)
    for _ in range(20):
        scene.worker.time.advance(1)
        settle()
    assert (decided, scene.sent) == ([(0.0, 0)], [])
    other.answered(first)
    scene.worker.time.advance(1)
    settle()
    assert (decided, scene.sent) == ([(0.0, 0), (21.0, 1)], [(request, 21.0)])


class Slow(Scene):
    """A wire with two places, whose handler ends when the test says so."""

    def __init__(self):
        super().__init__(places=2)
        self.ends = []

    async def handler(self, request):
        self.sent.append(request)
        self.ends.append(end := asyncio.get_running_loop().create_future())
        await end
        return Response(request.url)

    def allowed(self, n):
        request = Request(f"http://other-{n}.example/")
        store_grant(request, request.url)
        return self.starts(request)


def test_as_many_pages_are_on_the_wire_as_there_are_places():
    scene = Slow()
    tasks = [scene.allowed(n) for n in range(5)]
    assert len(scene.sent) == 2
    tasks[3].cancel()
    settle()
    for left in (3, 4, 4):
        scene.ends[len(scene.sent) - 2].set_result(None)
        settle()
        assert len(scene.sent) == left
    assert [origin_of(request.url).host for request in scene.sent] == [
        f"other-{n}.example" for n in (0, 1, 2, 4)
    ]
    scene.ends[3].set_exception(OSError())
    settle()
    assert scene.allowed(6).done() is False
    assert len(scene.sent) == 5


class Late(Slow):
    """A wire where the place of a request comes too late, until it is decided on with it."""

    def __init__(self):
        super().__init__()
        self.late, self.decided = page(1), []
        self.gate.process_request = self.for_a_second

    async def for_a_second(self, request):
        self.decided.append(self.worker.time.now)
        if len(self.decided) > 3:
            await self.in_place()
        self.allow(request, 1, delay=0.0, own_dont_filter=False)

    async def in_place(self):
        """What the gate waits for then."""

    def runs(self):
        for n in range(60):
            self.allowed(n)
            if n == 2:
                self.allow(self.late, 0, own_dont_filter=False)
                self.starts(self.late)
            if n > 3:
                self.worker.time.advance(5)
                self.ends[n - 4].set_result(None)
                settle()
            if self.late in self.sent:
                break


def test_no_decision_is_older_than_the_place():
    scene = Late()
    scene.runs()
    assert scene.late in scene.sent
    assert scene.decided == [0, 10, 25, 55]
    assert scene.worker.time.now == 55


def test_what_keeps_its_place_is_not_sent_in_a_pause_that_begins_meanwhile():
    scene = Late()

    async def pause():
        scene.worker.hosts.ended(page(2), 0.0, Response(SITE, 429, {"Retry-After": "100"}))

    scene.in_place = pause
    scene.runs()
    assert len(scene.decided) > 3
    assert scene.late not in scene.sent


def test_no_place_is_kept_for_a_long_lookup(monkeypatch):
    monkeypatch.setattr(wire, "_IN_PLACE", 0.0)
    scene = Late()
    scene.in_place = asyncio.Event().wait
    scene.runs()
    assert len(scene.decided) == 5  # the last time without a place
    assert scene.late not in scene.sent
    assert [end.done() for end in scene.ends].count(False) == 2


def test_a_slow_decision_has_more_time_in_its_place_each_time(monkeypatch):
    scene, seen = Late(), []

    async def in_time(seconds, work):
        seen.append(seconds)
        if seconds < 4:
            work.close()
            raise TimeoutError
        await work

    monkeypatch.setattr(wire, "within", in_time)
    scene.runs()
    assert seen == [0.5, 1, 2, 4]
    assert scene.late in scene.sent


def test_a_robots_txt_takes_no_place():
    scene = Slow()
    for n in range(3):
        scene.allowed(n)
    request = Request("http://other.example/robots.txt", meta={TRANSFER_KEY: None})
    task = scene.starts(request)
    assert scene.sent[-1] is request
    assert not task.done()


def test_all_that_wait_for_the_same_are_told():
    scene, origin = Scene(), origin_of(SITE)
    hold = Hold(IN_PAUSE, math.inf)
    waits = [scene.gate.waits.wait(origin, hold, Source.DIRECT) for _ in range(2)]
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    settle()
    assert not any(task.done() for task in tasks)
    scene.worker.admission._hold_changed(origin)
    settle()
    assert all(task.done() for task in tasks)
