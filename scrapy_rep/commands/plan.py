"""``scrapy robots plan``: prints how many URLs of a list are allowed.

It also prints how long a crawl of these URLs takes at least, because of the delays of sites. URLs
may be read from a file of any size: most are counted at once, and not kept in memory. Only the URLs
whose robots.txt is not known yet are kept, up to a maximum number.
"""

from __future__ import annotations

import argparse
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from scrapy_rep.admission.crawl_delay import DelayLimits
from scrapy_rep.commands.forecast import Forecast
from scrapy_rep.commands.sitemaps import Sitemaps
from scrapy_rep.commands.spider import CoroutineRunner, gather, robots_of
from scrapy_rep.commands.terminal import (
    EXIT_OK,
    EXIT_UNKNOWN,
    Progress,
    coloured,
    scheme_hint,
)
from scrapy_rep.decision.decider import Decision
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.product_tokens import tokens_of_setting
from scrapy_rep.utils.concurrency import Workers
from scrapy_rep.utils.download_slots import configured_delay, slot_name
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import (
    counted,
    describe_duration,
    printable,
    printable_request,
    without_credentials,
)

logger: Final = LimitedLogger(__name__)

_AT_A_TIME: Final = 500
"""Number of lines that are read at a time."""
_MAX_LINE: Final = 100_000
"""Maximum size of a line in bytes. The rest of a longer line counts as another line."""
_MOST_WAITING: Final = 5_000
"""Maximum number of URLs that wait for their robots.txt. At this number, no more URLs are read."""
_SITEMAPS_AT_A_TIME: Final = 16
_HOUR: Final = 3_600
_MAX_WARNINGS: Final = 10
"""Maximum number of messages about invalid URLs and sitemaps that are printed."""


