"""Builds the parts of a crawl that obeys robots.txt from each other, starts them and ends them."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final
from uuid import uuid4

from pydispatch import dispatcher  # type: ignore[import-untyped] # it has no types
from scrapy import Request, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.admission.ticket import Source, store_source
from scrapy_rep.cache.cache import Cache, shared_store
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.decision.decider import Decider
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.downloadermiddlewares.wire import Wire
from scrapy_rep.drops import Drops, DryRun
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.overrides import OverrideLog, Overrides
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.refusals import Refusals
from scrapy_rep.robots import RobotParser, Robots
from scrapy_rep.settings import Options, concurrent_requests
from scrapy_rep.signals import Announcer
from scrapy_rep.start_log import log_start
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.concurrency import Background, Clock, sleep, within
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import add_part, open_crawls
from scrapy_rep.utils.scrapy_internals import is_closing, remove_connection_limits

_LEASE_SLACK: Final = 5.0
"""Seconds that a lease (the right of one worker to fetch a robots.txt) lasts after REP_TIMEOUT. In
this time the record of the fetch is stored."""
_INTERVAL: Final = 0.5
"""Seconds between two checks whether the engine closes, each with a reading of the pauses."""
_STORING_TIME: Final = 5.0
"""Maximum seconds to wait until the last records are stored when the crawl has ended."""
_ROBOTS_PARSED: Final = getattr(signals, "robots_parsed", None)
"""The signal of Scrapy's built-in middleware for robots.txt; None before Scrapy 2.18."""


class CrawlParts:
    """All parts of a crawl that obeys robots.txt. They start and end with its spider.

    Raises SettingsError if a setting is not valid, or a file that it names can't be read.
    """

    def __init__(self, crawler: Crawler, process_request: Callable[..., Any]) -> None:
        """``process_request`` is that of RobotsTxtMiddleware."""
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._options = options = Options.of(crawler)
        clock = Clock()
        overrides = Overrides(options.overrides, clock.time)
        self.override_log: OverrideLog = OverrideLog(crawler, overrides)
        announcer = Announcer(crawler)
        self._background = Background()
        """Readings of pauses, and handlers of the signal ``robots_parsed``."""
        self._drops = drops = Drops(crawler, announcer)
        store = shared_store(options)
        cache = Cache(
            BoundedCache(max_bytes=options.memory_max_bytes),
            options.policy,
            clock,
            self._send_parsed,
            count=partial(stats.count, crawler),
            crawler=crawler,
        )
        self.lookups: Lookups = Lookups(
            cache=cache,
            store=store,
            fetch=Fetcher(crawler, options, self._verdict_on_hop).fetch,
            send_record=announcer.send_record,
            jitter=random.random,
            permits=options.concurrent_fetches or concurrent_requests(crawler.settings),
            name=uuid4().hex,
            lease=options.timeout + _LEASE_SLACK,
        )
        self.decider: Decider = Decider(crawler, self.lookups, overrides)
        leases = HostLeases(store, clock)
        self.admission: Admission = Admission(
            crawler, self.lookups, self.decider, options, clock, leases
        )
        dry_run = DryRun(crawler, drops, self.admission, clock) if options.dry_run else None
        self.asks_always: bool = options.dry_run or bool(overrides)
        """Whether the gate is asked about each request."""
        stores_requests = _scheduler_stores_requests(crawler)
        self.gate: Gate = Gate(
            crawler, self.admission, drops, clock, process_request, dry_run, stores_requests
        )
        self._wire = Wire(crawler, self.admission, self.gate, clock)
        self._refusals = Refusals(crawler, self.decider, announcer)
        robots = Robots(self.lookups, self.decider, self.admission.holds, leases.pause_until)
        # Scrapy's signals don't keep their receivers alive, so the crawler keeps the parts.
        for part in (self, drops, self.admission, robots, self._wire, self._refusals):
            add_part(crawler, part)
        self._reading: Deferred[object] | None = None
        """The last reading of pauses."""
        self._loop = create_looping_call(self._check_closing_and_read)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    async def _verdict_on_hop(self, hop: Request, start: Origin) -> Verdict | None:
        return await self.decider.verdict_on_hop(hop, start)  # which is built after its caller

    def _send_parsed(self, robots: RobotsTxt, request: Request) -> None:
        """Send the signal ``robots_parsed`` of Scrapy, if the crawl has a handler of it."""
        # Scrapy's handlers may be connected for any sender.
        receivers = dispatcher.getAllReceivers(self._crawler, _ROBOTS_PARSED)
        if _ROBOTS_PARSED is None or next(receivers, None) is None:
            return
        sent = self._crawler.signals.send_catch_log_async(
            signal=_ROBOTS_PARSED, robotparser=RobotParser(robots), request=request
        )
        # Nobody waits for it: a handler may itself wait for requests to this origin.
        self._background.start(sent)

    async def _spider_opened(self) -> None:
        """Use the store, watch for the end, install the wire, and log how robots.txt is obeyed."""
        self.lookups.join_store()
        self._loop.start(_INTERVAL, now=False)
        open_crawls.add(self._crawler)
        if not self.admission.queues:
            self._crawler.signals.connect(_store_scheduler_source, signals.request_scheduled)
        with suppress(IgnoreRequest):  # it is logged below
            await self._wire.install()  # the downloader exists now
        log_start(
            self._crawler,
            self._options,
            self.decider,
            lacks_queue=self.admission.deferral.lacks_queue,
            has_wire=self._wire.is_installed,
        )
        self.override_log.log_expired()
        remove_connection_limits(self._crawler)

    def _check_closing_and_read(self) -> None:
        if is_closing(self._crawler):
            self._close()
        if self._reading is None or self._reading.called:
            self._reading = self._background.start(self.admission.hosts.read_pauses())

    def _close(self) -> None:
        """End the waits of scheduled requests. Called while the engine closes, and at the end."""
        deferred = self.admission.close()
        self.lookups.close()
        self.gate.waits.close()
        if deferred and not self.gate.stores_requests:
            self._logger.info("Deferred requests lost, because JOBDIR is not set: %d", deferred)

    async def _spider_closed(self) -> None:
        """Close; log the summaries; store the last records in _STORING_TIME; leave the store."""
        if self._loop.running:
            self._loop.stop()
        self._close()
        self.lookups.close(at_once=True)
        open_crawls.discard(self._crawler)
        self._drops.log_summary()
        if self.gate.dry_run is not None:
            self.gate.dry_run.log_summary()
        self._refusals.log_summary()
        try:
            await within(_STORING_TIME, self._finish())
        except TimeoutError:
            self._logger.warning("Some records of robots.txt may not have been stored")
        finally:
            await self.lookups.leave_store()

    async def _finish(self) -> None:
        await sleep(0)  # Scrapy can't stop several crawls if one of them closes at once
        await self.lookups.finish()
        await self._background.finish()


def _scheduler_stores_requests(crawler: Crawler) -> bool:
    """Return whether requests outlive the crawl: JOBDIR, or a scheduler not based on Scrapy's."""
    if crawler.settings.get("JOBDIR"):
        return True
    # Not issubclass(), which is true of each class that has the methods of a scheduler.
    return Scheduler not in load_object(crawler.settings["SCHEDULER"]).__mro__


def _store_scheduler_source(request: Request) -> None:
    # Only a request that comes from a scheduler may be given back to it.
    store_source(request, Source.SCHEDULER)
