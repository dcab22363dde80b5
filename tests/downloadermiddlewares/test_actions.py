"""What becomes of a request: a table of cases, by what is known and from where it comes."""

import asyncio
from itertools import count
from time import time
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from scrapy_rep import (
    RobotsTxtFetchMiddleware,
    RobotsTxtMiddleware,
    RobotsTxtResponseMiddleware,
)
from scrapy_rep.admission.ticket import Source, copy_for_scheduler, store_source, ticket_of
from scrapy_rep.downloadermiddlewares.crawl_parts import CrawlParts
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Unreachable
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.settings import Options
from scrapy_rep.utils.per_crawl import get_part
from tests.stores.records import put
from tests.waiting import settle

# As it was decided on, by hand: nothing of it is read from the code.
TABLE = """
    allowed       | pass      | pass    | pass    | pass
    held          | pass      | pass    | wait    | wait
    refused       | drop      | drop    | drop    | drop
    forbidden     | drop      | drop    | drop    | drop
    deferred      | give back | drop    | drop    | wait
    unknown       | wait      | wait    | wait    | wait
    closing       | if kept   | if kept | if kept | wait
    closing again | if kept   | if kept | if kept | wait
"""
SOURCES = ("queue", "overdue", "scheduler", "direct")
CELLS = [
    (situation.strip(), source, action.strip())
    for situation, *actions in (line.split("|") for line in TABLE.strip().splitlines())
    for source, action in zip(SOURCES, actions, strict=True)
]
cells = pytest.mark.parametrize(("situation", "source", "action"), CELLS)
pytestmark = pytest.mark.event_loop


def action_in(situation, source):
    return next(action for *where, action in CELLS if where == [situation, source])


# The middleware in every situation, with all the parts of a crawl; nothing is fetched.

NUMBERS = count()
"""Of the scenes: what is known of a site is known to all crawls of the process."""
PRIORITY = 7
RULES = {
    "allowed": b"",
    "forbidden": b"User-agent: *\nDisallow: /\n",
    "delay": b"User-agent: *\nCrawl-delay: 200\n",
}


class Queue:
    """A queue of the scheduler that holds nothing any more: all has come to the middleware."""

    def stop(self):
        return 0


class Scene:
    """The middleware of a crawl, and what this knows of sites."""

    def __init__(self, *, keeps=True, **settings):
        self.url = f"http://site-{next(NUMBERS)}.example/page"
        self.crawler = get_crawler(
            settings_dict={
                "ROBOTSTXT_OBEY": True,
                "REP_STORE": "memory://",
                "REP_DEFER_TIMEOUT": 10,
                "USER_AGENT": "testbot/1.0",
                "CONCURRENT_REQUESTS": 1,
                "DOWNLOADER_MIDDLEWARES": {
                    RobotsTxtFetchMiddleware: 1_000,
                    RobotsTxtResponseMiddleware: 0,
                },
                **({"JOBDIR": "."} if keeps else {}),
                **settings,
            }
        )
        self.crawler.engine = SimpleNamespace(downloader=None, paused=True)
        self.middleware = RobotsTxtMiddleware.from_crawler(self.crawler)
        self.parts = get_part(self.crawler, CrawlParts)
        self.parts.lookups.read_after = 0.0
        self.admission = self.middleware.admission

    def record(self, kind):
        origin = origin_of(self.url)
        evidence = {"at": time(), "url": origin.robotstxt_url}
        if kind == "unreachable":
            outcome = Unreachable(Evidence(**evidence, status=503, retry_after="5"))
        else:
            outcome = Available(RULES[kind], Evidence(**evidence, status=200))
        return Options.of(self.crawler).policy.record_after(None, origin, outcome, jitter=0.0)

    def knows(self, kind):
        """Put the robots.txt of a site in memory."""
        record = self.record(kind)
        self.parts.lookups.cache.put_record(
            record.origin, record, self.middleware.decider.tokens.default()
        )

    def finds(self, kind):
        """Put it in the store, where it is looked up."""
        self.parts.lookups.store.put(put(self.record(kind)))
        settle()

    def has_sent(self):
        """A request to a site with a delay has left just now."""
        self.knows("delay")
        assert self.admission.admit(origin_of(self.url), lambda: Request(self.url)) is None

    def was_refused(self):
        """The site has refused a request for longer than requests wait."""
        self.knows("allowed")
        response = Response(self.url, status=429, headers={"Retry-After": "100"})
        self.admission.hosts.ended(Request(self.url), 0.0, response)

    def is_in(self, situation):
        """Bring it about; return whether the request was given back before."""
        if situation == "unknown":
            self.finds("allowed")
        elif situation.startswith("closing"):
            self.finds("allowed")
            self.parts._close()
        elif situation == "held":
            self.has_sent()
        elif situation == "refused":
            self.was_refused()
        else:
            self.knows({"deferred": "unreachable"}.get(situation, situation))
        return situation == "closing again"

    def request(self, source, *, returned=False):
        request = Request(self.url, priority=PRIORITY)
        if returned:
            request = copy_for_scheduler(request)
        if source in {"queue", "overdue"}:
            self.admission.queues.append(Queue())
        if source != "direct":
            store_source(request, Source(source))
        return request

    def process(self, request):
        """What the middleware does with ``request``, and the task in which it waits."""
        try:
            task = asyncio.ensure_future(as_coroutine(self.middleware.process_request(request)))
        except IgnoreRequest:
            return "drop", None
        for _ in range(5):
            settle()
        return self.outcome(request, task), task

    def outcome(self, request, task):
        if not task.done():
            return "wait"
        if isinstance(task.exception(), IgnoreRequest):
            return "drop"
        returned = task.result()
        if returned is None:
            assert ticket_of(request) is not None
            return "pass"
        # What goes back is a request of its own: what was noted of it is nobody else's.
        assert returned is not request
        assert (returned.dont_filter, returned.priority) == (True, PRIORITY)
        return "give back"

    @property
    def waited(self):
        return self.crawler.stats.get_value("robotstxt/waited", 0)

    def ends(self, task):
        """End what waits, as when the crawl closes."""
        self.parts._close()
        if task is not None:
            settle()
            task.cancel()
            settle()
            task.cancelled() or task.exception()