def plan(urls: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    """Print the plan for URLs; return the exit status. The URLs are not fetched."""
    stream = _open_file(opts.urls_from) if opts.urls_from else None
    if not urls and stream is None:
        raise UsageError("plan requires URLs", print_help=False)
    plans: list[_Plan] = []

    async def in_crawl(crawler: Crawler) -> bool:
        plans.append(_Plan(crawler, opts, runner))
        await plans[0].make(urls, stream)
        return True

    complete = False
    try:
        complete = runner.run(in_crawl)
    except CrawlClosingError:
        if not plans:
            raise
    result = plans[0].result(complete=complete)
    print(json.dumps(result) if opts.json else "\n".join(_lines(result)))
    return EXIT_OK if result["complete"] else EXIT_UNKNOWN


def _open_file(path: str) -> BinaryIO:
    try:
        # sys.stdin is not used: after Ctrl-C, its lock would block the end of the process.
        return open(0, "rb", closefd=False) if path == "-" else open(path, "rb")  # noqa: PTH123
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", print_help=False) from None


class _Plan:
    """Counts URLs by the decisions on them while they are read."""

    def __init__(self, crawler: Crawler, opts: argparse.Namespace, runner: CoroutineRunner) -> None:
        self._crawler = crawler
        self._robots = robots_of(crawler)
        self._decider = self._robots.decider
        self._delays = DelayLimits(crawler, runner.options)
        self._forecast = Forecast()
        self._seconds: float | None = opts.delay
        self._slower = None if opts.delay is None else Forecast()
        self._agent: str | None = opts.other_agent
        self._tokens = tokens_of_setting(opts.other_agent) if opts.other_agent else ()
        self._other = Forecast() if opts.other_agent else None
        self._sitemaps = Sitemaps(crawler, self._warn) if opts.sitemaps else None
        self._progress = Progress()
        self._closing = False
        self._urls = self._invalid = self._warnings = self._done = 0
        self._waiting: dict[Origin, list[Request]] = {}
        self._places = DeferredSemaphore(_MOST_WAITING)
        self._origins: dict[Origin, None] = {}

    async def make(self, urls: list[str], stream: BinaryIO | None) -> None:
        """Count ``urls``, the URLs in ``stream`` and, with ``--sitemaps``, the URLs in sitemaps.

        Raises CrawlClosingError if the crawl closes before all URLs are counted.
        """
        for url in urls:
            await self._add_url(url)
        if stream is not None:
            reader = Workers("plan")
            lines = iter(partial(stream.readline, _MAX_LINE), b"")
            is_first = True
            while batch := await reader.call(partial(_next_batch, lines)):
                if is_first:
                    batch[0] = batch[0].removeprefix(BOM_UTF8)
                    is_first = False
                for line in batch:
                    text = line.decode("utf-8", "surrogateescape").strip()
                    if text and not text.startswith("#"):
                        await self._add_url(text)
                self._progress.update(self._done, self._urls)
            await reader.stop()
        await self._wait_until_counted()
        if self._sitemaps is not None:
            origins = iter(list(self._origins))
            await gather(self._read_sitemaps(origins) for _ in range(_SITEMAPS_AT_A_TIME))
            await self._wait_until_counted()
        self._progress.update(self._urls, self._urls)

    async def _add_url(self, url: str, *, from_sitemap: bool = False) -> None:
        """Count a URL, at once or when its robots.txt is known.

        Raises CrawlClosingError if the crawl is closing.
        """
        if self._closing:
            raise CrawlClosingError
        self._urls += 1
        try:
            origin = origin_of(url)
            if origin.scheme == "ftp":
                raise ValueError("not an absolute http or https URL")  # noqa: TRY301
            request = Request(url)
            decision = self._decider.known_decision(request)
        except ValueError as error:
            self._invalid += 1
            self._done += 1
            self._warn(f"{printable(without_credentials(url))}: {error}{scheme_hint(url)}")
            return
        if self._sitemaps is not None and not from_sitemap:
            self._origins[origin] = None
        if decision is not None and self._has_verdicts(decision) and origin not in self._waiting:
            await self._count_page(request, decision)
            return
        # There is one task for all waiting URLs of an origin, so that a site that hangs delays only
        # its own URLs.
        await maybe_deferred_to_future(self._places.acquire())
        if origin in self._waiting:
            self._waiting[origin].append(request)
        else:
            self._waiting[origin] = [request]
            deferred_from_coro(self._count_waiting(origin))

    def _has_verdicts(self, decision: Decision) -> bool:
        verdict, entry = decision.verdict, decision.entry
        if verdict is None or self._other is None or entry is None:
            return verdict is not None
        return entry.verdict(decision.target, self._tokens) is not None

    async def _count_waiting(self, origin: Origin) -> None:
        """Count all URLs that wait for the robots.txt of ``origin``."""
        requests = self._waiting[origin]
        for request in requests:  # ``_add_url`` may append further requests during the loop
            try:
                _, decision = await self._robots.decide(request)
                await self._count_page(request, decision)
            except CrawlClosingError:
                self._closing = True
            except Exception:
                logger.exception("Error while planning %s", printable_request(request))
            self._places.release()
        del self._waiting[origin]
        self._progress.update(self._done, self._urls)

    async def _wait_until_counted(self) -> None:
        """Wait until no URL waits for its robots.txt: until all places are free.

        Raises CrawlClosingError if the crawl is closing.
        """
        for _ in range(_MOST_WAITING):
            await maybe_deferred_to_future(self._places.acquire())
        for _ in range(_MOST_WAITING):
            self._places.release()
        if self._closing:
            raise CrawlClosingError

    async def _count_page(self, request: Request, decision: Decision) -> None:
        name = slot_name(self._crawler, request)
        own = configured_delay(self._crawler, name)
        delay = self._delays.seconds_before(decision)
        self._forecast.add(decision, name, max(own, delay))
        if self._slower is not None:
            slower = configured_delay(self._crawler, name, self._seconds)
            self._slower.add(decision, name, max(slower, delay))
        if self._other is not None:
            other = await self._decider.decision_with_tokens(self._tokens, request, decision)
            self._other.add(other, name, max(own, self._delays.seconds_before(other)))
        self._done += 1

    async def _read_sitemaps(self, origins: Iterator[Origin]) -> None:
        for origin in origins:
            named = await self._robots.sitemaps(origin.robotstxt_url)
            if self._sitemaps is not None and named:
                async for url in self._sitemaps.urls(named, origin.robotstxt_url):
                    await self._add_url(url, from_sitemap=True)

    def _warn(self, text: str) -> None:
        self._warnings += 1
        if self._warnings <= _MAX_WARNINGS:
            self._progress.clear()
            print(text, file=sys.stderr)
        elif self._warnings == _MAX_WARNINGS + 1:
            print("further lines like these are left out", file=sys.stderr)

    def result(self, *, complete: bool) -> dict[str, Any]:
        """Return the plan as plain values. ``complete`` is false if the crawl ended early."""
        self._progress.clear()
        result = {
            "urls": self._urls,
            **self._forecast.as_dict(),
            "invalid": self._invalid,
            "pending": self._urls - self._done,
            "complete": complete and self._done == self._urls,
        }
        if self._slower is not None:
            seconds = self._slower.as_dict()["seconds"]
            result["with_delay"] = {"delay": self._seconds, "seconds": seconds}
        if self._other is not None:
            other = self._other.as_dict()
            del other["slowest"], other["origins"]
            result["with_agent"] = {"agent": self._agent, **other}
        return result


def _next_batch(lines: Iterator[bytes]) -> list[bytes]:
    return list(islice(lines, _AT_A_TIME))


def _lines(result: dict[str, Any]) -> list[str]:
    """Return the plan ``result`` as lines of text."""
    names = ["urls", "allowed", "disallowed", "unreachable", "refused", "invalid", "pending"]
    always = ("urls", "allowed", "disallowed", "unreachable")
    lines = [f"{name:12}{result[name]:>10,}" for name in names if result[name] or name in always]
    lines += [
        f"{'origins':12}{result['origins']:>10,}",
        f"at least    {_describe_seconds(result):>10}",
    ]
    if result["slowest"]:
        lines += ["", coloured("heading", "The slowest hosts")]
        for host in result["slowest"]:
            pages = f"{counted(host['urls'], 'page')}, {host['delay']:g} s between two"
            lines.append(f"  {_describe_seconds(host):>10}  {host['origin']}  {pages}")
    if "with_delay" in result:
        other = result["with_delay"]
        lines += [
            "",
            f"with DOWNLOAD_DELAY = {other['delay']:g}: at least {_describe_seconds(other)}",
        ]
    if "with_agent" in result:
        other = result["with_agent"]
        counts = ", ".join(f"{name} {other[name]:,}" for name in always[1:])
        name = printable(other["agent"])
        lines += ["", f"as {name}: {counts}, at least {_describe_seconds(other)}"]
    if not result["complete"]:
        lines += ["", "The plan was ended before all URLs were known."]
    return lines


def _describe_seconds(result: dict[str, Any]) -> str:
    seconds: float = result["seconds"]
    hours = f"{seconds / _HOUR:.1f} h"
    return hours if seconds >= _HOUR else describe_duration(seconds)
