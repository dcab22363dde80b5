"""Reads the URLs in the sitemaps of a robots.txt. Size, depth and number are limited."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.gz import gunzip, gzip_magic_number
from scrapy.utils.sitemap import Sitemap

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import absolute_url
from scrapy_rep.utils.text import printable, without_credentials

_MAX_DEPTH: Final = 3
"""Maximum depth of sitemap indexes in each other. The sitemaps protocol allows a depth of 1."""
_MAX_BYTES: Final = 50 * 2**20
"""Maximum size of an unpacked sitemap in bytes, as in the sitemaps protocol."""
_MAX_SITEMAPS: Final = 1_000
_MAX_URLS: Final = 1_000_000


@dataclass(frozen=True)
class Sitemaps:
    """Fetches sitemaps with the downloader of a crawl, if robots.txt allows it.

    After an error, or above a limit, it warns, and goes on or ends without the rest.
    """

    _crawler: Crawler
    _warn: Callable[[str], None]

    async def urls(self, sitemaps: Iterable[str], robotstxt_url: str) -> AsyncIterator[str]:
        """Yield the URLs, valid or not, in sitemaps and their indexes. Raises CrawlClosingError."""
        queue = [(url, 0) for url in self._valid(sitemaps, robotstxt_url)]
        seen: set[str] = set()
        found = 0
        while queue:
            url, depth = queue.pop(0)
            if url in seen:
                continue
            if len(seen) == _MAX_SITEMAPS:
                self._warn(f"{robotstxt_url}: more than {_MAX_SITEMAPS} sitemaps")
                return
            seen.add(url)
            sitemap = await self._fetch(url)
            if sitemap is None:
                continue
            locations = (entry["loc"] for entry in sitemap)
            if sitemap.type == "sitemapindex":
                if depth == _MAX_DEPTH:
                    self._warn_of(url, f"more than {_MAX_DEPTH} indexes in each other")
                    continue
                first = islice(locations, _MAX_SITEMAPS + 1)
                queue += [(target, depth + 1) for target in self._valid(first, url)]
                continue
            for location in locations:
                if found == _MAX_URLS:
                    self._warn(f"{robotstxt_url}: more than {_MAX_URLS} URLs in sitemaps")
                    return
                found += 1
                yield absolute_url(location, url) or location

    def _valid(self, urls: Iterable[str], base: str) -> Iterator[str]:
        """Yield http and https URLs of the file at ``base`` as absolute ones; warn of others."""
        for url in urls:
            absolute = absolute_url(url, base)
            if absolute is None:
                shown = printable(without_credentials(url))
                self._warn_of(base, f"not a sitemap's URL: {shown}")
            else:
                yield absolute

    async def _fetch(self, url: str) -> Sitemap | None:
        """Return a sitemap; None after an error, with a warning. Raises CrawlClosingError."""
        try:
            meta = {"download_maxsize": _MAX_BYTES, "download_warnsize": 0}
            request = Request(url, callback=NO_CALLBACK, meta=meta)
            response = await self._crawler.engine.download_async(request)
            if response.status != HTTPStatus.OK:
                self._warn_of(url, f"status {response.status}")
                return None
            body = response.body
            if gzip_magic_number(response):
                body = gunzip(body, max_size=_MAX_BYTES)
            return Sitemap(body)
        except CrawlClosingError:
            raise
        except IgnoreRequest as error:
            self._warn_of(url, printable(str(error)) or "not fetched")
        except Exception as error:  # noqa: BLE001 - the plan continues without this sitemap
            self._warn_of(url, f"{type(error).__name__}: {printable(str(error))}")
        return None

    def _warn_of(self, url: str, text: str) -> None:
        self._warn(f"{printable(without_credentials(url))}: {text}")
