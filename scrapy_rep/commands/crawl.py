"""The crawl of a command. Its spider runs a coroutine, which looks up robots.txt files."""

from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from time import time
from typing import Any, Final, TypeVar

from scrapy import Spider
from scrapy.crawler import Crawler, CrawlerProcessBase
from scrapy.exceptions import UsageError

from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.decision.spellings import verdict_of_rules
from scrapy_rep.decision.usage import PURPOSES_KEY
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.stores.uri import make_store

T = TypeVar("T")
_ATTRIBUTES: Final = ("user_agent", PURPOSES_KEY, "download_delay", "download_timeout")
"""Attributes of a spider that affect decisions about robots.txt, or how it is fetched."""


class CommandSpider(Spider):
    """A spider without requests, which sets ``result`` to what ``function`` returns or raises."""

    name = "robots"
    function: Callable[[Crawler], Awaitable[Any]]
    result: Future[Any]

    async def start(self) -> AsyncIterator[Any]:
        try:
            self.result.set_result(await self.function(self.crawler))
        except (BrokenPipeError, CrawlClosingError, UsageError) as error:
            self.result.set_exception(error)
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request


class CoroutineRunner:
    """Runs a coroutine in a crawl with the settings of the command. ``run`` is called once."""

    def __init__(self, process: CrawlerProcessBase, like: type[Spider]) -> None:
        """``like`` is the spider whose settings and attributes it has. Raises SettingsError."""
        self._process = process
        # It is not a subclass: ``__init__`` and ``from_crawler`` of a user may do anything.
        members = {name: getattr(like, name) for name in _ATTRIBUTES if hasattr(like, name)}
        members["update_settings"] = staticmethod(like.update_settings)
        self._spidercls: type[CommandSpider] = type("CommandSpider", (CommandSpider,), members)
        settings = process.settings.copy()
        self._spidercls.update_settings(settings)
        self.options: Options = Options.from_settings(settings)
        make_store(self.options.store, self.options.memory_max_bytes)

    def run(self, function: Callable[[Crawler], Awaitable[T]]) -> T:
        """Return the result of ``function``, awaited in a crawl; raise CrawlClosingError without.

        Raises its BrokenPipeError or UsageError, and SettingsError if an override can't be read.
        """
        Overrides(self.options.overrides, time)  # a crawl would raise the error with a traceback
        result: Future[T] = Future()
        self._process.crawl(self._spidercls, function=function, result=result)
        self._process.start()
        if not result.done():
            raise CrawlClosingError
        return result.result()

    def decider_of_file(self, name: str, body: bytes) -> Callable[[str], tuple[Verdict, Decision]]:
        """Return a function that decides on a URL by a local robots.txt; it raises ValueError."""
        crawler = self._process.create_crawler(self._spidercls)
        crawler.spider = self._spidercls.__new__(self._spidercls)  # it may have a user_agent
        tokens = ProductTokens.of(crawler).default()
        rules = RobotsTxt.parse(body).rules_for(*tokens)

        def decide(url: str) -> tuple[Verdict, Decision]:
            origin = origin_of(url)
            verdict = verdict_of_rules(rules, url)._replace(robotstxt_url=name)
            return verdict, Decision(origin, target_of(url), tokens, verdict)

        return decide


def robots_of(crawler: Crawler) -> Robots:
    """Return the ``Robots`` of a crawl. Raises UsageError if the project disables scrapy-rep."""
    try:
        return Robots.of(crawler)
    except LookupError as error:
        raise UsageError(
            f"{error}: is it None in DOWNLOADER_MIDDLEWARES, or scrapy_rep.Addon None in ADDONS?",
            print_help=False,
        ) from None
