"""A crawl of nothing: it has all that a crawl has, and asks about robots.txt alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.api import Robots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from scrapy.crawler import CrawlerProcessBase

    from scrapy_rep.protocol.verdict import Verdict

    Question = Callable[[Robots], Awaitable[Any]]


class AskingSpider(Spider):
    """Asks a question, and sends no request of its own."""

    name = "robots"

    def __init__(self, question: Question, answers: list[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._question = question
        self._answers = answers

    async def start(self) -> AsyncIterator[Any]:
        """Ask."""
        self._answers.append(await self._question(Robots.of(self.crawler)))
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request


def ask(process: CrawlerProcessBase, question: Question) -> Any:
    """Return the answer of a crawl with the settings of ``process``; None where it broke."""
    answers: list[Any] = []
    process.crawl(process.create_crawler(AskingSpider), question=question, answers=answers)
    process.start()
    return answers[0] if answers else None


async def verdicts(robots: Robots, urls: list[str]) -> list[Verdict | ValueError]:
    """Return the verdicts on all URLs, their robots.txt fetched side by side."""

    async def verdict(url: str) -> Verdict | ValueError:
        try:
            return await robots.verdict(url)
        except ValueError as error:
            return error

    under_way = [deferred_from_coro(verdict(url)) for url in urls]
    return [await maybe_deferred_to_future(each) for each in under_way]
