"""What robots.txt says, for spiders, extensions and commands: through the cache of the crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ReferenceType, WeakKeyDictionary, ref

from scrapy import Request

from scrapy_rep.protocol.origin import origin_of, split_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from scrapy_rep.cache.cache import Census, Keeper
    from scrapy_rep.decision.product_tokens import ProductTokens
    from scrapy_rep.overrides import Override, Overrides
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.parser import RobotsTxt
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.protocol.verdict import Verdict

# Weak on both sides: what is known of a crawl leads to the crawl itself.
_OF: WeakKeyDictionary[Crawler, ReferenceType[Robots]] = WeakKeyDictionary()


class Robots:
    """What the robots.txt of an origin says to this crawl.

    ``Robots.of(self.crawler)`` in a spider. What is known is not fetched again; what is not is
    fetched once, and the crawl's own requests use the answer. A page is a URL, or a request: its
    User-Agent and proxy count then, as in a crawl.
    """

    def __init__(
        self,
        crawler: Crawler,
        keeper: Keeper,
        tokens: ProductTokens,
        overrides: Overrides,
        spellings: Callable[[Request, str], set[str]],
    ) -> None:
        """Take the parts of a crawl; ``spellings`` tells what may become of a URL on its way."""
        self._spellings = spellings
        self._keeper = keeper
        self._tokens = tokens
        self._overrides = overrides
        _OF[crawler] = ref(self)

    @classmethod
    def of(cls, crawler: Crawler) -> Robots:
        """Return that of a crawl; LookupError where it doesn't obey robots.txt."""
        weak = _OF.get(crawler)
        robots = None if weak is None else weak()
        if robots is None:
            raise LookupError("this crawl has no scrapy_rep.RobotsTxtMiddleware")
        return robots

    def tokens(self, page: str | Request) -> tuple[str, ...]:
        """Return the product tokens that count for ``page``, the most specific first."""
        override = self.override(page)
        if override is not None and override.tokens:
            return override.tokens
        return self._tokens.of(_request(page))

    def override(self, page: str | Request) -> Override | None:
        """Return the entry of REP_OVERRIDES that holds for ``page``, if one does."""
        return self._overrides.of(origin_of(_request(page).url).host)

    def known_verdict(self, page: str | Request) -> Verdict | None:
        """Return what is decided of ``page``; None where it isn't known yet. Nothing is fetched.

        Raises ValueError where the URL is none that can have a robots.txt.
        """
        request = _request(page)
        origin, target = split_url(request.url)
        verdict = self._known(request, origin, target)
        for spelling in self._spellings(request, target):
            if verdict is None or not verdict.allowed:
                break
            verdict = self._known(request, origin, spelling) or verdict
        return None if verdict is None else verdict.of(origin)

    def _known(self, request: Request, origin: Origin, target: str) -> Verdict | None:
        tokens = self.tokens(request)
        override = self._overrides.of(origin.host)
        verdict = None if override is None else self._overrides.verdict(override, target, tokens)
        if verdict is None:
            entry = self._keeper.known(origin)
            verdict = None if entry is None else entry.verdict(target, tokens)
        return verdict

    async def verdict(self, page: str | Request) -> Verdict:
        """Return what is decided of ``page``, when its robots.txt is known.

        Raises ValueError as known_verdict does, and CrawlClosingError.
        """
        verdict = self.known_verdict(page)
        if verdict is not None:
            return verdict
        request = _request(page)
        origin, target = split_url(request.url)
        tokens = self.tokens(request)
        verdict = await self._keeper.verdict(origin, target, tokens, request)
        for spelling in self._spellings(request, target):
            if not verdict.allowed:
                break
            verdict = await self._keeper.verdict(origin, spelling, tokens, request)
        return verdict.of(origin)

    async def robotstxt(self, page: str | Request) -> RobotsTxt | None:
        """Return the robots.txt that holds for ``page``; None where there is none, or none known.

        Raises as verdict does.
        """
        request = _request(page)
        origin = origin_of(request.url)
        return await self._keeper.robotstxt(origin, self.tokens(request), request)

    async def sitemaps(self, page: str | Request) -> list[str]:
        """Return the sitemaps that the robots.txt of ``page`` names, as written there.

        Raises as verdict does.
        """
        robots = await self.robotstxt(page)
        return [] if robots is None else robots.sitemaps

    def census(self) -> Census:
        """Return how many origins are known, looked up just now, and unreachable."""
        return self._keeper.census()

    async def record(self, page: str | Request) -> Record | None:
        """Return what the store holds of the origin of ``page``: evidence, times, body."""
        return await self._keeper.record(origin_of(_request(page).url))


def _request(page: str | Request) -> Request:
    return page if isinstance(page, Request) else Request(page)
