"""A crawl of given requests, in this process, and what came of it."""

import asyncio
import logging
from dataclasses import dataclass, field

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerRunner
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from twisted.internet.defer import Deferred

from scrapy_rep.admission.admission import Admission
from tests.waiting import PATIENCE, until

AS_BY_DEFAULT = {"REP_TIMEOUT": 30}
"""In place of what SETTINGS have, where a crawl says what it is set to."""
SETTINGS = {
    "ADDONS": {"scrapy_rep.Addon": 500},
    "TELNETCONSOLE_ENABLED": False,
    "REP_STORE": "memory://",
    "USER_AGENT": "testbot/1.0",
    "RETRY_ENABLED": True,
    # A machine that is busy is no site and no store that fails.
    "DOWNLOAD_TIMEOUT": PATIENCE,
    "REP_TIMEOUT": PATIENCE,
    "AUTOTHROTTLE_ENABLED": False,
    # Deferring has tests of its own.
    "REP_DEFER_TIMEOUT": 0,
}

SCRAPYS_QUEUE = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}


def patient(uri):
    """A REP_STORE whose store is waited for: a machine that is busy is no store that fails."""
    return uri if "?" in uri or uri == "memory://" else f"{uri}?timeout={PATIENCE}"


_ENDING = 20
"""Seconds for what runs beside a crawl to see that this has ended."""

HAS_ROBOTS_PARSED = hasattr(signals, "robots_parsed")


@dataclass
class Crawl:
    responses: list = field(default_factory=list)
    failures: list = field(default_factory=list)
    items: list = field(default_factory=list)
    parsed: list = field(default_factory=list)
    records: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    told: dict = field(default_factory=dict)
    """What a spider of a process of its own tells besides."""
    stats: dict = field(default_factory=dict)
    crawler: object = None

    def add_item(self, item):
        self.items.append(item)

    def add_parsed(self, robotparser, request):
        self.parsed.append((robotparser, request))

    @property
    def dropped(self):
        """The reasons for which our middleware dropped requests, by URL."""
        return {
            failure.request.url: failure.value.verdict.reason.value
            for failure in self.failures
            if hasattr(failure.value, "verdict")
        }

    @property
    def fetched(self):
        return [response.url for response in self.responses]

    def messages(self, level=logging.DEBUG, name="scrapy_rep"):
        return [
            record.getMessage()
            for record in self.records
            if record.levelno >= level and record.name.startswith(name)
        ]


class ListSpider(scrapy.Spider):
    """Fetches the requests it is given; ``then`` may add others for a response."""

    name = "list"
    settings_before = SETTINGS
    """Of a crawl in a process of its own."""

    def __init__(self, requests=(), crawl=None, then=None, **kwargs):
        super().__init__(**kwargs)
        self.requests = requests
        self.crawl = crawl
        self.then = then

    async def start(self):
        for request in self.requests:
            yield self.prepare(request)

    def prepare(self, request):
        if isinstance(request, str):
            request = scrapy.Request(request)
        return request.replace(
            callback=self.parse,
            errback=self.failed,
            meta={"handle_httpstatus_all": True, **request.meta},
        )

    def parse(self, response):
        self.crawl.responses.append(response)
        if self.then is not None:
            for request in self.then(response) or ():
                yield self.prepare(request)

    def failed(self, failure):
        self.crawl.failures.append(failure)


class Downloads(ListSpider):
    """Its first page asks for ``media`` with ``download_async``, all at once.

    What came of each is in ``ends`` of the crawl: a response or an error.
    """

    media = ()
    media_meta = None

    async def parse(self, response):
        self.crawl.responses.append(response)
        if len(self.crawl.responses) == 1:
            download = self.crawler.engine.download_async
            self.tasks = [
                asyncio.ensure_future(download(scrapy.Request(each, meta=self.media_meta)))
                for each in self.media
            ]
            self.crawl.ends = await asyncio.gather(*self.tasks, return_exceptions=True)
        return
        yield


class _Records(logging.Handler):
    def __init__(self, records):
        super().__init__(logging.DEBUG)
        self.emit = records.append


def stat(crawler, name):
    return crawler.stats.get_value(name, 0)


def close(crawler):
    crawler.closer = asyncio.ensure_future(crawler.engine.close_spider_async(reason="enough"))


