"""The parser with the interface of Scrapy's ``RobotParser``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser as BaseRobotParser

from scrapy_rep.protocol.crawl_delay import delay_in
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import tokens_of_name

if TYPE_CHECKING:
    from typing_extensions import Self

_ASCII: Final = bytes(range(128))


class RobotParser(BaseRobotParser):
    """The parser of scrapy-rep for Scrapy's ``ROBOTSTXT_PARSER`` and signal ``robots_parsed``."""

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:  # noqa: ARG003 - of Scrapy
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
