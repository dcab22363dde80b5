"""``scrapy robots plan``: prints how many URLs of a list are allowed.

It also prints how long a crawl of these URLs takes at least, because of the delays of sites. URLs
may be read from a file of any size: most are counted at once, and not kept in memory. Only the URLs
whose robots.txt is not known yet are kept, up to a maximum number.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from scrapy_rep.admission.delays import DelayLimits
from scrapy_rep.commands.arguments import (
    AGENT,
    FRESH,
    JSON,
    OTHER_AGENT,
    PURPOSE,
    URLS_FROM,
    Option,
    Subcommand,
    file_error,
    file_or_scheme_hint,
    invalid_url_text,
    seconds,
    urls_in,
    usage_error,
)
from scrapy_rep.commands.output import EXIT_NO, EXIT_OK, EXIT_UNKNOWN, Progress
from scrapy_rep.commands.plan_forecast import (
    Forecast,
    count_decided,
    describe_excess,
    limit_of_argument,
    plan_lines,
)
from scrapy_rep.commands.plan_sitemaps import Sitemaps
from scrapy_rep.commands.spider import CoroutineRunner, gather, robots_of
from scrapy_rep.decision.decider import Decision
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.product_tokens import tokens_of_setting
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.concurrency import Workers
from scrapy_rep.utils.download_slots import configured_delay, slot_name
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request

logger: Final = LimitedLogger(__name__)

_AT_A_TIME: Final = 500
_MAX_LINE: Final = 100_000
"""Maximum size of a line in bytes. The rest of a longer line counts as another line."""
_MOST_WAITING: Final = 5_000
"""Maximum number of URLs that wait for their robots.txt. At this number, no more URLs are read."""
_SITEMAPS_AT_A_TIME: Final = 16
_MAX_WARNINGS: Final = 10
"""Maximum number of messages about invalid URLs and sitemaps that are printed."""


def _plan(urls: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    """Print the plan; EXIT_NO above a limit of ``--fail-if``, EXIT_UNKNOWN if it isn't complete."""
    stream = _open_file(opts.urls_from) if opts.urls_from else None
    if not urls and stream is None:
        raise usage_error("plan requires URLs")
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
    print(json.dumps(result) if opts.json else "\n".join(plan_lines(result)))
    exceeded = [text for limit in opts.fail_if if (text := describe_excess(result, *limit))]
    for text in exceeded:
        print(text, file=sys.stderr)
    if not result["complete"] or not count_decided(result):
        return EXIT_UNKNOWN
    return EXIT_NO if exceeded else EXIT_OK


def _open_file(path: str) -> BinaryIO:
    """Open ``path``, or standard input (-), to read bytes. Raises UsageError if that fails."""
    try:
        # sys.stdin is not used: after Ctrl-C, its lock would block the end of the process.
        return open(0, "rb", closefd=False) if path == "-" else open(path, "rb")  # noqa: PTH123
    except OSError as error:
        raise file_error(path, error) from None


def _read_urls(stream: BinaryIO) -> Iterator[str]:
    return urls_in(iter(partial(stream.readline, _MAX_LINE), b""))


def _count_urls(path: str | None) -> int | None:
    """Return the number of URLs in a file: 0 without one, None if no bar can be shown of it."""
    if path is None:
        return 0
    if path == "-" or not sys.stderr.isatty() or not Path(path).is_file():
        return None
    with Path(path).open("rb") as file:
        return sum(1 for _ in _read_urls(file))


