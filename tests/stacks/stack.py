"""Crawls with others' packages, and the one check of what came of it."""

from __future__ import annotations

from tests.crawling.process import CrawlProcess
from tests.stacks.sites import Sites

ONE_TRY = {"REP_RETRY_DELAY": 3600, "REP_RETRY_DELAY_MAX": 3600}
"""Of each origin, however long the crawl takes."""
EVERY = ("plain", "moved", "none", "down", "agents")
"""The sites that every stack crawls; some stacks have more."""


class Stack:
    def __init__(self, web, folder):
        self.web = web
        self.folder = folder

    def crawl(self, sites, *, settings=None, meta=None, urls=None, spider="StackSpider", later=0):
        """Crawl ``sites`` in a process of its own; return what it told, with its log.

        It has clocks that are ``later`` seconds ahead, as far as scrapy_rep sees.
        """
        return CrawlProcess(
            "asyncio",
            [[url, meta or {}] for url in (sites.urls if urls is None else urls)],
            spider=f"tests.stacks.parts.{spider}",
            later=later,
            cwd=self.folder,
            **{"LOG_LEVEL": "INFO", **ONE_TRY, **(settings or {})},
        ).result()

    def sites(self, *names):
        return Sites(self.web, *(names or EVERY))

    def check(self, sites, *, known=(), missing=()):
        """Fail if what reached the sites is not as it should be.

        ``known`` is what reaches the wire as a browser or an API fetches it by itself, and nobody
        is asked before; ``missing`` is what does not arrive though it is allowed.
        """
        assert [each for each in sites.leaked() if each not in known] == []
        asked = sites.robots_requests()
        assert not asked or max(asked.values()) == 1, asked
        assert sorted(sites.missing()) == sorted(missing)
