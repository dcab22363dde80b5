"""The crawl of a command. Its spider runs a coroutine, which looks up robots.txt files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeVar

from scrapy import Spider
from scrapy.crawler import Crawler, CrawlerProcessBase
from scrapy.exceptions import UsageError
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.decision.product_tokens import ProductTokens
from scrapy_rep.decision.spellings import Spellings
from scrapy_rep.decision.usage import Judgement
from scrapy_rep.downloadermiddlewares.start_log import read_overrides
from scrapy_rep.exceptions import CrawlClosingError, SettingsError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.utils.clock import Clock

CrawlFunction = Callable[[Crawler], Awaitable[Any]]

T = TypeVar("T")


class CheckResult(NamedTuple):
    """The verdict on a URL, and what the command prints with it."""

    verdict: Verdict | ValueError
    """The verdict, or the error if the URL can't have a verdict."""
    fetched_at: float | None = None
    """When robots.txt was fetched, in seconds since the epoch; None if there is no record of it, or
    an override decided."""
    usage: Judgement | None = None
    """The judgement about the usage preferences; None if the crawl has declared no purposes."""


class CommandSpider(Spider):
    """A spider that awaits ``function`` and appends its result to ``results``.

    It yields no requests.
    """

    name = "robots"

    def __init__(self, function: CrawlFunction, results: list[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._function = function
        self._results = results

    async def start(self) -> AsyncIterator[Any]:
        """Await the function, and append its result to the results. Nothing is yielded.

        BrokenPipeError and UsageError are appended instead of raised.
        """
        try:
            self._results.append(await self._function(self.crawler))
        except CrawlClosingError:
            pass  # there is no result: CoroutineRunner.run raises CrawlClosingError
        except (BrokenPipeError, UsageError) as error:
            self._results.append(error)
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request


class CoroutineRunner:
    """Runs coroutines in crawls with the settings of the command."""

    def __init__(self, process: CrawlerProcessBase) -> None:
        self._process = process
        self.options: Options = Options.from_settings(process.settings)

    def run(self, function: CrawlFunction) -> Any:
        """Run a crawl in which ``function`` is awaited; return the result of ``function``.

        Raises CrawlClosingError if the crawl ends before there is a result, BrokenPipeError and
        UsageError if ``function`` raises them, and UsageError if the file of an override can't be
        read.
        """
        try:
            read_overrides(self.options, Clock())
        except SettingsError as error:
            raise UsageError(str(error), print_help=False) from None
        results: list[Any] = []
        crawler = self._process.create_crawler(CommandSpider)
        self._process.crawl(crawler, function=function, results=results)
        self._process.start()
        if not results:
            raise CrawlClosingError
        if isinstance(results[0], (BrokenPipeError, UsageError)):
            raise results[0]
        return results[0]

    def tokens_and_spellings(self) -> tuple[tuple[str, ...], Spellings]:
        """Return the product tokens of the crawler, and the spellings of URLs. No crawl is run.

        Spellings are the forms in which download handlers may send a URL.
        """
        crawler = self._process.create_crawler(CommandSpider)
        return ProductTokens.of_crawl(crawler, self.options).default(), Spellings(
            self._process.settings
        )


def robots_of(crawler: Crawler) -> Robots:
    """Return the ``Robots`` of a crawl. Raises UsageError if the project disables scrapy-rep."""
    try:
        return Robots.of(crawler)
    except LookupError as error:
        why = f"{error}: is scrapy_rep.Addon None in ADDONS?"
        raise UsageError(why, print_help=False) from None


async def check_urls(
    crawler: Crawler, urls: list[str], show: Callable[[str, CheckResult], None]
) -> list[CheckResult]:
    """Return the verdicts on ``urls``. Their robots.txt files are looked up at the same time.

    ``show`` is called with each URL and its result as soon as that is known.
    """
    robots = robots_of(crawler)

    async def check(url: str) -> CheckResult:
        found = await find(url)
        show(url, found)
        return found

    async def find(url: str) -> CheckResult:
        try:
            origin_of(url)  # raises an error with a better message than that of Request
            verdict, decision = await robots.decide(url)
        except ValueError as error:
            return CheckResult(error)
        except CrawlClosingError:
            return CheckResult(Verdict(allowed=False, reason=Reason.CLOSING))
        record = None if verdict.reason is Reason.OVERRIDE else await robots.record(url)
        fetched_at = None if record is None else record.last.evidence.at
        return CheckResult(verdict, fetched_at, decision.usage)

    return await gather(map(check, urls))


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run ``coroutines`` at the same time; return their results.

    Unlike ``asyncio.gather``, this works without asyncio, too.
    """
    under_way = [deferred_from_coro(each) for each in coroutines]
    return [await maybe_deferred_to_future(each) for each in under_way]
