"""What waits at the wire, in made-up time; on the network: tests/wire."""

import asyncio

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_rep.admission.ticket import TICKET_KEY, store_grant
from scrapy_rep.downloadermiddlewares.decide_again import DecideAgain
from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.downloadermiddlewares.wire import GivenBackError, Wire
from tests.admission.worker import Worker, page
from tests.waiting import settle

pytestmark = pytest.mark.event_loop


class Scene:
    """The wire of a worker whose site has a delay of one second."""

    def __init__(self, returned=None):
        self.worker = worker = Worker()
        worker.knows_delay(delay=1)
        self.sent = []
        self.returned = returned
        self.waits = WaitingRequests(
            worker.crawler, worker.decider, worker.admission, worker.time.clock
        )
        again = DecideAgain(worker.crawler, worker.decider, self.decide_again)
        self.wire = Wire(
            worker.admission, self.waits, again, lambda request: request, worker.time.clock
        )

    async def decide_again(self, request):
        if self.returned is None:
            store_grant(request, request.url, None, self.worker.time.wall + 60, {"delay": 1.0})
        return self.returned

    async def handler(self, request):
        self.sent.append((request, self.worker.time.now))
        return Response(request.url)

    def downloads(self, request, seconds=60.0):
        """Download a request whose decision is valid for ``seconds``."""
        store_grant(request, request.url, None, self.worker.time.wall + seconds, {"delay": 1.0})
        task = asyncio.ensure_future(self.wire.download(request, self.handler))
        settle()
        return task


def test_a_decision_that_is_not_valid_any_longer_is_made_again():
    scene = Scene()
    request = page(1)
    scene.downloads(request, seconds=0)
    assert scene.sent == [(request, 0.0)]


def test_what_is_given_back_by_the_new_decision_is_not_sent():
    back = Request("http://a.example/back")
    scene = Scene(returned=back)
    task = scene.downloads(page(1), seconds=0)
    assert task.exception().request is back
    assert scene.sent == []


def test_what_waits_when_the_crawl_closes_is_given_back():
    scene = Scene()
    scene.downloads(page(1))
    task = scene.downloads(request := page(2))
    scene.waits.close()
    settle()
    assert isinstance(task.exception(), GivenBackError)
    assert task.exception().request is request
    assert len(scene.sent) == 1


def test_what_has_to_wait_long_is_given_back():
    scene = Scene()
    scene.downloads(page(1))
    scene.worker.knows_delay(delay=30)
    scene.worker.time.advance(2)
    assert scene.worker.sends(page(2)) is None
    request = page(3)
    task = scene.downloads(request)
    assert task.exception().request is request
    assert len(scene.sent) == 1


def test_what_a_subclass_does_not_decide_on_any_longer_is_sent():
    scene = Scene()

    async def undecided(request):
        del request.meta[TICKET_KEY]

    scene.wire.again._process_request = undecided
    request = page(1)
    scene.downloads(request, seconds=0)
    assert scene.sent == [(request, 0.0)]
