"""Sitemaps that robots.txt names, without fetching robots.txt once more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from scrapy import Request
from scrapy.spiders import SitemapSpider

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.robots import Robots
from scrapy_rep.utils.text import short

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

logger = logging.getLogger(__name__)

_SCHEMES: Final = ("http://", "https://")


class RobotsSitemapMixin:
    """For a SitemapSpider, before it in the list of bases.

    Each URL of a robots.txt in ``sitemap_urls`` stands for the sitemaps that it names. They come
    from the crawl's own cache: robots.txt is fetched no more than once, and as it is for pages.
    """

    # What is ignored below is of the SitemapSpider, which mypy can't see from here.

    sitemap_urls: Sequence[str]
    """Sitemaps, and robots.txt files that name some."""

    async def start(self) -> AsyncIterator[Any]:
        """Begin with the sitemaps."""
        urls = list(self.sitemap_urls)
        asked = [url for url in urls if url.endswith("/robots.txt")]
        self.sitemap_urls = [url for url in urls if url not in asked]
        async for request in super().start():  # type: ignore[misc]
            yield request
        seen = set(self.sitemap_urls)
        for url in asked:
            for sitemap in await self.sitemaps_of(url):
                if sitemap not in seen:
                    seen.add(sitemap)
                    callback = self._parse_sitemap  # type: ignore[attr-defined]
                    yield Request(sitemap, callback=callback)

    async def sitemaps_of(self, url: str) -> list[str]:
        """Return the sitemaps that the robots.txt of the origin of ``url`` names, as full URLs."""
        robots = Robots.of(self.crawler)  # type: ignore[attr-defined]
        where = origin_of(url).robotstxt_url
        found = []
        for sitemap in await robots.sitemaps(url):
            full = urljoin(where, short(sitemap))
            if full.startswith(_SCHEMES):
                found.append(full)
            else:
                logger.debug("Not a sitemap's URL, in %s: %a", where, sitemap)
        if not found:
            verdict = robots.known_verdict(url.removesuffix("robots.txt"))
            known = verdict is not None and verdict.reason is not Reason.UNREACHABLE
            logger.warning("No sitemaps: %s %s", where, "names none" if known else "is unreachable")
        return found


class RobotsSitemapSpider(RobotsSitemapMixin, SitemapSpider):
    """A SitemapSpider whose ``sitemap_urls`` may name robots.txt files at no cost."""
