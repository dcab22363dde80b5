"""Robots.txt for Scrapy as RFC 9309 and Google's specification say."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_rep.addon import Addon
    from scrapy_rep.api import Robots
    from scrapy_rep.exceptions import RobotsTxtDisallowed
    from scrapy_rep.middleware import RobotsTxtMiddleware
    from scrapy_rep.robotparser import RobotParser
    from scrapy_rep.spiders import RobotsSitemapMixin, RobotsSitemapSpider

    __version__: str

__all__ = [
    "Addon",
    "RobotParser",
    "Robots",
    "RobotsSitemapMixin",
    "RobotsSitemapSpider",
    "RobotsTxtDisallowed",
    "RobotsTxtMiddleware",
    "__version__",
]

# Imported when first asked for, so that scrapy_rep.protocol serves without Scrapy (PEP 562).
_HOMES = {
    "Addon": "scrapy_rep.addon",
    "RobotParser": "scrapy_rep.robotparser",
    "Robots": "scrapy_rep.api",
    "RobotsSitemapMixin": "scrapy_rep.spiders",
    "RobotsSitemapSpider": "scrapy_rep.spiders",
    "RobotsTxtDisallowed": "scrapy_rep.exceptions",
    "RobotsTxtMiddleware": "scrapy_rep.middleware",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("scrapy-rep")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
