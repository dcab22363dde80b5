"""The crawl of the commands: its spider looks up robots.txt and sends no other request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scrapy import Spider
from scrapy.exceptions import UsageError
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.decision.product_tokens import ProductTokens
from scrapy_rep.decision.spellings import Spellings
from scrapy_rep.downloadermiddlewares.startup import read_overrides
from scrapy_rep.exceptions import CrawlClosingError, SettingsError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.utils.clock import Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable

    from scrapy.crawler import Crawler, CrawlerProcessBase

    from scrapy_rep.decision.usage import Judgement

    CrawlFunction = Callable[[Crawler], Awaitable[Any]]

T = TypeVar("T")


class CheckResult(NamedTuple):
    """The verdict on a URL."""

    verdict: Verdict | ValueError
    """The verdict, or the error if there is none."""
    fetched_at: float | None = None
    """When robots.txt was fetched, in seconds since the epoch."""
    usage: Judgement | None = None
    """The usage preferences, if purposes are declared."""


class CommandSpider(Spider):
    """Runs a coroutine in a crawl, and sends no requests itself."""

    name = "robots"

    def __init__(self, function: CrawlFunction, results: list[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._function = function
        self._results = results

    async def start(self) -> AsyncIterator[Any]:
        """Run the coroutine, and yield nothing."""
        try:
            self._results.append(await self._function(self.crawler))
        except CrawlClosingError:
            pass  # without a result
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
        """Return the result of ``function``, run in a crawl.

        Raises CrawlClosingError if the crawl ends before, BrokenPipeError and UsageError if
        ``function`` raises them, and UsageError where the file of an override can't be read.
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

    def names(self) -> tuple[tuple[str, ...], Spellings]:
        """Return the product tokens of the crawler and the spellings of URLs, without a crawl."""
        crawler = self._process.create_crawler(CommandSpider)
        return ProductTokens.of_crawl(crawler, self.options).default(), Spellings(
            self._process.settings
        )


def robots_of(crawler: Crawler) -> Robots:
    """Return the ``Robots`` of a crawl. Raises UsageError if the project has disabled it."""
    try:
        return Robots.of(crawler)
    except LookupError as error:
        why = f"{error}: is scrapy_rep.Addon None in ADDONS?"
        raise UsageError(why, print_help=False) from None


async def check_urls(
    crawler: Crawler, urls: list[str], show: Callable[[str, CheckResult], None]
) -> list[CheckResult]:
    """Return the verdicts on URLs; their robots.txt are looked up concurrently.

    ``show`` is called with each URL and its result as it comes.
    """
    robots = robots_of(crawler)

    async def check(url: str) -> CheckResult:
        found = await find(url)
        show(url, found)
        return found

    async def find(url: str) -> CheckResult:
        try:
            origin_of(url)  # has a better message than Request
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
    """Run ``coroutines`` concurrently in any mode of Scrapy; return their results."""
    under_way = [deferred_from_coro(each) for each in coroutines]
    return [await maybe_deferred_to_future(each) for each in under_way]
