"""What Scrapy's download handlers send is among the spellings that are judged.

Some thousand odd URLs go through each handler to a real server. A release of Scrapy, Twisted, yarl,
httpx or Python that makes something else of a URL fails here.
"""

import asyncio
from collections import Counter
from importlib import import_module
from types import SimpleNamespace

import pytest
from scrapy import Request, Spider
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.test import get_crawler

from scrapy_rep.decision.decider import Decider
from scrapy_rep.decision.spellings import _in_path, without_dot_segments
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol.canonical import canonical_target
from scrapy_rep.protocol.origin import origin_of, split_url, target_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from tests.decision.odd_urls import odd_urls
from tests.decision.wire import Ftp, Http, Http2
from tests.waiting import PATIENCE

HANDLERS = "scrapy.core.downloader.handlers."
AT_ONCE = 16


class Shipped:
    """A handler, and what it takes to try it."""

    def __init__(self, path, wire, *, needs=(), proxy=False):
        self.path = HANDLERS + path
        self.wire = wire
        self.needs = (self.path.rpartition(".")[0], *needs)
        self.proxy = proxy

    def skip_if_missing(self):
        try:
            modules = [import_module(module) for module in self.needs]
        except ImportError as error:
            pytest.skip(str(error))
        if getattr(modules[0], "httpx", True) is None:
            pytest.skip("no httpx")

    def handler(self):
        crawler = get_crawler(Spider, {"DOWNLOAD_HANDLERS": {self.wire.scheme: self.path}})
        crawler.spider = Spider.from_crawler(crawler, name="odd")
        return build_from_crawler(load_object(self.path), crawler), crawler


SHIPPED = {
    "HTTP/1.1": Shipped("http11.HTTP11DownloadHandler", Http),
    "HTTP/1.1 through a proxy": Shipped("http11.HTTP11DownloadHandler", Http, proxy=True),
    # Before Scrapy 2.19 its requests may wait for ever.
    "HTTP/2": Shipped("http2.H2DownloadHandler", Http2, needs=["h2", "scrapy.core._http2"]),
    "FTP": Shipped("ftp.FTPDownloadHandler", Ftp),
    "aiohttp": Shipped("_aiohttp.AiohttpDownloadHandler", Http),
    "aiohttp through a proxy": Shipped("_aiohttp.AiohttpDownloadHandler", Http, proxy=True),
    "httpx": Shipped("_httpx.HttpxDownloadHandler", Http),
}


def requests(shipped, port):
    """The requests of all odd URLs that Scrapy takes and that have an origin, numbered."""
    seen = set()
    for url in odd_urls(shipped.wire.scheme, port):
        for verbatim in (False, True):
            meta = {"verbatim_url": verbatim, "download_timeout": PATIENCE}
            if shipped.proxy:
                meta["proxy"] = f"http://127.0.0.1:{port}"
            try:
                request = Request(url, meta=meta)
            except ValueError:
                continue
            if (request.url, verbatim) in seen:
                continue
            seen.add((request.url, verbatim))
            number = str(len(seen))
            request.meta["ftp_user"] = number
            request.headers["X-Number"] = number
            yield int(number), request


async def send(handler, requests):
    """Send ``requests``, some at a time, and return how many the handler refused."""

    async def one_after_the_other():
        for request in left:
            try:
                await handler.download_request(request)
            except Exception as error:  # noqa: BLE001, PERF203 - each handler has its own
                refused.append(error)

    left = iter(requests)
    refused = []
    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
    return len(refused)


def arrived(wire, number, scheme):
    """Origin, None where that isn't told, and target of a request, as they came."""
    octets = wire.targets[number]
    if octets.startswith(b"http://"):
        return split_url(octets.decode())
    # FTP knows no escapes and no queries.
    escaped = b"%?#" if scheme == "ftp" else b""
    target = "".join(
        f"%{octet:02X}" if octet in escaped or octet > 126 else chr(octet) for octet in octets
    )
    server = wire.servers.get(number)
    return (
        server and origin_of(f"{scheme}://{server}"),
        canonical_target(target if target.startswith("/") else f"/{target}"),
    )


def without_dot(origin):
    """aiohttp takes off the dot at the end of a name, for robots.txt as for pages."""
    return origin._replace(host=origin.host.rstrip("."))


class Judged:
    """In place of the cache, and of all that it knows: allows everything, and notes the targets."""

    def __init__(self):
        self.origin = None
        self.targets = set()

    def known_entry(self, origin):
        self.origin = origin
        self.targets = set()
        return self

    def verdict(self, target, tokens, effort=None):
        self.targets.add(target)
        return Verdict(allowed=True, reason=Reason.NO_RULE)


async def compare(shipped, certificate):
    handler, crawler = shipped.handler()
    judged = Judged()
    decider = Decider(crawler, SimpleNamespace(cache=judged), Overrides((), None))
    wire = shipped.wire()
    await wire.open(certificate)
    expected = {}
    counts = Counter()
    for number, request in requests(shipped, wire.port):
        counts["URLs"] += 1
        decision = decider.known_decision(request)
        if decision is None or not decision.verdict.allowed:
            counts["not to be sent"] += 1
        elif judged.origin.port != wire.port:
            counts["of another port"] += 1
        else:
            expected[number] = request, judged.origin, judged.targets
    counts["refused by the handler"] = await send(
        handler, [request for request, _, _ in expected.values()]
    )
    await handler.close()
    wire.close()
    for number in wire.targets:
        counts["on the wire"] += 1
        request, origin, targets = expected[number]
        came_to, came = arrived(wire, number, shipped.wire.scheme)
        if came_to is not None:
            assert without_dot(came_to) == without_dot(origin), request.url
        # Some segments only become dot segments as they are sent; no rule is written so.
        assert {came, _in_path(without_dot_segments)(came)} & targets, (
            request.url,
            request.meta,
            wire.targets[number],
            targets,
        )
        counts["in another form than asked"] += came != target_of(request.url)
    return counts


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.usefixtures("all_names_are_here")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.in_asyncio
async def test_what_is_sent_was_judged(name, certificate):
    SHIPPED[name].skip_if_missing()
    counts = await compare(SHIPPED[name], certificate)
    print(f"{name}: {dict(counts)}")
    assert counts["on the wire"] > 1000
