"""A gate with the cache and the decider of a crawl, in made-up time; only the network is the test's."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from twisted.python.failure import Failure

from scrapy_rep.cache.fetch_limit import Permit
from scrapy_rep.decision.decider import Decider
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol.origin import ROBOTSTXT, origin_of
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.site_file import SiteFile
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.settings import Options
from scrapy_rep.utils.lru import BoundedCache
from scrapy_rep.utils.per_crawl import add_part
from tests.made_up_network import LONG, Network, record_of
from tests.made_up_time import MadeUpTime
from tests.waiting import settle

TIMEOUT = 60.0
DEFERRING = {"REP_UNREACHABLE_ACTION": "defer", "REP_DEFER_TIMEOUT": TIMEOUT}
A, B, C, D = (origin_of(f"http://{name}.example") for name in "abcd")


class Crawler:
    """A crawler whose engine counts how often it is to ask the scheduler again."""

    def __init__(self, **settings):
        self.nudges = 0
        self.stats = SimpleNamespace(inc_value=self.count)
        self.counts = Counter()
        self.spider = None
        self.settings = Settings(settings)
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


class ObservedDecider(Decider):
    """A decider that notes its lookups, and fails if the test says so."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.under_way = 0
        self.most = 0
        """How many lookups were under way at a time."""
        self.error = None
        self.after_lookup = lambda: None
        """Called when a lookup has ended, before the gate goes on."""

    async def look_up(self, request):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.error is not None:
                raise self.error
            entry = await super().look_up(request)
            self.after_lookup()
            return entry
        finally:
            self.under_way -= 1


class Parts:
    """The cache and the decider of a crawl, whose robots.txt come from the test."""

    def __init__(self, crawler, options, *, time, permits=16):
        self.time = time
        self.network = Network(time)
        self.entries = BoundedCache()
        self.cache = self.network.cache(self.entries, permits=permits)
        overrides = Overrides(options.overrides, time.clock.time)
        self.decider = ObservedDecider(crawler, options, self.cache, overrides)

    def knows(self, origin, **how):
        """Put the result of a fetch in memory."""
        self.put_record(record_of(origin, self.network.outcome(origin, **how)))

    def knows_unreachable_for(self, origin, seconds):
        """Put the record of a long outage in memory."""
        now = self.time.wall
        last = self.network.outcome(origin, unreachable=True)
        file = SiteFile(origin, ROBOTSTXT)
        self.put_record(Record(file, last, None, now - seconds, seconds, 9, now + LONG))

    def put_record(self, record):
        """Put a record in memory."""
        self.cache.put_record(record.file.origin, record, self.decider.tokens.default())

    def comes(self, origin, **how):
        """Let the fetch of ``origin`` end."""
        self.network.ends(origin, self.network.outcome(origin, **how))

    @property
    def fetched(self):
        """The origins that were fetched, in order."""
        return [file.origin for file in self.network.fetched]

    @property
    def timers(self):
        """When each timer comes, without those that say which fetch is slow."""
        return [
            each.at
            for each in self.time.calls
            if not isinstance(getattr(each.call, "__self__", None), Permit)
        ]


class Asker:
    """A queue that notes of which origins it is to ask again; ``heads`` are its next requests."""

    def __init__(self):
        self.told = []
        self.heads = {}

    def hold_changed(self, origin):
        self.told.append(origin)

    def head_of(self, origin, failed_routes):
        head = self.heads.get(origin)
        if isinstance(head, Exception):
            raise head
        return head

    def count_deferred(self):
        return 0, True

    def idle_line(self):
        return ""

    def holds(self):
        return []

    def stop(self):
        return 0


class Scene(Parts):
    """A gate, and all that it asks and tells."""

    def __init__(self, *, permits=16, **more):
        self.crawler = Crawler(**more)
        options = Options.from_settings({**DEFERRING, **more})
        super().__init__(self.crawler, options, time=MadeUpTime(), permits=permits)
        self.gate = Gate(
            crawler=self.crawler,
            cache=self.cache,
            decider=self.decider,
            options=options,
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

    @property
    def told(self):
        """The origins that the queue was told of since this was asked last."""
        told, self.asker.told = self.asker.told, []
        return told
