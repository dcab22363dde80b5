"""Uses the public API as its users do; mypy checks this file, nothing runs it."""

from __future__ import annotations

from scrapy.http import Request
from twisted.python.failure import Failure

from scrapy_rep import (
    Addon,
    RobotParser,
    Robots,
    RobotsSitemapSpider,
    RobotsTxtDisallowed,
    RobotsTxtMiddleware,
)
from scrapy_rep.protocol import RobotsTxt, Verdict
from scrapy_rep.protocol.origin import Origin, origin_of, target_of


def parse(body: bytes) -> list[str]:
    """Return what a file says of a URL, in words."""
    robots = RobotsTxt.parse(body)
    verdict: Verdict = robots.verdict("https://example.com/a", "mybot-images", "mybot")
    rules = robots.rules_for("mybot")
    again = rules.verdict_for(target_of("https://example.com/a?b#c"))
    origin: Origin = origin_of("https://example.com/a")
    line: int | None = verdict.line
    sitemaps: list[str] = robots.sitemaps
    return [str(verdict.rule), str(line), str(again.allowed), origin.robotstxt_url, *sitemaps]


def errback(failure: Failure) -> str:
    """Return why a request was dropped."""
    error = failure.value
    if isinstance(error, RobotsTxtDisallowed):
        return f"{error.reason.value} {error.verdict.robotstxt_url}"
    return "something else"


def allowed(parser: RobotParser, request: Request) -> bool:
    """Ask by way of Scrapy's interface."""
    return parser.allowed(request.url, "mybot")


async def ask(robots: Robots, url: str) -> tuple[bool, list[str]]:
    """Ask for a verdict, and for sitemaps."""
    verdict: Verdict = await robots.verdict(url)
    known: Verdict | None = robots.known_verdict(url)
    return verdict.allowed and known is not None, await robots.sitemaps(url)


class Sitemaps(RobotsSitemapSpider):
    """Begins with the sitemaps of a robots.txt."""

    name = "sitemaps"
    sitemap_urls = ("https://example.com/robots.txt",)


COMPONENTS: list[type] = [Addon, RobotsTxtMiddleware]
