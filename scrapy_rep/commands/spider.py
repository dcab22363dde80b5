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

    Question = Callable[[Crawler], Awaitable[Any]]

T = TypeVar("T")


class Answer(NamedTuple):
    """The verdict on a URL."""

    verdict: Verdict | ValueError
    """The verdict, or the error if there is none."""
    asked_at: float | None = None
    """When robots.txt was fetched, in seconds since the epoch."""
    usage: Judgement | None = None
    """The usage preferences, if purposes are declared."""


class AskingSpider(Spider):
    """Runs a coroutine in a crawl, and sends no requests itself."""

    name = "robots"

    def __init__(self, question: Question, answers: list[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._question = question
        self._answers = answers

    async def start(self) -> AsyncIterator[Any]:
        """Run the coroutine, and yield nothing."""
        try:
            self._answers.append(await self._question(self.crawler))
        except CrawlClosingError:
            pass  # without an answer
        except (BrokenPipeError, UsageError) as error:
            self._answers.append(error)
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request


class Asking:
    """Runs coroutines in crawls with the settings of the command."""

    def __init__(self, process: CrawlerProcessBase) -> None:
        self._process = process
        self.options: Options = Options.from_settings(process.settings)

    def ask(self, question: Question) -> Any:
        """Return the answer to ``question``.

        Raises CrawlClosingError where the crawl ended before, BrokenPipeError and UsageError where
        the question did, and UsageError where the file of an override can't be read.
        """
        try:
            read_overrides(self.options, Clock())
        except SettingsError as error:
            raise UsageError(str(error), print_help=False) from None
        answers: list[Any] = []
        crawler = self._process.create_crawler(AskingSpider)
        self._process.crawl(crawler, question=question, answers=answers)
        self._process.start()
        if not answers:
            raise CrawlClosingError
        if isinstance(answers[0], (BrokenPipeError, UsageError)):
            raise answers[0]
        return answers[0]

    def names(self) -> tuple[tuple[str, ...], Spellings]:
        """Return the product tokens of the crawler and the spellings of URLs, without a crawl."""
        crawler = self._process.create_crawler(AskingSpider)
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


async def answers_on(
    crawler: Crawler, urls: list[str], answered: Callable[[str, Answer], None]
) -> list[Answer]:
    """Return the answers on URLs; their robots.txt are looked up concurrently.

    ``answered`` is called with each URL and its answer as it comes.
    """
    robots = robots_of(crawler)

    async def answer(url: str) -> Answer:
        found = await find(url)
        answered(url, found)
        return found

    async def find(url: str) -> Answer:
        try:
            origin_of(url)  # has a better message than Request
            verdict, decision = await robots.decide(url)
        except ValueError as error:
            return Answer(error)
        except CrawlClosingError:
            return Answer(Verdict(allowed=False, reason=Reason.CLOSING))
        record = None if verdict.reason is Reason.OVERRIDE else await robots.record(url)
        asked_at = None if record is None else record.last.evidence.at
        return Answer(verdict, asked_at, decision.usage)

    return await together(map(answer, urls))


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run ``coroutines`` concurrently in any mode of Scrapy; return their results."""
    under_way = [deferred_from_coro(each) for each in coroutines]
    return [await maybe_deferred_to_future(each) for each in under_way]
