"""Robots.txt for Scrapy as RFC 9309 and Google's specification say.

All that is written in settings or imported comes from here, from ``scrapy_rep.signals`` and from
``scrapy_rep.protocol``; everything else is private.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_rep.addon import Addon
    from scrapy_rep.cache.cache import Census
    from scrapy_rep.downloadermiddlewares.guard import RobotsTxtFetchMiddleware
    from scrapy_rep.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
    from scrapy_rep.exceptions import CrawlClosingError, RobotsTxtDisallowed, SettingsError
    from scrapy_rep.extensions.logstats import RobotsLogStats
    from scrapy_rep.extensions.report import RobotsReport
    from scrapy_rep.robotparser import RobotParser
    from scrapy_rep.robots import Robots
    from scrapy_rep.scheduler.queue import RobotsAwarePriorityQueue
    from scrapy_rep.spidermiddlewares.metatags import RobotsTagsMiddleware
    from scrapy_rep.spiders import RobotsSitemapMixin, RobotsSitemapSpider

    __version__: str

__all__ = [
    "Addon",
    "Census",
    "CrawlClosingError",
    "RobotParser",
    "Robots",
    "RobotsAwarePriorityQueue",
    "RobotsLogStats",
    "RobotsReport",
    "RobotsSitemapMixin",
    "RobotsSitemapSpider",
    "RobotsTagsMiddleware",
    "RobotsTxtDisallowed",
    "RobotsTxtFetchMiddleware",
    "RobotsTxtMiddleware",
    "SettingsError",
    "__version__",
]

# Imported when first asked for, so that scrapy_rep.protocol serves without Scrapy (PEP 562).
_HOMES = {
    "Addon": "scrapy_rep.addon",
    "Census": "scrapy_rep.cache.cache",
    "CrawlClosingError": "scrapy_rep.exceptions",
    "RobotParser": "scrapy_rep.robotparser",
    "Robots": "scrapy_rep.robots",
    "RobotsAwarePriorityQueue": "scrapy_rep.scheduler.queue",
    "RobotsLogStats": "scrapy_rep.extensions.logstats",
    "RobotsReport": "scrapy_rep.extensions.report",
    "RobotsSitemapMixin": "scrapy_rep.spiders",
    "RobotsSitemapSpider": "scrapy_rep.spiders",
    "RobotsTagsMiddleware": "scrapy_rep.spidermiddlewares.metatags",
    "RobotsTxtDisallowed": "scrapy_rep.exceptions",
    "RobotsTxtFetchMiddleware": "scrapy_rep.downloadermiddlewares.guard",
    "RobotsTxtMiddleware": "scrapy_rep.downloadermiddlewares.robotstxt",
    "SettingsError": "scrapy_rep.exceptions",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("scrapy-rep")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
