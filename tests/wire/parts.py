"""The spider of the table, and the parts of others' stacks, named in settings by their paths."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.pipelines.files import FilesPipeline
from scrapy.utils.defer import deferred_from_coro

KEPT_AT_MOST = 3.0
"""Seconds for which `Keeps` keeps a request."""


class WireSpider(scrapy.Spider):
    """Sends the requests of its order at their times, and counts how often each has ended.

    A request of the order has a number, which its path ends with, a URL, the seconds ``at`` which it is
    sent, and a way: it is yielded by ``start``; or the callback of the first page sends it ``direct``ly,
    or has it in an item as ``media``, or yields it when it gets a page of another URL (``after``), with a
    copy of the ``meta`` of that page.
    """

    name = "wire"
    order = None

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.began = time.monotonic()
        spider.ends = Counter()
        spider.outcomes = Counter()
        spider.awaited = set(spider.order["awaited"])
        spider.has_begun_others = False
        spider.refusal_read = None
        crawler.signals.connect(spider.headers_received, signals.headers_received)
        if spider.order["closes_after_refusal"]:
            crawler.signals.connect(spider.response_downloaded, signals.response_downloaded)
        return spider

    async def start(self):
        for each in self.of_way("start", "after"):
            await self.until(each["at"])
            yield self.request(each)

    def of_way(self, *ways):
        """Return the requests of some ways, in the order of their times."""
        found = [each for each in self.order["requests"] if each["way"] in ways]
        return sorted(found, key=lambda each: each["at"])

    async def until(self, seconds):
        await asyncio.sleep(max(0.0, self.began + seconds - time.monotonic()))

    def request(self, each):
        return scrapy.Request(
            each["after"] or each["url"],
            callback=self.parse,
            errback=self.failed,
            cb_kwargs={"number": each["number"], "then": each["after"] and each["url"]},
            meta=dict(each["meta"]),
            dont_filter=True,
        )

    async def parse(self, response, number, then=None):
        if then is not None:
            yield response.request.replace(
                url=then, cb_kwargs={"number": number}, meta=dict(response.meta)
            )
            return
        self.account(number, "page")
        if not self.has_begun_others:
            self.has_begun_others = True
            if media := self.of_way("media"):
                yield {"file_urls": [each["url"] for each in media]}
            await asyncio.gather(*map(self.send_directly, self.of_way("direct")))

    async def send_directly(self, each):
        await self.until(each["at"])
        try:
            response = await self.crawler.engine.download_async(self.request(each))
        except Exception as error:  # noqa: BLE001 - counted
            self.account(each["number"], type(error).__name__)
        else:
            self.account(each["number"], "page" if response.status == 200 else response.status)

    def failed(self, failure):
        self.account(failure.request.cb_kwargs["number"], type(failure.value).__name__)

    def account(self, number, outcome):
        self.ends[number] += 1
        self.outcomes[str(outcome)] += 1
        if self.awaited and self.awaited <= self.ends.keys():
            self.awaited = set()
            self.close_now()

    def headers_received(self, headers):
        if self.refusal_read is None and "Retry-After" in headers:
            self.refusal_read = time.monotonic()

    def response_downloaded(self, response):
        if response.status == 429:
            self.crawler.signals.disconnect(self.response_downloaded, signals.response_downloaded)
            asyncio.get_running_loop().call_later(0.5, self.close_now)

    def close_now(self):
        self.closing = deferred_from_coro(self.crawler.engine.close_spider_async(reason="enough"))


class CountedFiles(FilesPipeline):
    """Scrapy's pipeline, whose downloads are counted as the spider's requests."""

    def item_completed(self, results, item, info):
        numbers = [int(url.rpartition("/")[2]) for url in item["file_urls"]]
        for number, (ok, result) in zip(numbers, results, strict=True):
            info.spider.account(number, "page" if ok else type(result.value).__name__)
        return item


class Part:
    """A downloader middleware that does something to requests for pages of some hosts."""

    def __init__(self, crawler):
        self.crawler = crawler
        self.hosts = crawler.settings.getdict("WIRE_HOSTS")
        """By address, what is done to requests for it."""

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def told(self, request):
        """Return what is to be done to ``request``; None if nothing is."""
        url = urlsplit(request.url)
        return None if url.path == "/robots.txt" else self.hosts.get(url.hostname)

    def rewritten(self, request):
        """Return the URL with the other host; None if it stays."""
        host = self.told(request)
        return host and request.url.replace(urlsplit(request.url).hostname, host)


class Replaces(Part):
    """Returns a copy with another host."""

    def process_request(self, request):
        url = self.rewritten(request)
        return request.replace(url=url) if url else None


class MakesAnew(Part):
    """Returns a new request, with none of the meta of the first."""

    def process_request(self, request):
        url = self.rewritten(request)
        if url is None:
            return None
        kept = {name: getattr(request, name) for name in ("callback", "errback", "cb_kwargs")}
        return scrapy.Request(url, dont_filter=True, **kept)


class Mutates(Part):
    """Sets another host on the request itself."""

    def process_request(self, request):
        if url := self.rewritten(request):
            request._set_url(url)


class SetsAgent(Part):
    """Sets the User-Agent."""

    def process_request(self, request):
        if agent := self.told(request):
            request.headers["User-Agent"] = agent


class Keeps(Part):
    """Keeps each request for a time of its own, as one that awaits a token does."""

    async def process_request(self, request):
        if self.told(request) is not None:
            number = int(request.url.rpartition("/")[2])
            await asyncio.sleep(number * 1.37 % KEPT_AT_MOST)


class Holds(Part):
    """Holds each request for so many seconds."""

    async def process_request(self, request):
        if seconds := self.told(request):
            await asyncio.sleep(seconds)


class Blocks(Part):
    """Stops the event loop for 0.1 to 0.5 s with every third request."""

    def __init__(self, crawler):
        super().__init__(crawler)
        self.random = random.Random(41)

    def process_request(self, request):
        if self.told(request) is not None and self.random.random() < 1 / 3:
            time.sleep(self.random.uniform(*Stalls.SECONDS))


class SendsBehind(Part):
    """Sends each request again, at once and two seconds later, behind Scrapy's back."""

    def process_request(self, request):
        if self.told(request) is not None:
            url = urlsplit(request.url)
            self.sent = [asyncio.ensure_future(self.send(url, seconds)) for seconds in (0, 2)]

    async def send(self, url, seconds):
        await asyncio.sleep(seconds)
        _, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        await writer.drain()
        writer.close()


class Forbids(Part):
    """Drops requests, of which one is forgotten."""

    async def process_request(self, request):
        if self.told(request) is None:
            return
        if request.url.endswith("3"):
            await asyncio.Future()
        raise IgnoreRequest


class Stalls:
    """An extension that stops the event loop for 0.1 to 0.5 s, again and again."""

    SECONDS = (0.1, 0.5)
    BETWEEN = (0.2, 1.0)

    def __init__(self, crawler):
        self.random = random.Random(41)
        crawler.signals.connect(self.begin, signals.spider_opened)
        crawler.signals.connect(self.end, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def begin(self):
        seconds = self.random.uniform(*self.BETWEEN)
        self.timer = asyncio.get_running_loop().call_later(seconds, self.stall)

    def stall(self):
        time.sleep(self.random.uniform(*self.SECONDS))
        self.begin()

    def end(self):
        self.timer.cancel()


class StallsAtDownloader:
    """An extension that stops the event loop when a request has reached the downloader."""

    def __init__(self, crawler):
        self.random = random.Random(41)
        crawler.signals.connect(self.stall, signals.request_reached_downloader)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def stall(self):
        if self.random.random() < 1 / 20:
            time.sleep(self.random.uniform(*Stalls.SECONDS))
