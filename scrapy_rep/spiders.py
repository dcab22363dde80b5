"""Sitemap spiders that fetch each robots.txt only once."""

from __future__ import annotations

import logging
import math
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from scrapy import Request
from scrapy.spiders import SitemapSpider

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import as_completed, sleep
from scrapy_rep.utils.text import short, without_credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

logger: Final = logging.getLogger(__name__)

_SCHEMES: Final = ("http://", "https://")
_PAUSE: Final = 0.05
"""Smallest number of seconds between two tries, as timers may fire early."""


class RobotsSitemapMixin:
    """Mixin for a SitemapSpider; it must come first in the list of bases.

    A URL of a robots.txt in ``sitemap_urls`` is replaced with the sitemaps that this robots.txt
    names. The spider uses the robots.txt that the crawl has fetched, and fetches it only once.
    """

    # mypy doesn't know that the other base is a SitemapSpider.

    sitemap_urls: Sequence[str]
    """URLs of sitemaps, and of robots.txt files that name sitemaps."""

    async def start(self) -> AsyncIterator[Any]:
        """Yield requests for the sitemaps, those of a robots.txt as soon as it is known."""
        urls = list(self.sitemap_urls)
        asked = [url for url in urls if url.endswith("/robots.txt")]
        self.sitemap_urls = [url for url in urls if url not in asked]
        async for request in super().start():  # type: ignore[misc]
            yield request
        seen = set(self.sitemap_urls)
        async for sitemaps in as_completed(self._begin_with(url) for url in asked):
            for sitemap in sitemaps:
                if sitemap not in seen:
                    seen.add(sitemap)
                    callback = self._parse_sitemap  # type: ignore[attr-defined]
                    yield Request(sitemap, callback=callback)

    async def _begin_with(self, url: str) -> list[str]:
        """Return the sitemaps of one robots.txt; none after an error, which is logged."""
        try:
            return await self.sitemaps_of(url)
        except CrawlClosingError:
            pass
        except Exception:
            logger.exception("Error while looking for the sitemaps of %a", without_credentials(url))
        return []

    async def sitemaps_of(self, url: str) -> list[str]:
        """Return the sitemaps that the robots.txt of the origin of ``url`` names, as full URLs.

        If it is unreachable, wait for its next tries as long as pages do. Raises ValueError if the
        URL can't have a robots.txt, and CrawlClosingError.
        """
        robots = Robots.of(self.crawler)  # type: ignore[attr-defined]
        options = Options.of(self.crawler)  # type: ignore[attr-defined]
        patience = options.defer_timeout if options.unreachable_action == "defer" else 0.0
        where = origin_of(url).robotstxt_url
        found = []
        for sitemap in await _named(robots, url, patience):
            full = _full(where, sitemap)
            if full is None:
                named = short(without_credentials(sitemap))
                logger.debug("Not a sitemap's URL, in %s: %a", where, named)
            else:
                found.append(full)
        if not found:
            known = robots.next_try(url) is None
            logger.warning("No sitemaps: %s %s", where, "names none" if known else "is unreachable")
        return found


async def _named(robots: Robots, url: str, patience: float) -> list[str]:
    """Return the sitemaps as written; retry an unreachable file for ``patience`` seconds."""
    end = monotonic() + patience
    while True:
        sitemaps = await robots.sitemaps(url)
        due, left = robots.next_try(url), end - monotonic()
        if due is None or due == math.inf or left <= 0:
            return sitemaps
        await sleep(max(_PAUSE, min(due - time(), left)))


def _full(where: str, sitemap: str) -> str | None:
    """Return the full URL of a sitemap; None if it is not valid."""
    try:
        full = urljoin(where, sitemap)
        return full if full.startswith(_SCHEMES) and Request(full) else None
    except ValueError:
        return None


class RobotsSitemapSpider(RobotsSitemapMixin, SitemapSpider):
    """A SitemapSpider that fetches each robots.txt in ``sitemap_urls`` only once."""
