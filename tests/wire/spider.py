"""The spider of the table, and what it tells: how often each request has ended, and of a refusal."""

import random
import time
from collections import Counter
from contextlib import suppress

import scrapy
from scrapy import signals
from scrapy.pipelines.files import FilesPipeline
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, DeferredList

from scrapy_rep.utils.concurrency import sleep
from tests.crawling.crawl import SETTINGS


class WireSpider(scrapy.Spider):
    """Sends the requests of its order at their times.

    A request of the order has a number, which its path ends with, or None, if it is not counted; a URL;
    its ``meta``, if it has any; the seconds ``at`` which it is sent; and a way: it is yielded by ``start``,
    or the callback of the first page sends it ``direct``ly, or has it in an item as ``media``. The request
    ``then`` is yielded for its page, with a copy of the ``meta`` of that. The spider closes when the
    requests with the numbers ``awaited`` have ended, or ``closes_after_refusal``.
    """

    name = "wire"
    settings_before = SETTINGS

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        random.seed(41)
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.began = time.monotonic()
        spider.awaited = set(spider.order["awaited"])
        spider.has_begun_others = False
        spider.crawl.told = {"ends": Counter(), "refusal_read": None}
        crawler.signals.connect(spider.headers_received, signals.headers_received)
        if spider.order["closes_after_refusal"]:
            crawler.signals.connect(spider.response_downloaded, signals.response_downloaded)
        return spider

    async def start(self):
        for each in self.of_way("start"):
            try:
                await self.until(each["at"])
            except CancelledError:  # Scrapy logs that as an error, with Twisted's reactors
                return
            yield self.request(each)

    def of_way(self, way):
        found = [each for each in self.order["requests"] if each["way"] == way]
        return sorted(found, key=lambda each: each["at"])

    async def until(self, seconds):
        if (left := self.began + seconds - time.monotonic()) > 0:
            await sleep(left)

    def request(self, each, meta=None):
        return scrapy.Request(
            each["url"],
            callback=self.parse,
            errback=self.failed,
            cb_kwargs={"number": each["number"], "then": each.get("then")},
            meta={**each.get("meta", {}), **(meta or {})},
            dont_filter=True,
        )

    async def parse(self, response, number, then=None):
        self.account(number)
        if then is not None:
            yield self.request(then, response.meta)
        if not self.has_begun_others:
            self.has_begun_others = True
            if media := self.of_way("media"):
                yield {"file_urls": [each["url"] for each in media]}
            sending = [deferred_from_coro(self.send(each)) for each in self.of_way("direct")]
            await maybe_deferred_to_future(DeferredList(sending))

    async def send(self, each):
        await self.until(each["at"])
        with suppress(Exception):
            await self.crawler.engine.download_async(self.request(each))
        self.account(each["number"])

    def failed(self, failure):
        self.account(failure.request.cb_kwargs["number"])

    def account(self, number):
        if number is None:
            return
        self.crawl.told["ends"][number] += 1
        if number in self.awaited:
            self.awaited.remove(number)
            if not self.awaited:
                self.close_now()

    def headers_received(self, headers):
        if "Retry-After" in headers and self.crawl.told["refusal_read"] is None:
            self.crawl.told["refusal_read"] = time.monotonic()

    def response_downloaded(self, response):
        if response.status == 429:
            self.crawler.signals.disconnect(self.response_downloaded, signals.response_downloaded)
            call_later(0.5, self.close_now)

    def close_now(self):
        self.closing = deferred_from_coro(self.crawler.engine.close_spider_async(reason="enough"))


class CountedFiles(FilesPipeline):
    """Scrapy's pipeline, whose downloads are counted as the spider's requests."""

    def item_completed(self, results, item, info):
        for url in item["file_urls"]:
            info.spider.account(int(url.rpartition("/")[2]))
        return item
