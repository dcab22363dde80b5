"""Queues without a crawl: what stands in for the engine, and for the gate."""

from __future__ import annotations

import math
from types import SimpleNamespace

import scrapy
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.settings import Settings
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.decision.decider import Decider
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.hold import Hold, HoldReason

OPENED = []
"""The files of queues, some of which are left open as by a process that is killed."""
TIMED = []
"""The due times of queues in Redis, whose timers would call Redis during another test."""


class Downloader:
    """Which requests are active, by slot."""

    domain_concurrency = 8

    def __init__(self):
        self.slots = {}
        self.active = set()
        self.in_progress = set()
        """What the engine has: these, and those whose callback is to be called, or runs."""

    @staticmethod
    def get_slot_key(request):
        return request.meta.get("download_slot") or urlparse_cached(request).hostname or ""

    def begin(self, request):
        slot = self.slots.setdefault(self.get_slot_key(request), SimpleNamespace(active=set()))
        slot.active.add(request)
        self.active.add(request)
        self.in_progress.add(request)

    def answer(self, request):
        self.slots[self.get_slot_key(request)].active.discard(request)
        self.active.discard(request)

    def end(self, request):
        self.answer(request)
        self.in_progress.discard(request)


class Doors:
    """A gate that is opened and shut by hand; ``open`` is None where all is open."""

    defer_timeout = 300.0
    has_room_for_lookups = True

    def __init__(self):
        self.open = None
        self.full = set()
        self.asked = []
        self.queues = []
        self.idle = SimpleNamespace(shorten_delay=lambda: None, end_delay=lambda: None)

    # What no robots.txt governs is told as in a crawl without overrides.
    needs_robotstxt = staticmethod(lambda origin: True)
    origin_governing = Decider.origin_governing

    @property
    def has_queue(self):
        return bool(self.queues)

    def attach(self, queue):
        self.queues.append(queue)

    def hold(self, origin, head):
        if self.is_open(origin):
            return None
        self.asked.append(str(origin))
        return Hold(HoldReason.LOOKUP, math.inf)

    def is_open(self, origin):
        return self.open is None or str(origin) in self.open

    def hold_of_slot(self, slot):
        return Hold(HoldReason.SLOT, math.inf) if slot in self.full else None

    def look_up(self):
        pass

    def let(self, origin):
        self.open.add(origin)
        for queue in self.queues:
            queue.hold_changed(origin_of(origin))


class FakeCrawler:
    def __init__(self, gate=None):
        self.settings = Settings({"CONCURRENT_REQUESTS_PER_IP": 0})
        self.downloader = Downloader()
        self.engine = SimpleNamespace(
            downloader=self.downloader,
            scraper=SimpleNamespace(slot=SimpleNamespace(is_idle=lambda: True)),
            _slot=SimpleNamespace(
                closing=None,
                inprogress=self.downloader.in_progress,
                nextcall=SimpleNamespace(schedule=lambda: None),
                scheduler=SimpleNamespace(has_pending_requests=lambda: True),
            ),
        )
        self.spider = scrapy.Spider("queues")
        self.stats = Counts()
        self.signals = SimpleNamespace(connect=lambda *_: None)
        self.gate = gate
        if gate is not None:
            vars(self)["_scrapy_rep"] = {Gate: gate}


def ours(crawler, *, key="", state=None, downstream=None, start=None):
    return _make(RobotsAwarePriorityQueue, crawler, key, state, downstream, start)


class Counts(dict):
    """The stats of a crawl."""

    def inc_value(self, name, by=1):
        self[name] = self.get(name, 0) + by


def scrapys(crawler, *, key="", state=None, downstream=None, start=None):
    return _make(DownloaderAwarePriorityQueue, crawler, key, state, downstream, start)


def _make(cls, crawler, key, state, downstream, start):
    downstream = downstream or (PickleFifoDiskQueue if key else FifoMemoryQueue)
    queue = cls.from_crawler(crawler, downstream, str(key), state, start_queue_cls=start)
    if (disk := getattr(queue, "_disk", None)) is not None:
        OPENED.append(disk)
    return queue


def drain(queue):
    """Pop until there is nothing more."""
    urls = []
    while (request := queue.pop()) is not None:
        urls.append(request.url)
    return urls
