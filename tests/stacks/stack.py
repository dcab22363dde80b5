"""Crawls with a stack, and the one check of what came of it."""

from __future__ import annotations

import importlib.metadata
from collections import Counter

from tests.crawling.process import CrawlProcess
from tests.stacks.sites import Sites

ONE_TRY = {"REP_RETRY_DELAY": 3600, "REP_RETRY_DELAY_MAX": 3600}
"""Of each origin, however long the crawl takes."""
EVERY = ("plain", "moved", "none", "down", "agents")
"""The sites that every stack crawls; some stacks have more."""


class Stack:
    """A package, and crawls with it."""

    def __init__(self, web, folder, record, package, browser="browser"):
        self.web = web
        self.folder = folder
        self.record = record
        self.package = package
        self.browser = browser
        """What sends the headers of browsers here."""

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

    def check(self, sites, case, endpoint=None, *, known=(), missing=()):
        """Note what came of a crawl for the table, and fail if it was not as it should be.

        ``known`` is what reaches the wire as a browser or an API fetches it by itself, and nobody
        is asked before;
        ``missing`` is what does not arrive though it is allowed.
        """
        leaked = [each for each in sites.leaked() if each not in known]
        asked = sites.robots_requests()
        through = Counter(
            self._way(headers) for _, target, headers in sites.journal() if target == "/robots.txt"
        )
        ways = [f"{number} {way}" for way, number in sorted(through.items())]
        if endpoint is not None:
            billed = Counter(endpoint.robots_requests())
            ways += [
                f"{number} asked of the {endpoint.name} as {how}" for how, number in billed.items()
            ]
        row = {
            "package": self.package,
            "version": version(self.package),
            "case": case,
            "leaked": leaked,
            "robots": dict(asked),
            "ways": ways,
            "missing": [each for each in sites.missing() if each not in missing],
            "known": [each for each in sites.leaked() if each in known],
        }
        self.record("stack", row)
        assert leaked == []
        assert not asked or max(asked.values()) == 1, asked
        assert sorted(sites.missing()) == sorted(missing)

    def _way(self, headers):
        if "via" in headers:
            return f"through the {headers['via'].split()[-1]}"
        if "sec-fetch-mode" in headers or "sec-ch-ua" in headers:
            return f"by the {self.browser}"
        return "direct"


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"