class _Plan:
    """Counts URLs by the decisions on them while they are read. ``make`` is called once."""

    def __init__(self, crawler: Crawler, opts: argparse.Namespace, runner: CoroutineRunner) -> None:
        self._crawler = crawler
        self._opts = opts
        self._robots = robots_of(crawler)
        self._decider = self._robots.decider
        self._delays = DelayLimits(crawler, runner.options)
        self._forecast = Forecast()
        self._slower = Forecast()
        self._other = Forecast()
        self._tokens = tokens_of_setting(opts.other_agent) if opts.other_agent else ()
        self._progress = Progress(1)  # which is not shown
        self._closing = False
        self._urls = self._invalid = self._warnings = self._done = 0
        self._waiting: dict[Origin, list[Request]] = {}
        self._places = DeferredSemaphore(_MOST_WAITING)
        self._background = Background()
        self._origins: dict[Origin, None] = {}

    async def make(self, urls: list[str], stream: BinaryIO | None) -> None:
        """Count ``urls``, the URLs in ``stream`` and, with ``--sitemaps``, the URLs in sitemaps.

        Raises CrawlClosingError if the crawl closes before all are counted: ``result`` has those
        that were.
        """
        reader = Workers("plan")
        count = await reader.call(partial(_count_urls, self._opts.urls_from))
        is_known = count is not None and not self._opts.sitemaps
        self._progress = Progress(len(urls) + (count or 0) if is_known else None)
        for url in urls:
            await self._add_url(url)
        if stream is not None:
            found = _read_urls(stream)
            while batch := await reader.call(lambda: list(islice(found, _AT_A_TIME))):
                for url in batch:
                    await self._add_url(url)
                self._progress.update(self._done)
        await reader.stop()
        await self._wait_until_counted()
        if self._opts.sitemaps:
            sitemaps, origins = Sitemaps(self._crawler, self._warn), iter(list(self._origins))
            reading = (self._add_sitemaps(sitemaps, origins) for _ in range(_SITEMAPS_AT_A_TIME))
            await gather(reading)
            await self._wait_until_counted()

    async def _add_url(self, url: str, *, from_sitemap: bool = False) -> None:
        """Count a URL at once, or by a task if its robots.txt isn't known. Warn if it is not valid.

        Waits while too many URLs wait for such tasks. If it is ``from_sitemap``, the sitemaps of
        its origin are not read. Raises CrawlClosingError if the crawl is closing.
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
            self._warn(invalid_url_text(url, error, file_or_scheme_hint(url)))
            return
        if not from_sitemap:
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
            self._background.start(self._count_waiting(origin))

    def _has_verdicts(self, decision: Decision) -> bool:
        """Return whether the verdict is known, and that for ``--other-agent``, if given."""
        verdict, entry = decision.verdict, decision.entry
        if verdict is None or not self._tokens or entry is None:
            return verdict is not None
        return entry.verdict(decision.target, self._tokens) is not None

    async def _count_waiting(self, origin: Origin) -> None:
        """Count the URLs that wait for the robots.txt of ``origin``; errors are logged."""
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
        self._progress.update(self._done)

    async def _wait_until_counted(self) -> None:
        """Wait until no URL waits for its robots.txt. Raises CrawlClosingError if closing."""
        await self._background.finish()
        if self._closing:
            raise CrawlClosingError

    async def _count_page(self, request: Request, decision: Decision) -> None:
        """Count a page in each of the forecasts, and as done."""
        slot = slot_name(self._crawler, request)
        self._add(self._forecast, decision, slot)
        if self._opts.delay is not None:
            self._add(self._slower, decision, slot, self._opts.delay)
        if self._tokens:
            other = await self._decider.decision_with_tokens(self._tokens, request, decision)
            self._add(self._other, other, slot)
        self._done += 1

    def _add(
        self, forecast: Forecast, decision: Decision, slot: str, seconds: float | None = None
    ) -> None:
        """Add a page with the longest delay that applies. ``seconds`` replaces DOWNLOAD_DELAY."""
        delay = configured_delay(self._crawler, slot, seconds)
        of_slot = slot in self._delays.hosts_with_own_delay
        delay_from = "DOWNLOAD_SLOTS" if of_slot else "DOWNLOAD_DELAY"
        asked, asked_by = self._delays.before(decision)
        if asked > delay:
            delay, delay_from = asked, asked_by
        forecast.add(decision, slot, delay, delay_from)

    async def _add_sitemaps(self, sitemaps: Sitemaps, origins: Iterator[Origin]) -> None:
        """Count the URLs in the sitemaps of ``origins``, an iterator that other tasks read, too."""
        for origin in origins:
            if named := await self._robots.sitemaps(origin.robotstxt_url):
                async for url in sitemaps.urls(named, origin.robotstxt_url):
                    await self._add_url(url, from_sitemap=True)

    def _warn(self, text: str) -> None:
        """Print ``text`` to standard error; above _MAX_WARNINGS, once that there are more."""
        self._warnings += 1
        if self._warnings <= _MAX_WARNINGS:
            self._progress.clear()
            print(text, file=sys.stderr)
        elif self._warnings == _MAX_WARNINGS + 1:
            print("further lines like these are left out", file=sys.stderr)

    def result(self, *, complete: bool) -> dict[str, Any]:
        """Remove the progress; return the plan. ``complete`` is false if the crawl ended early."""
        self._progress.clear()
        result = {
            "urls": self._urls,
            **self._forecast.totals(),
            **self._forecast.hosts(),
            "invalid": self._invalid,
            "pending": self._urls - self._done,
            "complete": complete and self._done == self._urls,
        }
        if self._opts.delay is not None:
            seconds = self._slower.totals()["seconds"]
            result["with_delay"] = {"delay": self._opts.delay, "seconds": seconds}
        if self._tokens:
            result["with_agent"] = {"agent": self._opts.other_agent, **self._other.totals()}
        return result


PLAN: Final = Subcommand(
    "plan",
    "URL...",
    "how many URLs may be fetched, and how long that takes at least",
    (
        AGENT,
        URLS_FROM,
        PURPOSE,
        Option(
            "--delay",
            metavar="SECONDS",
            type=seconds,
            help="also show what changes with this DOWNLOAD_DELAY",
        ),
        OTHER_AGENT,
        Option(
            "--sitemaps",
            action="store_true",
            help="also count the URLs in the sitemaps that robots.txt names",
        ),
        Option(
            "--fail-if",
            metavar="LIMIT",
            action="append",
            type=limit_of_argument,
            default=[],
            help="exit with status 1 if more than disallowed=PERCENT%% or "
            "unreachable=PERCENT%% of the URLs are, or if it takes more than hours=NUMBER",
        ),
        FRESH,
        JSON,
    ),
    _plan,
)
