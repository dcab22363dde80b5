"""What code asks about robots.txt: ``Robots`` in a crawl, ``RobotParser`` by Scrapy's interface."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import quote

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser as BaseRobotParser

from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.decision.decider import Decider, Decision
from scrapy_rep.overrides import Override
from scrapy_rep.protocol.crawl_delay import delay_in
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import tokens_of_name
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.usage import Usage
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.utils.per_crawl import get_part
from scrapy_rep.utils.text import printable_request

_ASCII: Final = bytes(range(128))


class Wait(NamedTuple):
    """Requests of one origin that wait in the scheduler."""

    origin: str
    reason: str
    """Why they wait, as text, such as ``robots.txt is being looked up``."""
    until: float | None
    """Until when they wait, in seconds since the epoch; None if that is not known."""
    requests: int


class Robots:
    """What robots.txt files say, and their state: ``Robots.of(self.crawler)`` in a spider.

    The methods return verdicts, usage preferences, sitemaps, the parsed file, its record, and which
    requests wait. A robots.txt that is not known yet is fetched if the method says so, and then
    also used for the requests of the crawl. A ``page`` is a URL or a request. If it is a request,
    its User-Agent and its proxy are used, as in a crawl. ValueError is raised if the URL can't have
    a robots.txt. Methods that fetch it raise CrawlClosingError if the crawl closes before it is
    known, and LookupError if there is no verdict after the lookup.
    """

    def __init__(
        self,
        lookups: Lookups,
        decider: Decider,
        holds: Callable[[], Iterable[tuple[Origin, str, float | None, int]]],
        pause_until: Callable[[str], Awaitable[float | None]],
    ) -> None:
        self._lookups = lookups
        self.decider = decider
        self._holds = holds
        self._pause_until = pause_until

    @classmethod
    def of(cls, crawler: Crawler) -> Robots:
        """Return the instance of a crawl. Raises LookupError if the crawl ignores robots.txt."""
        robots = get_part(crawler, cls)
        if robots is None:
            raise LookupError("this crawl has no scrapy_rep.RobotsTxtMiddleware")
        return robots

    def tokens(self, page: str | Request) -> tuple[str, ...]:
        """Return the product tokens of the crawler for ``page``, the most specific first."""
        request = _request(page)
        return self.decider.tokens_of(request, origin_of(request.url))

    def override(self, page: str | Request) -> Override | None:
        """Return the entry of REP_OVERRIDES that applies to the host of ``page``, or None."""
        return self.decider.override_of(origin_of(_request(page).url))

    def known_verdict(self, page: str | Request) -> Verdict | None:
        """Return the verdict on ``page``; None if it takes a lookup. Nothing is read or fetched."""
        decision = self._known(_request(page))
        return None if decision.verdict is None else decision.verdict.with_origin(decision.origin)

    async def verdict(self, page: str | Request) -> Verdict:
        """Return the verdict on ``page``. Its robots.txt is fetched if necessary."""
        verdict, _ = await self.decide(page)
        return verdict

    async def decide(self, page: str | Request) -> tuple[Verdict, Decision]:
        """Return the verdict on ``page``, and the decision that contains it.

        The decision also has the origin, the product tokens, the override and, for declared
        purposes, the usage preferences. robots.txt is fetched if necessary.
        """
        request = _request(page)
        decision = self._known(request)
        if decision.verdict is None:
            decision = await self.decider.decision(request, decision)
        if decision.verdict is None:
            raise LookupError(f"no verdict on {printable_request(request)}")
        if decision.entry is not None:
            decision.entry.mark_used()
        return decision.verdict.with_origin(decision.origin), decision

    async def usage(self, page: str | Request) -> Usage:
        """Return the usage preferences in robots.txt for ``page``.

        The crawl need not declare purposes. The file is fetched if necessary. Of a page that a rule
        disallows only licenses are returned; nothing if an override decides, or no rules are known.
        """
        verdict, decision = await self.decide(page)
        if decision.entry is None:
            return Usage(tokens=decision.tokens)
        usage = decision.entry.usage(decision.target, decision.tokens)
        return usage if verdict.allowed or verdict.rule is None else usage.licenses()

    def _known(self, request: Request) -> Decision:
        decision = self.decider.known_decision(request)
        if decision is None or decision.origin is None:
            origin_of(request.url)
            raise ValueError("not an absolute http, https or ftp URL")
        return decision

    async def robotstxt(self, page: str | Request) -> RobotsTxt | None:
        """Return the robots.txt of the origin of ``page``, fetched if necessary.

        Return None without one, or if it is unreachable and no copy is used. Overrides don't count.
        """
        request = _request(page)
        origin = origin_of(request.url)
        return (await self._lookups.result(origin, self.tokens(request), request)).robots

    async def sitemaps(self, page: str | Request) -> list[str]:
        """Return the sitemaps, as written, in what ``robotstxt`` returns; none if that is None."""
        robots = await self.robotstxt(page)
        return [] if robots is None else robots.sitemaps

    def next_try(self, page: str | Request) -> float | None:
        """Return when an unreachable robots.txt is fetched again, in seconds since the epoch.

        Return None if the robots.txt of ``page`` is not known to be unreachable, and infinity if no
        request waits for it: it is not fetched again in this crawl, or its host does not exist.
        """
        entry = self._lookups.cache.known_entry(origin_of(_request(page).url))
        if entry is None or not entry.is_unreachable:
            return None
        return entry.end if entry.is_worth_a_wait else math.inf

    async def back_off(self, page: str | Request) -> float | None:
        """Return when the pause of the host of ``page`` ends, in seconds since the epoch.

        A pause is a time without requests after a 429, or a 503 with Retry-After. Return None if
        the host has no pause, or none that is in the store.
        """
        return await self._pause_until(origin_of(_request(page).url).host)

    def waits(self) -> list[Wait]:
        """Return the origins whose requests wait in the scheduler, how many, why, and until when.

        An origin counts once for each of its download slots and queues. With scrapy-redis, they are
        only those that this worker has taken.
        """
        return [
            Wait(str(origin), reason, until, requests)
            for origin, reason, until, requests in self._holds()
        ]

    async def record(self, page: str | Request) -> Record | None:
        """Return the last record of the origin of ``page``, or None. Nothing is fetched.

        A record contains how the last fetches of robots.txt ended, and the text.
        """
        return await self._lookups.records.read(origin_of(_request(page).url))


def _request(page: str | Request) -> Request:
    return page if isinstance(page, Request) else Request(page)


class RobotParser(BaseRobotParser):
    """The parser of scrapy-rep for Scrapy's ``ROBOTSTXT_PARSER`` and signal ``robots_parsed``."""

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> RobotParser:  # noqa: ARG003 - of Scrapy
        """Return a parser for ``robotstxt_body``, which may be any bytes."""
        return cls(RobotsTxt.parse(robotstxt_body))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Return whether the crawler ``user_agent`` may fetch ``url``.

        ``user_agent`` is a product token or a whole User-Agent header. If it contains characters
        that are not ASCII, it is compared as a whole.
        """
        if isinstance(url, bytes):
            # The encoding of the URL is unknown, so bytes that are not ASCII are percent-encoded.
            url = quote(url, safe=_ASCII)
        return self.robots.verdict(url, *tokens_of_name(user_agent)).allowed

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the longest ``Crawl-delay`` for ``user_agent`` in seconds, or None."""
        fields = self.robots.fields_for(*tokens_of_name(user_agent), names=("crawl-delay",))
        delay = delay_in(fields)
        return None if delay is None else delay.seconds
