"""Sitemap spiders that fetch each robots.txt only once."""

import math
from collections.abc import AsyncIterator, Sequence
from time import monotonic, time
from typing import Any, Final

from scrapy import Request
from scrapy.spiders import SitemapSpider
from twisted.internet.defer import CancelledError

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import absolute_url, origin_of
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import as_completed, sleep
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import without_credentials

_PAUSE: Final = 0.05
"""Minimum seconds to wait before robots.txt is looked up again, as a timer may end too early."""


class RobotsSitemapMixin:
    """Mixin for a SitemapSpider. It must be the first base class.

    A URL of a robots.txt in ``sitemap_urls`` is replaced by the sitemaps in this robots.txt. The
    file is fetched only once: for its sitemaps and its rules.
    """

    sitemap_urls: Sequence[str]

    async def start(self) -> AsyncIterator[Any]:
        """Yield requests for sitemaps, log errors; take robots.txt URLs out of ``sitemap_urls``."""
        urls = list(self.sitemap_urls)
        robotstxt_urls = [url for url in urls if url.endswith("/robots.txt")]
        self.sitemap_urls = [url for url in urls if url not in robotstxt_urls]
        async for request in super().start():  # type: ignore[misc] # of SitemapSpider
            yield request
        async for sitemaps in as_completed(self._sitemaps_or_empty(url) for url in robotstxt_urls):
            for sitemap in sitemaps:
                callback = self._parse_sitemap  # type: ignore[attr-defined] # the same
                yield Request(sitemap, callback=callback)

    async def _sitemaps_or_empty(self, url: str) -> list[str]:
        try:
            return await self.sitemaps_of(url)
        except (CrawlClosingError, CancelledError):
            pass  # Twisted's CancelledError is an Exception: the next clause would log it
        except Exception:
            logger = LimitedLogger(__name__, self.crawler)  # type: ignore[attr-defined] # the same
            logger.exception("Error while looking for the sitemaps of %a", without_credentials(url))
        return []

    async def sitemaps_of(self, url: str) -> list[str]:
        """Return the sitemaps in the robots.txt of the origin of ``url``, as absolute URLs.

        If robots.txt is unreachable, wait until it can be fetched, for at most REP_DEFER_TIMEOUT.
        Raises ValueError if the URL can't have a robots.txt, and CrawlClosingError.
        """
        crawler = self.crawler  # type: ignore[attr-defined] # the same
        logger = LimitedLogger(__name__, crawler)
        robots, options = Robots.of(crawler), Options.of(crawler)
        where = origin_of(url).robotstxt_url
        end = monotonic() + options.defer_timeout
        sitemaps = await robots.sitemaps(url)
        while (due := robots.next_try(url)) is not None and due < math.inf and monotonic() < end:
            await sleep(max(_PAUSE, min(due - time(), end - monotonic())))
            sitemaps = await robots.sitemaps(url)
        found = [each for sitemap in sitemaps if (each := absolute_url(sitemap, where)) is not None]
        if not found:
            known = robots.next_try(url) is None
            logger.warning("No sitemaps: %s %s", where, "names none" if known else "is unreachable")
        return found


class RobotsSitemapSpider(RobotsSitemapMixin, SitemapSpider):
    """A SitemapSpider with RobotsSitemapMixin: it fetches each robots.txt only once."""
