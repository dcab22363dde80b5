from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.exceptions import DontCloseSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import TextResponse


class FleetSpider(scrapy.Spider):
    """One worker of many: takes requests from the fleet's queue, and adds the links it finds.

    ``scrapy crawl fleet -a start=URL -a idle=SECONDS -a report=FILE``. The queue is scrapy-redis's
    (see fleet_settings.py); the start goes to it too, and is fetched by one worker, as the
    dupefilter is the fleet's.
    """

    name = "fleet"

    def __init__(
        self, start: str, idle: str = "8", report: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.first = start
        self.idle = float(idle)
        self.report = report
        self.busy_at = monotonic()

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> FleetSpider:
        """Return the spider, which is told when it has nothing to do."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.spider_idle, signals.spider_idle)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Begin with the one page that was given."""
        yield scrapy.Request(self.first, errback=self.dropped)

    def parse(self, response: TextResponse) -> Iterator[scrapy.Request]:
        """Follow all links."""
        self.busy_at = monotonic()
        for link in response.css("a"):
            yield response.follow(link, errback=self.dropped)

    def dropped(self, _: object) -> None:
        """Take note that the crawl goes on."""
        self.busy_at = monotonic()

    def spider_idle(self) -> None:
        """Stay, for a while."""
        # Others may still find links: the end is when nothing has come for a while. Scrapy looks
        # every five seconds.
        if monotonic() - self.busy_at < self.idle:
            raise DontCloseSpider

    def closed(self, _: str) -> None:
        """Write the report."""
        if self.report:
            stats = self.crawler.stats.get_stats()
            numbers = {name: value for name, value in stats.items() if isinstance(value, int)}
            Path(self.report).write_text(json.dumps(numbers), encoding="utf-8")
