"""What Scrapy's built-in would have decided, as far as that can be told without asking again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep.lru import BoundedCache
from scrapy_rep.protocol.outcome import Available
from scrapy_rep.robotparser import RobotParser

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.record import Record

logger = logging.getLogger(__name__)

_MAX_PARSERS: Final = 1_000
_MAX_BYTES: Final = 64 * 1024 * 1024


class BuiltIn:
    """The built-in's parser on the robots.txt that we have, asked as the built-in asks it.

    It parses the body of a 2xx. Of any other answer we keep no body, and an error page hardly ever
    has rules in it: there, and where no answer came, the built-in allows all.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        parser = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        # The addon's choice is not what the built-in would have used.
        ours = isinstance(parser, type) and issubclass(parser, RobotParser)
        self._parser: Any = ProtegoRobotParser if ours else parser
        self._parsers: BoundedCache[tuple[str, float], Any] = BoundedCache(_MAX_PARSERS, _MAX_BYTES)

    def allows(self, request: Request, record: Record | None) -> bool:
        """Return whether the built-in would send ``request``."""
        if record is None or not isinstance(record.last, Available):
            return True
        key = record.origin, record.last.evidence.at
        parser = self._parsers.get(key)
        if parser is None:
            body = record.last.body
            parser = build_from_crawler(self._parser, self._crawler, body)
            self._parsers.put(key, parser, 10 * len(body))
        settings = self._crawler.settings
        agent = settings["ROBOTSTXT_USER_AGENT"] or request.headers.get(
            b"User-Agent", settings["USER_AGENT"]
        )
        if isinstance(agent, list | tuple):
            agent = agent[0]  # the built-in takes no list; the first is the most specific
        return bool(parser.allowed(request.url, agent))
