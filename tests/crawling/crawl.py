"""A crawl of given requests, in this process, and what came of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerRunner
from scrapy.settings import Settings

ADDON = {"scrapy_rep.Addon": 500}
SETTINGS = {
    "ADDONS": ADDON,
    "TELNETCONSOLE_ENABLED": False,
    "REP_STORE": "memory://",
    "USER_AGENT": "testbot/1.0",
    "RETRY_ENABLED": True,
    "DOWNLOAD_TIMEOUT": 20,
    "AUTOTHROTTLE_ENABLED": False,
    # Deferring has tests of its own.
    "REP_UNREACHABLE_ACTION": "drop",
}

SCRAPYS_QUEUE = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}


HAS_ROBOTS_PARSED = hasattr(signals, "robots_parsed")


@dataclass
class Crawl:
    """What came of a crawl."""

    responses: list = field(default_factory=list)
    failures: list = field(default_factory=list)
    parsed: list = field(default_factory=list)
    records: list = field(default_factory=list)
    stats: dict = field(default_factory=dict)
    crawler: object = None

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
    handle_httpstatus_all = True

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


class _Records(logging.Handler):
    def __init__(self, records):
        super().__init__(logging.DEBUG)
        self.emit = records.append


async def crawl(
    *requests, settings=None, then=None, opened=None, spidercls=ListSpider, **spider_attributes
):
    """Crawl ``requests``; ``opened`` is called with the crawler when the spider is open."""
    result = Crawl()
    runner = CrawlerRunner(Settings({**SETTINGS, **(settings or {})}, priority="project"))
    crawler = runner.create_crawler(type("Spider", (spidercls,), spider_attributes))
    result.crawler = crawler

    def parsed(robotparser, request):
        result.parsed.append((robotparser, request))

    def spider_opened():
        if opened is not None:
            opened(crawler)

    if HAS_ROBOTS_PARSED:
        crawler.signals.connect(parsed, signals.robots_parsed)
    crawler.signals.connect(spider_opened, signals.spider_opened)
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
    result.stats = crawler.stats.get_stats()
    return result