def hearing(signal, handler):
    """Return what connects ``handler`` with a signal of a crawl that is opened."""

    def opened(crawler):
        crawler.heard_by = handler  # signals keep no receiver alive
        crawler.signals.connect(handler, signal)

    return opened


def closing_when(condition):
    """Return what runs beside a crawl, and closes it when ``condition`` of its crawler holds."""

    async def close_then(crawler):
        await until(lambda: condition(crawler))
        close(crawler)

    return close_then


def releasing_when(condition, *sites):
    """Return what runs beside a crawl, and lets answers of ``sites`` go when that holds."""

    async def release_then(crawler):
        await until(lambda: condition(crawler))
        for site in sites:
            site.release()

    return release_then


def releasing_as_it_closes(condition, *sites):
    """Return what closes a crawl when that holds, and then lets answers of ``sites`` go."""

    async def close_then_release(crawler):
        await until(lambda: condition(crawler))
        close(crawler)
        await until(lambda: Admission.of(crawler).is_closing)
        for site in sites:
            site.release()

    return close_then_release


class _Beside:
    """A coroutine that runs beside a crawl, and is to end before it or with it."""

    def __init__(self, crawler, coroutine):
        self.crawler = crawler
        self.task = asyncio.ensure_future(coroutine)
        self.task.add_done_callback(self.ended)

    def ended(self, task):
        if not task.cancelled() and task.exception() is not None:
            close(self.crawler)

    async def end(self):
        await asyncio.wait({self.task}, timeout=_ENDING)
        if not self.task.done():
            self.task.cancel()
            raise AssertionError("the crawl has ended before what was waited for beside it")
        self.task.result()


class Lines(logging.Handler):
    """Lines of the log that begin in some way, as they come."""

    def __init__(self, begin):
        super().__init__(logging.DEBUG)
        self.begin = begin
        self.heard = []

    def emit(self, record):
        if record.getMessage().startswith(self.begin):
            self.heard.append(record.getMessage())

    def listen(self, crawler):
        logging.getLogger("scrapy_rep").addHandler(self)
        crawler.signals.connect(self.leave, signals.engine_stopped)

    def leave(self):
        logging.getLogger("scrapy_rep").removeHandler(self)


class OfCrawler:
    """A component that knows its crawler."""

    def __init__(self, crawler):
        self.crawler, self.settings = crawler, crawler.settings

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)


async def crawl(
    *requests,
    settings=None,
    then=None,
    opened=None,
    meanwhile=None,
    phases=(),
    spidercls=ListSpider,
    **spider_attributes,
):
    """Crawl ``requests``; ``opened`` is called with the crawler when the spider is open.

    ``meanwhile`` is a coroutine function that gets the crawler, and runs beside the crawl. Each of
    ``phases``, when nothing is left to do, is a list of requests to go on with, or returns one.
    """
    result = Crawl()
    settings = {**SETTINGS, **(settings or {})}
    if settings["REP_TIMEOUT"] == PATIENCE:
        settings["REP_STORE"] = patient(settings["REP_STORE"])
    runner = CrawlerRunner(Settings(settings, priority="project"))
    crawler = runner.create_crawler(type("Spider", (spidercls,), spider_attributes))
    result.crawler = crawler
    left = list(phases)
    beside = []

    def spider_opened():
        if opened is not None:
            opened(crawler)
        if meanwhile is not None:
            beside.append(_Beside(crawler, meanwhile(crawler)))

    def idle(spider):
        if left:
            phase = left.pop(0)
            for request in phase() if callable(phase) else phase:
                crawler.engine.crawl(spider.prepare(request))
            raise DontCloseSpider

    if HAS_ROBOTS_PARSED:
        crawler.signals.connect(result.add_parsed, signals.robots_parsed)
    crawler.signals.connect(result.add_item, signals.item_scraped)
    crawler.signals.connect(spider_opened, signals.spider_opened)
    crawler.signals.connect(idle, signals.spider_idle)
    handler = _Records(result.records)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        await runner.crawl(crawler, requests=requests, crawl=result, then=then)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    for each in beside:
        await Deferred.fromFuture(asyncio.ensure_future(each.end()))
    result.stats = crawler.stats.get_stats()
    return result
