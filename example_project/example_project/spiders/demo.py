"""Follows the links of a site, and tells what its robots.txt came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from example_project.report import Report, as_label, came_to, in_words
from scrapy_rep import RobotsTxtDisallowed, signals
from scrapy_rep.protocol.origin import origin_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.link import Link
    from twisted.python.failure import Failure

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outcome import Outcome


class DemoSpider(scrapy.Spider):
    """``scrapy crawl demo -a start=URL``: asks for up to ``pages`` pages of that site.

    The site is all origins of the host: each has a robots.txt of its own.
    """

    name = "demo"
    custom_settings = {"HTTPERROR_ALLOW_ALL": True}  # noqa: RUF012 - as Scrapy has it

    def __init__(self, start: str = "", pages: int | str = 50, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not start:
            raise ValueError("a URL is required: -a start=https://example.com/")
        self.start_urls = [start]
        self.allowed_domains = [origin_of(start).host.removeprefix("www.")]
        self.pages_left = int(pages)
        self.seen: set[str] = set()
        self.links = LinkExtractor()
        self.report = Report()

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> DemoSpider:
        """Return a spider that hears what every robots.txt comes to."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.robots_came, signals.robotstxt_fetched)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Begin with the page that was named."""
        for url in self.start_urls:
            for request in self.visit(url, "the start page"):
                yield request

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        """Count the page, and follow its links."""
        self.report.row(response.url).fetched += 1
        if isinstance(response, HtmlResponse):
            for link in self.links.extract_links(response):
                if self.is_of_this_site(link):
                    yield from self.visit(link.url, link.text)

    def visit(self, url: str, name: str) -> Iterator[scrapy.Request]:
        """Yield the request of a page that was not asked for before, while the bound allows."""
        if url in self.seen or self.pages_left <= 0:
            return
        self.seen.add(url)
        self.pages_left -= 1
        row = self.report.row(url)
        # An origin is called what the first link to it says.
        row.name = row.name or as_label(name)
        yield scrapy.Request(url, callback=self.parse, errback=self.not_fetched)

    def is_of_this_site(self, link: Link) -> bool:
        """Say whether a link leads to the host that was named, on whatever port."""
        try:
            host = origin_of(link.url).host
        except ValueError:
            return False
        return any(host == site or host.endswith(f".{site}") for site in self.allowed_domains)

    def not_fetched(self, failure: Failure) -> None:
        """Count a request that came to nothing: robots.txt dropped it, or it failed."""
        row = self.report.row(failure.request.url)
        if failure.check(RobotsTxtDisallowed):
            row.dropped[in_words(failure.value.verdict)] += 1
        else:
            row.failed[failure.type.__name__] += 1

    def robots_came(self, origin: Origin, outcome: Outcome) -> None:
        """Note what the robots.txt of an origin came to."""
        self.report.row(str(origin)).robots.append(came_to(outcome))
        print(f"  robots.txt of {origin}: {came_to(outcome)}", flush=True)

    def closed(self, reason: str) -> None:
        """Print what came of the crawl."""
        print(f"\n{self.report}\n\nThe crawl ended: {reason}.", flush=True)
