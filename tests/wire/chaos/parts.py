"""The spider, and the parts of others' stacks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse
from scrapy.pipelines.files import FilesPipeline
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, DeferredList

from scrapy_rep.utils.concurrency import sleep


class Journal:
    """What happened in a process, a line of JSON each, in a file that survives it."""

    def __init__(self, path):
        self.file = Path(path).open("a", buffering=1)  # noqa: SIM115

    def write(self, what, **more):
        self.file.write(json.dumps({"t": time.monotonic(), "what": what, **more}) + "\n")


class ChaosSpider(scrapy.Spider):
    """Sends the requests of its order, and writes down when each began and ended."""

    name = "chaos"
    order = None

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.journal = Journal(spider.order["journal"])
        spider.began = time.monotonic()
        spider.begun_others = False
        spider.sending = []
        crawler.signals.connect(spider.scheduled, signals.request_scheduled)
        crawler.signals.connect(spider.headers_received, signals.headers_received)
        crawler.signals.connect(spider.reached, signals.request_reached_downloader)
        return spider

    def url(self, each):
        return f"http://{each['address']}:{self.order['port']}/{each['kind']}/{each['number']}"

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
            self.url(each),
            callback=self.parse,
            errback=self.failed,
            cb_kwargs={"number": each["number"], "then": each.get("then")},
            meta=dict(meta or {}),
            dont_filter=True,
        )

    async def parse(self, response, number, then=None):
        self.account(number, "page")
        if then is not None:
            yield self.request(then, response.meta)
        if not self.begun_others:
            self.begun_others = True
            if media := self.of_way("media"):
                for each in media:
                    self.journal.write("begun", number=each["number"])
                yield {"file_urls": [self.url(each) for each in media]}
            sending = [deferred_from_coro(self.send(each)) for each in self.of_way("direct")]
            await maybe_deferred_to_future(DeferredList(sending))

    async def send(self, each):
        await self.until(each["at"])
        self.journal.write("begun", number=each["number"])
        try:
            response = await self.crawler.engine.download_async(self.request(each))
        except Exception as error:  # noqa: BLE001 - counted
            self.account(each["number"], type(error).__name__)
        else:
            self.account(each["number"], f"direct {response.status}")

    def failed(self, failure):
        self.account(failure.request.cb_kwargs["number"], type(failure.value).__name__)

    def account(self, number, outcome):
        self.journal.write("end", number=number, outcome=outcome)

    def scheduled(self, request):
        if "number" in request.cb_kwargs:
            self.journal.write("begun", number=request.cb_kwargs["number"])

    def reached(self, request):
        if "/lose/" in request.url:
            self.journal.write("reached", url=request.url)

    def headers_received(self, request):
        self.journal.write("read", url=request.url)


class CountedFiles(FilesPipeline):
    """Scrapy's pipeline, whose downloads are counted as the spider's requests."""

    def item_completed(self, results, item, info):
        for url, (ok, result) in zip(item["file_urls"], results, strict=True):
            outcome = "media" if ok else type(result.value).__name__
            info.spider.account(int(url.rpartition("/")[2]), outcome)
        return item


class Part:
    """A downloader middleware that does to requests for pages of some hosts what it is told."""

    index = 0

    def __init__(self, crawler):
        self.crawler = crawler
        told = crawler.settings["WIRE_PARTS"][self.index]
        self.hosts = told["hosts"]
        self.does = getattr(self, told["kind"])

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_request(self, request):
        url = urlsplit(request.url)
        if url.path == "/robots.txt" or url.hostname not in self.hosts:
            return None
        number = int(url.path.rpartition("/")[2])
        return await self.does(request, self.hosts[url.hostname], number)

    def elsewhere(self, request, address):
        return request.url.replace(urlsplit(request.url).hostname, address, 1)

    async def mutates(self, request, address, number):
        if number % 2:
            request._set_url(self.elsewhere(request, address))

    async def replaces(self, request, address, number):
        return request.replace(url=self.elsewhere(request, address)) if number % 2 else None

    async def anew(self, request, address, number):
        if not number % 2:
            return None
        kept = {name: getattr(request, name) for name in ("callback", "errback", "cb_kwargs")}
        return scrapy.Request(self.elsewhere(request, address), dont_filter=True, **kept)

    async def agent(self, request, agent, number):
        if number % 3:
            request.headers["User-Agent"] = agent

    async def keeps(self, request, most, number):
        await sleep(number * 1.37 % most)

    async def drops(self, request, told, number):
        if number % 5 == 0:
            raise IgnoreRequest("a middleware drops it")

    async def raises(self, request, told, number):
        if number % 5 == 0:
            raise RuntimeError("a middleware raises it")

    async def answers(self, request, told, number):
        if number % 4 == 0:
            return HtmlResponse(request.url, body=b"words", request=request)
        return None

    async def private(self, request, told, number):
        if number % 3 == 0:
            url = urlsplit(request.url)
            request._set_url(f"http://{url.netloc}/private/{number}")

    async def again(self, request, told, number):
        """Return a copy, once."""
        if number % 2 and not request.meta.get("came"):
            return request.replace(meta={**request.meta, "came": True}, dont_filter=True)
        return None

    # Positive controls.

    async def forgets(self, request, told, number):
        if number % 7 == 0:
            await sleep(10_000)

    async def doubles(self, request, told, number):
        if number % 7 == 0 and not request.meta.get("came"):
            copy = request.replace(meta={**request.meta, "came": True}, dont_filter=True)
            self.crawler.engine.crawl(copy)

    async def exempts(self, request, told, number):
        if number % 2:
            request.meta["dont_obey_robotstxt"] = True

    async def complains(self, request, told, number):
        self.crawler.spider.logger.error("something went wrong")


class Part0(Part):
    pass


class Part1(Part):
    index = 1


class Part2(Part):
    index = 2


class Part3(Part):
    index = 3


class Part4(Part):
    index = 4


PARTS_OF = (Part0, Part1, Part2, Part3, Part4)
"""One class for each place, as a middleware has one order."""
