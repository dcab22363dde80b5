"""Crawl-delay and Request-rate, in real crawls and without one."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
import pytest_twisted
from scrapy.exceptions import CloseSpider
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Request
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from scrapy_rep.protocol.crawl_delay import Delay
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.parser import Field
from scrapy_rep.scheduler.delays import Delays
from scrapy_rep.scheduler.hold import HoldReason
from scrapy_rep.settings import Options
from scrapy_rep.signals import robotstxt_crawl_delay
from scrapy_rep.utils import download_slots
from tests.crawling.crawl import SCRAPYS_QUEUE, ListSpider, crawl
from tests.crawling.web import robots
from tests.made_up_time import MadeUpTime


def asks(*lines):
    return robots("\n".join(("User-agent: *", *lines, "")))


class Watches(ListSpider):
    """Notes when the last download of the slot was begun, at each page.

    The downloader's own times: how long they take to the site, on a machine that is busy, is
    nobody's business.
    """

    def parse(self, response):
        slot = self.crawler.engine.downloader.slots[response.meta["download_slot"]]
        self.begun.append(slot.lastseen)
        return super().parse(response)


async def watched(*urls, settings=None, **kwargs):
    begun = []
    result = await crawl(
        *urls,
        settings={"RANDOMIZE_DOWNLOAD_DELAY": True, **(settings or {})},
        spidercls=Watches,
        begun=begun,
        **kwargs,
    )
    result.gaps = [later - sooner for sooner, later in pairwise(sorted(set(begun)))]
    return result


def told(result):
    return [line for line in result.messages(logging.INFO) if " asks for " in line]


pytestmark = pytest.mark.filterwarnings("ignore:The RANDOMIZE_DOWNLOAD_DELAY setting")


@pytest.mark.parametrize("line", ["Crawl-delay: 0.4", "Request-rate: 5/2s"])
@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
@pytest_twisted.ensureDeferred
async def test_pages_are_as_far_apart_as_the_site_asks(web, line, queue):
    site = web.site(asks(line))
    result = await watched(*(site.url(f"/{n}") for n in range(5)), settings=queue)
    assert len(site.targets) == 5
    assert min(result.gaps) > 0.38
    field, value = line.lower().split(": ")
    assert told(result) == [
        f"robots.txt of {site.url('')} asks for 0.4 s between two requests "
        f"({field}: {value}, line 2): the delay is 0.4 s"
    ]
    assert result.stats["robotstxt/crawl_delay"] == 1


@pytest_twisted.ensureDeferred
async def test_downloads_of_components_are_as_far_apart_too(web):
    site = web.site(asks("Crawl-delay: 0.4"))
    begun = []

    class DirectSpider(ListSpider):
        async def parse(self, response):
            slot = self.crawler.engine.downloader.slots[response.meta["download_slot"]]
            begun.append(slot.lastseen)
            for number in range(3):
                await self.crawler.engine.download_async(Request(site.url(f"/{number}")))
                begun.append(slot.lastseen)
            return
            yield

    await crawl(site.url("/"), spidercls=DirectSpider)
    assert site.targets == ["/", "/0", "/1", "/2"]
    assert min(later - sooner for sooner, later in pairwise(begun)) > 0.38


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
@pytest_twisted.ensureDeferred
async def test_pages_are_as_far_apart_where_download_slots_are_not_known(web, monkeypatch, queue):
    monkeypatch.setattr(
        download_slots, "_missing_slot_attribute", lambda: "scrapy.core.downloader.Slot.queue"
    )
    site = web.site(asks("Crawl-delay: 0.4"))
    result = await watched(*(site.url(f"/{n}") for n in range(5)), settings=queue)
    assert len(site.targets) == 5
    assert min(result.gaps) > 0.38
    assert told(result)[0].endswith(": the delay is 0.4 s")


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/robots.sqlite"])
@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
@pytest_twisted.ensureDeferred
async def test_a_crawl_that_is_closed_does_not_wait_for_a_long_delay(web, tmp_path, store, queue):
    site = web.site(asks("Crawl-delay: 300"))

    class Closes(ListSpider):
        def parse(self, response):
            raise CloseSpider

    urls = (site.url(f"/{n}") for n in range(20))
    settings = {"REP_STORE": store.format(tmp_path), **queue}
    result = await crawl(*urls, settings=settings, spidercls=Closes)
    assert len(site.targets) == 1
    (line,) = told(result)
    assert line.endswith(": the delay is 300 s, at most 12 requests per hour")


@pytest.mark.parametrize(
    ("line", "settings", "delay", "what"),
    [
        ("Crawl-delay: 500", {"REP_CRAWL_DELAY_MAX": 0.2}, 0.2, "the delay is 0.2 s (REP_CRAWL_DELAY_MAX)"),
        ("Crawl-delay: 500", {"REP_CRAWL_DELAY_MAX": 0.2, "DOWNLOAD_DELAY": 0.3}, 0.3, "the delay is 0.3 s"),
        ("Crawl-delay: 0.1", {"DOWNLOAD_DELAY": 0.3}, 0.3, "the delay is 0.3 s"),
        ("Crawl-delay: 9", {"REP_CRAWL_DELAY_MAX": 0}, 0, None),
        ("Crawl-delay: 9", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.1}}}, 0.05, "the delay in DOWNLOAD_SLOTS['127.0.0.1'] is used"),
        ("Crawl-delay: 0.2", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 2}}}, 0.2, "the delay is 0.2 s"),
        ("Crawl-delay: -9", {}, 0, None),
        ("Crawl-delay: inf", {}, 0, None),
        ("Crawl-delay: 99999999999999", {}, 0, None),
    ],
)  # fmt: skip
@pytest_twisted.ensureDeferred
async def test_what_is_taken_of_what_is_asked(web, line, settings, delay, what):
    site = web.site(asks(line))
    result = await watched(*(site.url(f"/{n}") for n in range(3)), settings=settings)
    assert min(result.gaps, default=0) >= 0.95 * delay
    if what:
        assert [text.rpartition(": ")[2] for text in told(result)] == [what]
    capped = int(settings.get("REP_CRAWL_DELAY_MAX", 0) > 0)
    assert result.stats.get("robotstxt/crawl_delay_capped", 0) == capped


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/robots.sqlite"])
@pytest.mark.parametrize(
    "settings",
    [{"DOWNLOAD_DELAY": 0.3}, {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.3}],
)
@pytest_twisted.ensureDeferred
async def test_what_is_told_is_what_holds(web, tmp_path, settings, store):
    """The slot is made only when the first request has passed."""
    site = web.site(asks("Crawl-delay: 0.1"))
    heard = []

    def hear(taken):
        heard.append(taken)

    settings = {**settings, "REP_STORE": store.format(tmp_path)}
    result = await crawl(
        site.url("/1"),
        settings=settings,
        opened=lambda crawler: crawler.signals.connect(hear, robotstxt_crawl_delay),
    )
    assert [text.rpartition(": ")[2] for text in told(result)] == ["the delay is 0.3 s"]
    assert heard == [0.3]


class QuickSite(AutoThrottle):
    """AutoThrottle that finds every site quick, however busy the machine is."""

    def _adjust_delay(self, slot, latency, response):
        super()._adjust_delay(slot, 0.001, response)


@pytest.mark.parametrize("store", ["memory://", "sqlite:///robots.sqlite"])
@pytest_twisted.ensureDeferred
async def test_the_first_page_does_not_wait_on_a_machine_that_was_just_started(
    web, just_started, store, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    site = web.site(asks("Crawl-delay: 100"))
    settings = {"REP_CRAWL_DELAY_MAX": 100, "REP_STORE": store}
    begun = []
    watches = {"spidercls": Watches, "begun": begun}
    start = just_started()
    await crawl(site.url("/a"), settings=settings, **watches)
    assert begun[0] - start < 100


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/robots.sqlite"])
@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
@pytest_twisted.ensureDeferred
async def test_autothrottle_comes_not_below(web, tmp_path, queue, store):
    site = web.site(asks("Crawl-delay: 0.5"))
    settings = {
        "REP_STORE": store.format(tmp_path),
        "AUTOTHROTTLE_ENABLED": True,
        # The slot's delay when a request is sent is more, and when its answer came less than asked.
        "AUTOTHROTTLE_START_DELAY": 1.2,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "EXTENSIONS": {"scrapy.extensions.throttle.AutoThrottle": None, QuickSite: 0},
        **queue,
    }
    result = await watched(*(site.url(f"/{n}") for n in range(6)), settings=settings)
    assert len(site.targets) == 6
    assert min(result.gaps) > 0.48


@pytest_twisted.ensureDeferred
async def test_a_site_that_asks_for_less_gets_less(web, clock):
    site = web.site(asks("Crawl-delay: 0.5"), asks("Crawl-delay: 0.1"), asks("Crawl-delay: x"))

    def then(response):
        if response.url in {site.url("/2"), site.url("/5")}:
            clock.advance(3600)
        number = int(response.url.rpartition("/")[2])
        return [site.url(f"/{number + 1}")] if number < 8 else []

    settings = {"REP_CACHE_TTL_MIN": 0, "REP_CACHE_TTL": 3600}
    result = await watched(site.url("/0"), settings=settings, then=then)
    assert min(result.gaps[:2]) > 0.48
    assert min(result.gaps[3:5]) > 0.09
    assert [text.rpartition(": ")[2] for text in told(result)] == [
        "the delay is 0.5 s",
        "the delay is 0.1 s",
    ]


@pytest_twisted.ensureDeferred
async def test_a_slow_site_holds_up_no_other(web):
    """Its requests wait in the scheduler, not in the few places of the downloader."""
    slow = web.site(asks("Crawl-delay: 0.5"))
    quick = web.site(robots(""), host="127.0.0.2")
    places = []

    class Chain(ListSpider):
        def parse(self, response):
            self.crawl.responses.append(response)
            downloader = self.crawler.engine.downloader
            taken = [slow.url("/") in request.url for request in downloader.active]
            places.append(sum(taken))
            if response.url == slow.url("/0"):  # its rules are known
                for path in range(1, 5):
                    yield self.prepare(Request(slow.url(f"/{path}")))
                yield self.prepare(Request(quick.url("/0")))
            if response.url.startswith(quick.url("/")):
                number = int(response.url.rpartition("/")[2])
                if number < 15:
                    yield self.prepare(Request(quick.url(f"/{number + 1}")))

    result = await crawl(
        slow.url("/0"),
        settings={"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 2},
        spidercls=Chain,
    )
    assert len(result.responses) == 21
    # Of the four places it has as many as it may have requests at a time.
    assert max(places) <= 2


# Without a crawl.


class Downloader:
    """The slots of a downloader, and what is under way."""

    domain_concurrency = 8

    def __init__(self):
        self.slots = {}
        self.active = set()

    @staticmethod
    def get_slot_key(request):
        return request.meta["download_slot"]


class Scene:
    """Delays, and the slots that they are for."""

    def __init__(self, **more):
        self.downloader = Downloader()
        self.counts = Counter()
        crawler = SimpleNamespace(
            settings=Settings(more),
            engine=SimpleNamespace(downloader=self.downloader, _slot=self),
            stats=SimpleNamespace(inc_value=lambda name, by: self.counts.update({name: by})),
            spider=None,
        )
        crawler.signals = self.signals = SignalManager(crawler)
        self.time = MadeUpTime()
        self.closing = None
        self.nextcall = SimpleNamespace(schedule=lambda: self.counts.update({"nudges": 1}))
        options = Options.from_settings(more)
        self.delays = Delays(crawler, options, self.time.clock)

    def slot(self, name="a", delay=0.0, jitter=0.5, concurrency=8):
        slot = SimpleNamespace(delay=delay, jitter=jitter, concurrency=concurrency, active=set())
        slot.transferring, slot.queue, slot.lastseen = set(), [], 0.0
        slot.close = lambda: None
        slot.free_transfer_slots = lambda: concurrency - len(slot.transferring)
        self.downloader.slots[name] = slot
        return slot

    def passes(self, seconds, slot="a", host="a"):
        """Let a request pass whose site asks for ``seconds``."""
        request = Request(f"http://{host}.example/", meta={"download_slot": slot})
        delay = None if seconds is None else Delay(seconds, Field("crawl-delay", str(seconds), 2))
        self.delays.apply_delay(request, delay)
        self.delays.log_delay(request, origin_of(request.url), delay)
        return request


def asked(caplog):
    return [text for text in caplog.messages if " asks for " in text]


def test_the_own_delay_of_a_slot_in_the_settings_stands(caplog):
    caplog.set_level(logging.INFO)
    scene = Scene(DOWNLOAD_SLOTS={"a": {"delay": 0.1}, "b": {"concurrency": 2}})
    own, other = scene.slot("a", 0.1, concurrency=1), scene.slot("b", concurrency=1)
    scene.passes(4.0)
    scene.passes(4.0, "b", "b")
    assert (own.delay, own.jitter) == (0.1, 0.5)
    for slot in (own, other):
        slot.active.update(range(20))
    # It has no delay of ours that could fill it up.
    assert scene.delays.hold("a") is None
    assert scene.delays.hold("b").reason is HoldReason.SLOT
    assert [text.rpartition(": ")[2] for text in asked(caplog)] == [
        "the delay in DOWNLOAD_SLOTS['a'] is used",
        "the delay is 4 s",
    ]
    assert scene.counts == {"robotstxt/crawl_delay": 2}


def test_no_more_is_taken_than_the_setting_allows(caplog):
    caplog.set_level(logging.INFO)
    scene = Scene(REP_CRAWL_DELAY_MAX=3.0)
    scene.slot()
    scene.passes(500.0)
    assert scene.counts == {"robotstxt/crawl_delay": 1, "robotstxt/crawl_delay_capped": 1}
    (line,) = asked(caplog)
    assert line == (
        "robots.txt of http://a.example asks for 500 s between two requests (crawl-delay: 500.0, "
        "line 2): the delay is 3 s (REP_CRAWL_DELAY_MAX)"
    )


def test_what_is_asked_is_told_once_for_each_change(caplog):
    caplog.set_level(logging.INFO)
    scene = Scene()
    scene.slot(delay=3.0)
    for seconds in (2.0, 2.0, 4.0, 4.0, None, 4.0):
        scene.passes(seconds)
    assert [text.rpartition(": ")[2] for text in asked(caplog)] == [
        "the delay is 3 s",  # the slot's own
        "the delay is 4 s",
        "the delay is 4 s",
    ]
    assert scene.counts == {"robotstxt/crawl_delay": 3}


def test_of_several_sites_in_a_slot_it_is_told_what_holds(caplog):
    caplog.set_level(logging.INFO)
    scene = Scene()
    scene.slot(delay=0.5)
    for host, seconds in (("a", 4.0), ("a", 2.0), ("b", 1.0)):
        scene.passes(seconds, host=host)
    told = [text.rpartition(": ")[2] for text in asked(caplog)]
    assert told == [f"the delay is {seconds:g} s" for seconds in (4.0, 2.0, 1.0)]


@pytest.fixture
def scene(monkeypatch):
    scene = Scene()
    monkeypatch.setattr("scrapy_rep.utils.download_slots._now", lambda: scene.time.now)
    scene.time.advance(100)
    return scene


def test_a_slot_is_full_as_long_as_its_own_delay_would_keep_a_request(scene):
    slot = scene.slot(delay=3.0)
    scene.passes(2.0)
    assert scene.delays.hold("a") is None
    assert slot.jitter == 0
    scene.time.advance(1)
    slot.lastseen = scene.time.now
    for passed in (0, 2.9):
        scene.time.advance(passed)
        assert scene.delays.hold("a") == (HoldReason.SLOT, slot.lastseen + 3)
    scene.time.advance(0.1)
    assert scene.delays.hold("a") is None


def test_a_slot_is_full_while_a_request_is_on_its_way_to_it(scene):
    slot = scene.slot(delay=0.5)
    request = scene.passes(2.0)
    scene.downloader.active.add(request)
    assert scene.delays.hold("a").reason is HoldReason.SLOT
    slot.transferring.add(request)
    assert scene.delays.hold("a") is None


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (0, 1)])
def test_a_slot_is_full_with_what_it_sends_at_once(scene, concurrency, most):
    slot = scene.slot(concurrency=concurrency)
    scene.passes(2.0)
    slot.active.update(range(most - 1))
    assert scene.delays.hold("a") is None
    slot.active.add("another")
    assert scene.delays.hold("a").reason is HoldReason.SLOT


def test_how_long_a_slot_keeps_a_request_that_waits_elsewhere(scene):
    request = scene.passes(2.0)
    assert scene.delays.seconds_until_free(request) == 0
    slot = scene.slot(delay=3.0, concurrency=1)
    slot.lastseen = scene.time.now - 1
    assert scene.delays.seconds_until_free(request) == pytest.approx(2)
    slot.transferring.add(request)
    assert 0 < scene.delays.seconds_until_free(request) < 1


def test_a_signal_tells_what_is_taken_of_what_is_asked():
    own = {"DOWNLOAD_SLOTS": {"own": {"delay": 0.1}}}
    scene = Scene(REP_CRAWL_DELAY_MAX=30, **own)
    scene.slot("slow", delay=5.0)
    heard = []

    def hear(origin, delay, taken):
        heard.append((str(origin), delay.seconds, taken))

    scene.signals.connect(hear, robotstxt_crawl_delay)
    for slot, seconds in (("a", 2.0), ("a", 2.0), ("b", 90.0), ("slow", 2.0), ("own", 2.0)):
        scene.passes(seconds, slot, host=slot)
    assert heard == [
        ("http://a.example", 2.0, 2.0),
        ("http://b.example", 90.0, 30.0),
        ("http://slow.example", 2.0, 5.0),
        ("http://own.example", 2.0, None),
    ]


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}"])
@pytest.mark.parametrize(("lines", "most"), [((), 300), (("Crawl-delay: 9",), 0)])
async def test_a_floor_holds_for_sites_that_ask_for_nothing(web, tmp_path, store, lines, most):
    site = web.site(asks(*lines))
    settings = {
        "REP_STORE": store.format(tmp_path / "robots.sqlite"),
        "REP_CRAWL_DELAY_MIN": 0.2,
        "REP_CRAWL_DELAY_MAX": most,
    }
    result = await watched(*(site.url(f"/{page}") for page in range(4)), settings=settings)
    assert len(site.targets) == 4
    assert min(result.gaps) >= 0.95 * 0.2


def test_a_floor_and_a_maximum_bound_what_is_planned():
    settings = Settings({"REP_CRAWL_DELAY_MIN": 2, "REP_CRAWL_DELAY_MAX": 5})
    crawler = SimpleNamespace(settings=settings, signals=SignalManager())
    delays = Delays(crawler, Options.from_settings(settings), None)
    planned = [delays._limited_seconds(each and Delay(each, None)) for each in (None, 1, 3, 9)]
    assert planned == [2, 2, 3, 5]
