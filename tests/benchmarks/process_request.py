"""Time of ``process_request`` on an origin that is known: ours against Scrapy's built-in.

Ours is the first middleware, the last one and the wire together. Each request is fresh, as in a crawl, allowed by
both, and to a site without a delay. Of the rounds in turns the fastest, which was disturbed least, is compared.
"""

import asyncio
from itertools import islice
from time import perf_counter, time
from types import SimpleNamespace

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltIn
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_rep import RobotsTxtFetchMiddleware, RobotsTxtMiddleware
from scrapy_rep.cache.entry import Entry
from scrapy_rep.downloadermiddlewares.wire import Wire
from scrapy_rep.protocol.access_policy import Access
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.utils.per_crawl import get_part
from tests.protocol import corpus
from tests.scheduler.queues import Downloader

ROUNDS = 25
SITES = 300
RESPONSE = Response("https://example.com/")
AGENT = "Scrapy/2.19 (+https://scrapy.org)"


def know_ours(middleware, url, body):
    origin = origin_of(url)
    now = time()
    entry = Entry(Access(None, Available(body, Evidence(now, url, 200)), now - 1, now + 1e6))
    entry.add_rules(middleware.decider.tokens.of_request(Request(url)), RobotsTxt.parse(body))
    middleware._parts.lookups.cache.entries.put(origin, entry, entry.nbytes)


def know_builtin(middleware, url, body):
    middleware._parsers[url.split("/")[2]] = ProtegoRobotParser(body, None)


def run(process_request, requests):
    start = perf_counter()
    for request in requests:
        process_request(request)
    return perf_counter() - start


async def run_wire(wire, requests):
    start = perf_counter()
    for request in requests:
        await wire.download(request, respond)
    through = perf_counter() - start
    start = perf_counter()
    for request in requests:
        await respond(request)
    return through - (perf_counter() - start)


async def respond(request):
    return RESPONSE


def run_builtin(middleware, requests):
    process_request = middleware.process_request
    start = perf_counter()
    for request in requests:
        for _ in process_request(request).__await__():
            raise RuntimeError("the built-in waits for an origin that is known")
    return perf_counter() - start


def allows(ours, builtin, url):
    decision = ours.decider.known_decision(Request(url))
    if not decision.verdict.allowed or decision.entry.has_delay:
        return False
    try:
        run_builtin(builtin, [Request(url)])
    except IgnoreRequest:
        return False
    return True


async def main():
    settings = {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "REP_STORE": "memory://",
        "USER_AGENT": AGENT,
        "TWISTED_REACTOR_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_ENABLED": False,
    }
    crawler = Crawler(Spider, settings)
    crawler._apply_settings()
    crawler.engine = SimpleNamespace(downloader=Downloader())
    ours, builtin = RobotsTxtMiddleware(crawler), BuiltIn(crawler)
    last = RobotsTxtFetchMiddleware(crawler)
    wire = get_part(crawler, Wire)
    wire.is_installed = True
    urls = []
    for _, body, site_urls in islice(corpus.read("sites"), SITES):
        if not site_urls:
            continue
        know_ours(ours, site_urls[0], body)
        for url in site_urls:
            if origin_of(url) == origin_of(site_urls[0]):
                know_builtin(builtin, url, body)
                if allows(ours, builtin, url):
                    urls.append(url)
    times = {"scrapy_rep": [], "the last one": [], "its wire": [], "together": [], "built-in": []}
    for _ in range(ROUNDS):
        requests = [Request(url) for url in urls]
        times["scrapy_rep"].append(run(ours.process_request, requests))
        for request in requests:
            request.headers.setdefault(b"User-Agent", AGENT)
        times["the last one"].append(run(last.process_request, requests))
        times["its wire"].append(await run_wire(wire, requests))
        parts = ("scrapy_rep", "the last one", "its wire")
        times["together"].append(sum(times[part][-1] for part in parts))
        times["built-in"].append(run_builtin(builtin, [Request(url) for url in urls]))
    print(f"process_request on a known origin, {len(urls)} requests, {ROUNDS} rounds, fastest")
    for name, rounds in times.items():
        each = min(rounds) / len(urls) * 1e6
        ratio = min(times["built-in"]) / min(rounds)
        print(f"{name:12} {each:7.2f} µs a request  {ratio:5.1f} times as fast as the built-in")


if __name__ == "__main__":
    if corpus.folder() is None:
        print("no corpus at ../shared/corpus or $REP_CORPUS")
    else:
        asyncio.run(main())
