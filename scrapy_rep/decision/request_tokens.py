"""The product tokens of requests: the names by which robots.txt addresses the crawler."""

from __future__ import annotations

from functools import lru_cache

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Headers
from scrapy.utils.python import without_none_values

from scrapy_rep.protocol.product_tokens import tokens_of_header
from scrapy_rep.settings import Options
from scrapy_rep.utils.per_crawl import get_or_add_part
from scrapy_rep.utils.scrapy_internals import user_agents_of

_tokens_of_header = lru_cache(maxsize=1024)(tokens_of_header)


class ProductTokens:
    """The tokens in ROBOTSTXT_USER_AGENT if it is set, else in the User-Agent of the request."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._configured = Options.of(crawler).tokens
        self._default = self._configured

    @classmethod
    def of(cls, crawler: Crawler) -> ProductTokens:
        return get_or_add_part(crawler, cls, lambda: cls(crawler))

    def of_request(self, request: Request) -> tuple[str, ...]:
        """Return the tokens that are set, else those of ``request`` or of its future User-Agent."""
        if self._configured is None and user_agents_of(request) is not None:
            return self.of_sent_request(request)
        return self._default or self.default()

    def of_sent_request(self, request: Request) -> tuple[str, ...]:
        """Return the tokens that are set, else those in the User-Agent of ``request``, or none."""
        if self._configured is not None:
            return self._configured
        values = user_agents_of(request)
        return _tokens_of_header(values[-1] if values else b"")

    def default(self) -> tuple[str, ...]:
        """Return the tokens that are set, else those of the User-Agent that a request gets."""
        if self._default is None:
            # DefaultHeadersMiddleware (400) comes first. Then UserAgentMiddleware (500) sets the
            # header if there is none yet. It sets none if its value is empty.
            settings = self._crawler.settings
            headers = Headers(without_none_values(settings.getdict("DEFAULT_REQUEST_HEADERS")))
            of_crawl = getattr(self._crawler.spider, "user_agent", settings["USER_AGENT"])
            self._default = _tokens_of_header(headers.get(b"User-Agent", of_crawl) or b"")
        return self._default
