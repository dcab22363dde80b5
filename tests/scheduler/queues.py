"""Queues without a crawl: what stands in for the engine, and a reason to wait that the test ends."""

import math
from types import SimpleNamespace

import scrapy
from scrapy import Request
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.admission.hold import Hold, HoldReason
from tests.admission.parts import Parts
from tests.made_up_time import MadeUpTime

LEFT_OPEN = []
"""What a test leaves open: files, as by a process that is killed, and what sets timers."""


class Downloader:
    def __init__(self):
        self.slots = {}
        self.active = set()
        self.in_progress = set()
        """What the engine has: these, and those whose callback is to be called, or runs."""

    @staticmethod
    def get_slot_key(request):
        return request.meta.get("download_slot") or urlparse_cached(request).hostname or ""

    def begin(self, request):
        slot = self.slots.setdefault(
            self.get_slot_key(request), SimpleNamespace(active=set(), delay=0.0)
        )
        slot.active.add(request)
        self.active.add(request)
        self.in_progress.add(request)

    def answer(self, request):
        self.slots[self.get_slot_key(request)].active.discard(request)
        self.active.discard(request)

    def end(self, request):
        self.answer(request)
        self.in_progress.discard(request)


CLOSED = HoldReason("the door is closed")


class Doors:
    """The only reason to wait of an admission; ``open`` are the origins that need not, None: all."""

    def __init__(self, opened=None):
        self.open = opened
        self.asked = []
        """The origins that had to wait when they were asked about."""

    def hold(self, ask):
        if self.open is None or str(ask.origin) in self.open:
            return None
        self.asked.append(str(ask.origin))
        return Hold(CLOSED, math.inf)

    def reserve(self, ask):
        pass


class FakeCrawler:
    """A crawler whose engine does nothing; with ``doors``, robots.txt is obeyed."""

    def __init__(self, doors=None, **settings):
        self.settings = Settings({"CONCURRENT_REQUESTS_PER_IP": 0, **settings})
        self.downloader = Downloader()
        self.woken = 0
        """How often the engine was told to ask the scheduler."""
        self.engine = SimpleNamespace(
            paused=False,
            downloader=self.downloader,
            _slot=SimpleNamespace(
                closing=None,
                inprogress=self.downloader.in_progress,
                nextcall=SimpleNamespace(schedule=self._wake),
            ),
        )
        self.spider = scrapy.Spider("queues")
        self.stats = Counts()
        self.signals = SignalManager(self)
        if doors is not None:
            doors.crawler = self
            doors.admission = Parts(self, MadeUpTime()).admission
            doors.admission.unknown.hold = doors.hold
            doors.admission.hosts.hold = doors.admission.deferral.hold = lambda ask: None
            doors.admission.hosts.reserve = doors.reserve

    def _wake(self):
        self.woken += 1


class Counts(dict):
    def inc_value(self, name, by=1):
        self[name] = self.get(name, 0) + by


def scrapys(crawler, **kwargs):
    return ours(crawler, cls=DownloaderAwarePriorityQueue, **kwargs)


def ours(crawler, *, key="", state=None, downstream=None, start=None, cls=RobotsAwarePriorityQueue):
    downstream = downstream or (PickleFifoDiskQueue if key else FifoMemoryQueue)
    queue = cls.from_crawler(crawler, downstream, str(key), state, start_queue_cls=start)
    if (connection := getattr(getattr(queue, "_requests", None), "_connection", None)) is not None:
        LEFT_OPEN.append(connection)
    return queue


def drain(queue):
    urls = []
    while (request := queue.pop()) is not None:
        urls.append(request.url)
    return urls


def in_memory(*requests, crawler=None, **kwargs):
    queue = ours(crawler or FakeCrawler(Doors()), **kwargs)
    for request in requests:
        queue.push(request)
    return queue


def on_disk(folder, *requests, **kwargs):
    return in_memory(*requests, key=folder, **kwargs)


def pages(host, *paths, **kwargs):
    return [Request(f"https://{host}/{path}", **kwargs) for path in paths]


def urls(requests):
    return [request.url for request in requests]