async def as_coroutine(awaitable):
    return await awaitable


@pytest.mark.parametrize("keeps", [True, False])
@cells
def test_the_middleware_does_what_the_cell_says(situation, source, action, keeps):
    scene = Scene(keeps=keeps)
    done, task = scene.process(scene.request(source, returned=scene.is_in(situation)))
    expected = {"if kept": "give back" if keeps else "drop"}.get(action, action)
    if expected == "wait" and situation not in {"held", "deferred"}:
        assert scene.waited == 1
        expected = "pass"  # when it is known
    assert done == expected
    scene.ends(task)


@cells
def test_a_dry_run_drops_nothing(situation, source, action):
    scene = Scene(keeps=False, REP_DRY_RUN=True)
    done, task = scene.process(scene.request(source, returned=scene.is_in(situation)))
    assert done == "pass"
    scene.ends(task)


@pytest.mark.parametrize(("dry_run", "ends"), [(False, "drop"), (True, "pass")])
@pytest.mark.parametrize("source", SOURCES)
def test_after_an_error_a_request_is_dropped_unless_in_a_dry_run(source, dry_run, ends):
    scene = Scene(REP_DRY_RUN=dry_run)

    def known_decision(request):
        raise ZeroDivisionError("made up")

    scene.middleware.decider.known_decision = known_decision
    done, task = scene.process(scene.request(source))
    assert done == ends
    scene.ends(task)


@pytest.mark.parametrize(
    ("situation", "source", "ends"),
    [
        ("deferred", "queue", "wait"),
        ("closing", "queue", "pass"),
        ("closing", "scheduler", "pass"),
    ],
)
def test_what_comes_back_past_the_scheduler_does_not_go_round_and_round(situation, source, ends):
    """As ``download_async`` does with whatever is given back to it."""
    scene = Scene()
    scene.is_in(situation)
    done, task = scene.process(scene.request(source))
    assert done == "give back"
    done, task = scene.process(task.result())
    assert done == ends
    scene.ends(task)


@pytest.mark.parametrize(("returned", "ends"), [(False, "give back"), (True, "drop")])
def test_what_the_wire_finds_to_be_unreachable_is_deferred_once(returned, ends):
    """A middleware may change its URL back, so that it would come to the wire at once, for ever."""
    scene = Scene()
    scene.is_in("deferred")
    request = scene.request("queue", returned=returned)
    store_source(request, Source.WIRE)
    done, task = scene.process(request)
    assert done == ends
    scene.ends(task)


@pytest.mark.parametrize(
    ("found", "situation"),
    [("allowed", "allowed"), ("forbidden", "forbidden"), ("unreachable", "deferred")],
)
@pytest.mark.parametrize("source", SOURCES)
def test_who_has_waited_goes_by_the_table(source, found, situation):
    scene = Scene()
    scene.finds(found)
    done, task = scene.process(scene.request(source))
    assert done == action_in(situation, source)
    assert scene.waited == 1
    scene.ends(task)
    assert scene.parts.gate.waits.uncounted == 0


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize("source", ["scheduler", "direct"])
def test_who_waits_for_a_delay_when_the_crawl_closes_goes_by_the_table(source, returned, keeps):
    scene = Scene(keeps=keeps)
    scene.has_sent()
    request = scene.request(source, returned=returned)
    done, task = scene.process(request)
    assert done == "wait"
    scene.parts._close()
    settle()
    assert scene.outcome(request, task) == ("give back" if keeps else "drop")
    assert keeps or task.exception().verdict.reason is Reason.CLOSING
    assert scene.parts.gate.waits.uncounted == 0


def test_who_would_wait_for_its_turn_as_the_crawl_closes_is_given_back():
    scene = Scene()
    scene.has_sent()
    _, first = scene.process(scene.request("direct"))
    request = scene.request("direct")
    task = asyncio.ensure_future(as_coroutine(scene.middleware.process_request(request)))
    scene.parts._close()
    settle()
    assert scene.outcome(request, task) == "give back"
    scene.ends(first)


@pytest.mark.parametrize(("source", "counts"), [("scheduler", [0, 1]), ("direct", [0, 0])])
def test_a_bounded_number_of_another_scheduler_waits_beside_its_places(source, counts, monkeypatch):
    """Further ones take its places, as with the built-in: else all its requests would wait here."""
    monkeypatch.setattr("scrapy_rep.downloadermiddlewares.waits._MOST_UNCOUNTED", 1)
    scene = Scene()
    scene.crawler.engine.downloader = downloader = SimpleNamespace(total_concurrency=1)
    scene.has_sent()
    waiting, taken = [], []
    for number in range(1, 3):
        done, task = scene.process(scene.request(source))
        assert done == "wait"
        waiting.append(task)
        taken.append(number - (downloader.total_concurrency - 1))
    assert taken == counts
    for task in waiting:
        scene.ends(task)
    assert downloader.total_concurrency == 1
