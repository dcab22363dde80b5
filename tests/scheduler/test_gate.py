"""The gate in made-up time, on the real event loop: why requests wait, and who is told when."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep import CrawlClosingError
from scrapy_rep.cache.entry import Entry
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outage import Outage
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.hold import HoldReason
from scrapy_rep.scheduler.source import Source
from scrapy_rep.settings import Options
from scrapy_rep.utils.per_crawl import add_part
from tests.made_up_time import MadeUpTime
from tests.waiting import settle

TIMEOUT = 60.0
DEFERRING = {"REP_UNREACHABLE_ACTION": "defer", "REP_DEFER_TIMEOUT": TIMEOUT}
LOOKUP, UNREACHABLE = HoldReason.LOOKUP, HoldReason.UNREACHABLE
A, B, C = (origin_of(f"http://{name}.example") for name in "abc")


pytestmark = pytest.mark.event_loop


class Crawler:
    """An engine that counts how often it is to ask the scheduler again."""

    def __init__(self):
        self.nudges = 0
        self.stats = SimpleNamespace(inc_value=self.count)
        self.counts = Counter()
        self.spider = None
        self.settings = Settings()
        self.pending = True
        self.idles = 0
        self.feed = None
        self.nothing_leaves = lambda: None
        self.signals = SimpleNamespace(connect=self.connect, send_catch_log=self.idle)
        self.engine = SimpleNamespace(
            paused=False,
            downloader=SimpleNamespace(active=set()),
            scraper=SimpleNamespace(slot=SimpleNamespace(is_idle=lambda: True)),
            _slot=SimpleNamespace(
                closing=None,
                nextcall=SimpleNamespace(schedule=self.nudged),
                scheduler=SimpleNamespace(has_pending_requests=lambda: self.pending),
            ),
        )

    def nudged(self):
        self.nudges += 1

    def count(self, name, by):
        self.counts[name] += by

    def idle(self, signal, **kwargs):
        assert signal is signals.spider_idle
        self.idles += 1
        if self.feed is None:
            return [(None, None)]
        try:
            return [(None, self.feed())]
        except DontCloseSpider:
            return [(None, Failure())]

    def connect(self, receiver, signal):
        assert signal is signals.scheduler_empty
        self.nothing_leaves = receiver


class Cache:
    """What is known of origins, as far as it holds."""

    def __init__(self, time):
        self.time = time
        self.entries = {}
        self.places = 100
        self.closing = False
        self.under_way = {}

    def known_entry(self, origin):
        entry = self.entries.get(origin)
        return entry if entry is not None and entry.start <= self.time.wall < entry.end else None

    @property
    def room(self):
        return self.places - len(self.under_way)

    @property
    def most_lookups(self):
        return self.places

    def when_slow(self, call):
        self.slow = call


class Judge:
    """Looks origins up until the test says what it came to."""

    def __init__(self, cache):
        self.cache = cache
        self.asked = []
        self.most = 0
        """How many lookups were under way at a time."""
        self.ungoverned = set()
        self.origin_governing = lambda request: origin_of(request.url)

    def needs_robotstxt(self, origin):
        return origin not in self.ungoverned

    def lacks_tdmrep(self, origin, head):
        return False

    async def look_up(self, request):
        if self.cache.closing:
            raise CrawlClosingError
        origin = origin_of(request.url)
        assert origin not in self.cache.under_way
        self.asked.append(request)
        self.cache.under_way[origin] = turn = Deferred()
        self.most = max(self.most, len(self.cache.under_way))
        return await maybe_deferred_to_future(turn)


class Asker:
    """A queue that notes of which origins it is to ask again; ``heads`` are its next requests."""

    def __init__(self):
        self.told = []
        self.heads = {}

    def ask_again(self, origin):
        self.told.append(origin)

    def head_of(self, origin):
        head = self.heads.get(origin)
        if isinstance(head, Exception):
            raise head
        return head

    def deferred(self):
        return 0, True

    def idle_line(self):
        return ""

    def holds(self):
        return []

    def stop(self):
        return 0


class Scene:
    """A gate, and all that it asks and tells."""

    def __init__(self, **more):
        self.time = MadeUpTime()
        self.crawler = Crawler()
        self.cache = Cache(self.time)
        self.judge = Judge(self.cache)
        self.gate = Gate(
            crawler=self.crawler,
            cache=self.cache,
            decider=self.judge,
            options=Options.from_settings({**DEFERRING, **more}),
            delays=None,
            clock=self.time.clock,
        )
        add_part(self.crawler, self.gate)
        self.asker = Asker()
        self.gate.attach(self.asker)

    def hold(self, origin, *, look_up=True):
        """Ask as the queue does; return why ``origin`` waits."""
        request = Request(f"{origin}/page")
        hold = self.gate.hold(origin, lambda: request)
        if hold is None:
            return None
        self.asker.heads.setdefault(origin, request)
        if look_up:
            self.gate.look_up()
            settle()
        return hold.reason

    def knows(self, origin, reason=Reason.UNAVAILABLE, *, seconds=1e6):
        grant = Grant.NONE if reason is Reason.UNREACHABLE else Grant.ALL
        now = self.time.wall
        outage = Outage("status 503", now, now + seconds) if grant is Grant.NONE else None
        self.cache.entries[origin] = Entry(Access(grant, reason, None, now, now + seconds, outage))

    def comes(self, origin, reason=Reason.UNAVAILABLE, *, seconds=1e6):
        """Let a lookup end."""
        self.knows(origin, reason, seconds=seconds)
        self.cache.under_way.pop(origin).callback(self.cache.entries[origin])
        settle()

    @property
    def told(self):
        """The origins that the queue was told of since this was asked last."""
        told, self.asker.told = self.asker.told, []
        return told

    @property
    def asked(self):
        return [origin_of(request.url) for request in self.judge.asked]


# What is not known is looked up.


def test_what_is_known_may_leave():
    scene = Scene()
    scene.knows(A)
    assert scene.hold(A) is None
    assert scene.asked == []


def test_what_no_robotstxt_governs_may_leave_and_is_not_looked_up():
    scene = Scene()
    scene.judge.ungoverned = {A}
    scene.knows(A, Reason.UNREACHABLE)
    assert scene.hold(A) is None
    assert scene.asked == []


def test_an_unknown_origin_is_looked_up_once_and_told_of_once():
    scene = Scene()
    for _ in range(3):
        assert scene.hold(A) is LOOKUP
    assert scene.judge.asked == [scene.asker.heads[A]]
    assert scene.told == []
    nudges = scene.crawler.nudges
    scene.comes(A)
    assert scene.told == [A]
    assert scene.crawler.nudges == nudges + 1
    assert scene.hold(A) is None
    scene.time.advance(1e5)
    assert scene.told == []
    assert scene.asked == [A]


def test_one_origin_waits_for_no_other():
    scene = Scene()
    scene.hold(A)
    scene.hold(B)
    scene.comes(B)
    assert scene.told == [B]
    assert scene.hold(B) is None
    assert scene.hold(A) is LOOKUP


def test_nothing_is_looked_up_before_the_queue_says_so():
    """The queue asks when it has looked at all its lanes."""
    scene = Scene()
    scene.hold(A, look_up=False)
    settle()
    assert scene.asked == []
    scene.gate.look_up()
    settle()
    assert scene.asked == [A]


def test_what_has_expired_is_looked_up_again():
    scene = Scene()
    scene.knows(A, seconds=10)
    assert scene.hold(A) is None
    scene.time.advance(10)
    assert scene.hold(A) is LOOKUP
    assert scene.asked == [A]


def test_what_is_forgotten_at_once_is_left_to_the_middleware_once():
    scene = Scene()
    scene.hold(A)
    scene.comes(A, seconds=0)
    assert scene.told == [A]
    assert scene.hold(A) is None
    # The next one is looked up again.
    assert scene.hold(A) is LOOKUP
    assert scene.asked == [A, A]


def test_a_result_that_the_cache_does_not_hold_counts():
    """As where more origins are unreachable than REP_MEMORY_MAX_BYTES holds."""
    scene = Scene()
    scene.hold(A)
    scene.knows(A, Reason.UNREACHABLE, seconds=7)
    entry = scene.cache.entries.pop(A)
    scene.cache.under_way.pop(A).callback(entry)
    settle()
    assert scene.hold(A) is UNREACHABLE


@pytest.mark.parametrize("came", [True, False])
def test_after_an_error_the_middleware_looks_up(caplog, came):
    scene = Scene()
    scene.hold(A)
    if came:
        scene.knows(A)
    scene.cache.under_way.pop(A).errback(ZeroDivisionError("made up"))
    settle()
    assert scene.told == [A]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("scrapy_rep")] == [
        f"Error while looking up robots.txt of {A}"
    ]  # fmt: skip
    # The middleware is to meet the same error.
    assert scene.hold(A) is None
    # What comes behind is begun.
    scene.hold(B)
    assert scene.asked[-1] == B


@pytest.mark.parametrize("error", [CancelledError, asyncio.CancelledError])
def test_a_look_up_that_is_cut_off_is_told_of(error):
    scene = Scene()
    scene.hold(A)
    scene.cache.under_way.pop(A).errback(error())
    settle()
    assert scene.told == [A]


def test_an_origin_whose_requests_are_gone_is_not_looked_up(caplog):
    scene = Scene()
    scene.hold(A, look_up=False)
    del scene.asker.heads[A]
    scene.gate.look_up()
    assert not caplog.records
    assert scene.told == [A]
    assert scene.asked == []


def test_an_origin_whose_requests_cannot_be_read_is_left_to_the_middleware(caplog):
    scene = Scene()
    scene.hold(A, look_up=False)
    scene.asker.heads[A] = OSError("made up")
    scene.hold(B)
    assert caplog.messages == [f"Error while reading a request to {A}"]
    assert scene.told == [A]
    assert scene.hold(A) is None
    assert scene.asked == [B]


# No more at a time than there is room for.


def test_room_bounds_what_is_begun():
    scene = Scene()
    scene.cache.places = 2
    for origin in (A, B, C):
        scene.hold(origin)
    assert scene.asked == [A, B]
    scene.comes(B)
    # The end of one begins the next.
    assert scene.asked == [A, B, C]
    assert scene.told == [B]


def test_lookups_that_were_handed_to_the_event_loop_count_before_they_begin():
    scene = Scene()
    scene.cache.places = 32
    origins = [origin_of(f"http://{number}.example") for number in range(1_000)]
    for origin in origins:
        scene.hold(origin, look_up=False)
        scene.gate.look_up()
    settle()
    assert len(scene.cache.under_way) == scene.judge.most == 32
    while scene.cache.under_way:
        scene.comes(next(iter(scene.cache.under_way)))
    assert scene.judge.most == 32
    assert sorted(scene.asked) == sorted(origins)


def test_a_look_up_counts_between_robots_txt_and_tdmrep_json_too():
    scene = Scene()
    scene.cache.places = 1
    for origin in (A, B):
        scene.hold(origin)
    turn = scene.cache.under_way.pop(A)  # the cache has no fetch of it now
    scene.gate.look_up()
    settle()
    assert scene.asked == [A]
    scene.knows(A)
    turn.callback(scene.cache.entries[A])
    settle()
    assert scene.asked == [A, B]


def test_room_that_comes_as_a_fetch_is_slow_is_used():
    scene = Scene()
    scene.cache.places = 1
    for origin in (A, B, C):
        scene.hold(origin)
    assert scene.asked == [A]
    scene.cache.places = 2
    scene.cache.slow()
    settle()
    assert scene.asked == [A, B]


def test_a_crawl_that_pauses_looks_nothing_up():
    scene = Scene()
    scene.crawler.engine.paused = True
    scene.hold(A)
    assert scene.asked == []
    scene.crawler.engine.paused = False
    scene.gate.look_up()
    settle()
    scene.comes(A)
    assert scene.told == [A]


def test_what_ends_at_once_begins_the_next_in_order():
    scene = Scene()
    asked = []

    async def look_up(request):
        asked.append(origin_of(request.url))
        scene.gate.look_up()

    scene.judge.look_up = look_up
    for origin in (A, B, C):
        scene.hold(origin, look_up=False)
    scene.gate.look_up()
    settle()
    assert asked == scene.told == [A, B, C]


# Requests that another scheduler was given back.


def test_the_origin_of_a_request_that_was_put_off_is_looked_up():
    scene = Scene()
    request = Request(f"{A}/put-off")
    for _ in range(2):
        scene.gate.look_up_later(A, request)
        settle()
    assert scene.judge.asked == [request]
    nudges = scene.crawler.nudges
    scene.comes(A)
    assert scene.crawler.nudges == nudges + 1


def test_who_comes_to_what_was_put_off_waits_for_the_same_look_up():
    scene = Scene()
    scene.gate.look_up_later(A, Request(f"{A}/put-off"))
    settle()
    assert scene.hold(A) is LOOKUP
    assert scene.asked == [A]
    scene.comes(A)
    assert scene.told == [A]


# What is unreachable waits for the next try.


def test_an_unreachable_origin_waits_for_its_next_try():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    hold = scene.gate.hold(A, lambda: None)
    assert hold.reason is UNREACHABLE
    assert hold.until == pytest.approx(scene.time.now + 10, abs=0.05)
    scene.time.advance(hold.until - scene.time.now)
    assert scene.hold(A) is LOOKUP


def test_a_clock_that_is_set_back_makes_nobody_wait_for_it():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE, seconds=10)
    scene.time.wall -= 1e6
    assert scene.hold(A) is LOOKUP


@pytest.mark.parametrize("more", [{"REP_UNREACHABLE_ACTION": "drop"}, {"REP_DRY_RUN": True}])
def test_what_is_to_be_dropped_at_once_is_not_deferred(more):
    scene = Scene(**more)
    scene.knows(A, Reason.UNREACHABLE)
    assert scene.hold(A) is None
    request = Request(f"{A}/", meta={"download_timeout": 1e9})
    for source in Source:
        assert not scene.gate.defers(source, request, scene.cache.entries[A])


def test_a_dry_run_knows_what_would_wait():
    scene = Scene(REP_DRY_RUN=True)
    scene.knows(A, Reason.UNREACHABLE, seconds=20)
    entry = scene.cache.entries[A]
    long, short = (Request(f"{A}/", meta={"download_timeout": each}) for each in (20, 19))
    assert scene.gate.would_defer(Source.QUEUE, short, entry)
    assert scene.gate.would_defer(Source.DIRECT, long, entry)
    assert not scene.gate.would_defer(Source.DIRECT, short, entry)
    scene.gate._queues.clear()
    assert not scene.gate.would_defer(Source.QUEUE, short, entry)


def test_another_queue_keeps_nothing():
    scene = Scene()
    scene.knows(A, Reason.UNREACHABLE)
    request = Request(f"{A}/")
    assert scene.gate.defers(Source.QUEUE, request, scene.cache.entries[A])
    scene.gate._queues.clear()
    assert not scene.gate.defers(Source.QUEUE, request, scene.cache.entries[A])


@pytest.mark.parametrize("reason", [Reason.ERROR, Reason.UNREACHABLE_LONG, Reason.UNAVAILABLE])
def test_no_other_state_is_deferred(reason):
    scene = Scene()
    scene.knows(A, reason)
    assert scene.hold(A) is None


# What comes directly.


@pytest.mark.parametrize(
    ("meta", "of_spider", "seconds", "waits"),
    [
        ({}, None, 180.0, True),  # DOWNLOAD_TIMEOUT
        ({}, None, 181.0, False),
        ({}, 20, 20.0, True),
        ({}, 20, 21.0, False),
        ({"download_timeout": 5}, 20, 5.0, True),
        ({"download_timeout": 5}, 20, 6.0, False),
        # What is no number is for Scrapy's handler to refuse.
        ({"download_timeout": "soon"}, 20, 20.0, True),
        ({"download_timeout": "soon"}, 20, 21.0, False),
        ({}, "soon", 1.0, False),
    ],
)
def test_what_comes_directly_waits_no_longer_than_its_download_might_take(
    meta, of_spider, seconds, waits
):
    scene = Scene()
    if of_spider is not None:
        scene.crawler.spider = SimpleNamespace(download_timeout=of_spider)
    scene.knows(A, Reason.UNREACHABLE, seconds=seconds)
    request = Request(f"{A}/", meta=meta)
    assert scene.gate.defers(Source.DIRECT, request, scene.cache.entries[A]) is waits


# At the close.


def test_after_the_close_nothing_is_looked_up_and_nobody_told():
    scene = Scene()
    scene.cache.places = 1
    for origin in (A, B):
        scene.hold(origin)
    scene.gate.close()
    scene.cache.closing = True
    scene.cache.under_way.pop(A).errback(CrawlClosingError())
    settle()
    scene.gate.look_up()
    settle()
    assert scene.told == []
    assert scene.asked == [A]


def test_the_close_of_a_gate_that_was_never_asked():
    scene = Scene()
    assert scene.gate.close() == scene.gate.close() == 0
    assert scene.time.timers == []
