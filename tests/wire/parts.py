"""The parts of others' stacks: downloader middlewares, and extensions that are named in settings."""

import asyncio
import random
import time
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later

from scrapy_rep.utils.concurrency import sleep
from tests.crawling.crawl import OfCrawler

STALL = (0.1, 0.5)
"""Seconds for which an event loop stops."""


def number_of(request):
    return int(urlsplit(request.url).path.rpartition("/")[2])


def elsewhere(request, address):
    return request.url.replace(urlsplit(request.url).hostname, address, 1)


class Part(OfCrawler):
    """A downloader middleware that does to requests for pages of some hosts what it is told.

    WIRE_PARTS has the name of one of its methods, what that method is given for each host, and ``of``:
    with ``(3, [0])``, only each third request.
    """

    number = 0

    def __init__(self, crawler):
        self.told = crawler.settings["WIRE_PARTS"][self.number]
        self.random = random.Random(41)
        self.does = getattr(self, self.told["kind"])
        self.every, self.of = self.told["of"]

    async def process_request(self, request):
        url = urlsplit(request.url)
        is_other = url.path == "/robots.txt" or url.hostname not in self.told["hosts"]
        if is_other or number_of(request) % self.every not in self.of:
            return None
        return await self.does(request, self.told["hosts"][url.hostname])

    async def mutates(self, request, address):
        request._set_url(elsewhere(request, address))

    async def replaces(self, request, address):
        return request.replace(url=elsewhere(request, address))

    async def anew(self, request, address):
        """Return a new request, with none of the meta of the first."""
        kept = {name: getattr(request, name) for name in ("callback", "errback", "cb_kwargs")}
        return scrapy.Request(elsewhere(request, address), dont_filter=True, **kept)

    async def agent(self, request, agent):
        request.headers["User-Agent"] = agent

    async def keeps(self, request, most):
        """Keep each request for a time of its own, as one that awaits a token does."""
        await sleep(number_of(request) * 1.37 % most)

    async def holds(self, request, seconds):
        await sleep(seconds)

    async def drops(self, request, _):
        raise IgnoreRequest("a middleware drops it")

    async def blocks(self, request, _):
        """Stop the event loop with every third request."""
        if self.random.random() < 1 / 3:
            time.sleep(self.random.uniform(*STALL))

    # Positive controls.

    async def sends_behind(self, request, _):
        """Send each request again, at once and two seconds later, behind Scrapy's back."""
        url = urlsplit(request.url)
        self.sent = [asyncio.ensure_future(self.send(url, seconds)) for seconds in (0, 2)]

    async def send(self, url, seconds):
        await asyncio.sleep(seconds)
        _, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def forgets(self, request, _):
        await sleep(10_000)


class OtherPart(Part):
    number = 1


class Stalls(OfCrawler):
    """An extension that stops the event loop, again and again."""

    BETWEEN = (0.2, 1.0)

    def __init__(self, crawler):
        self.random = random.Random(41)
        crawler.signals.connect(self.begin, signals.spider_opened)
        crawler.signals.connect(self.end, signals.spider_closed)

    def begin(self):
        self.timer = call_later(self.random.uniform(*self.BETWEEN), self.stall)

    def stall(self):
        time.sleep(self.random.uniform(*STALL))
        self.begin()

    def end(self):
        self.timer.cancel()


class StallsAtDownloader(Stalls):
    """An extension that stops the event loop when a request has reached the downloader."""

    def __init__(self, crawler):
        self.random = random.Random(41)
        crawler.signals.connect(self.reached, signals.request_reached_downloader)

    def reached(self):
        if self.random.random() < 1 / 20:
            time.sleep(self.random.uniform(*STALL))
