"""robots.txt for Scrapy, as defined in RFC 9309 and in Google's specification.

The public names, for settings and imports, are in ``scrapy_rep``, ``scrapy_rep.signals`` and
``scrapy_rep.protocol``. Everything else is private, and may change.

If an error occurs while a request is decided, the error is logged and the request is dropped. In a
dry run the request is sent.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy_rep.addon import Addon as Addon
    from scrapy_rep.downloadermiddlewares.fetch_and_response import (
        RobotsTxtFetchMiddleware as RobotsTxtFetchMiddleware,
    )
    from scrapy_rep.downloadermiddlewares.fetch_and_response import (
        RobotsTxtResponseMiddleware as RobotsTxtResponseMiddleware,
    )
    from scrapy_rep.downloadermiddlewares.robotstxt import (
        RobotsTxtMiddleware as RobotsTxtMiddleware,
    )
    from scrapy_rep.exceptions import CrawlClosingError as CrawlClosingError
    from scrapy_rep.exceptions import RobotsTxtDisallowed as RobotsTxtDisallowed
    from scrapy_rep.exceptions import RobotsUsageDisallowed as RobotsUsageDisallowed
    from scrapy_rep.exceptions import SettingsError as SettingsError
    from scrapy_rep.extensions.evidence import RobotsEvidence as RobotsEvidence
    from scrapy_rep.extensions.playwright import abort_disallowed as abort_disallowed
    from scrapy_rep.extensions.report import RobotsReport as RobotsReport
    from scrapy_rep.robots import RobotParser as RobotParser
    from scrapy_rep.robots import Robots as Robots
    from scrapy_rep.robots import Wait as Wait
    from scrapy_rep.scheduler.priority_queue import (
        RobotsAwarePriorityQueue as RobotsAwarePriorityQueue,
    )
    from scrapy_rep.scheduler.redis_queue import (
        RobotsAwareRedisFifoQueue as RobotsAwareRedisFifoQueue,
    )
    from scrapy_rep.scheduler.redis_queue import (
        RobotsAwareRedisLifoQueue as RobotsAwareRedisLifoQueue,
    )
    from scrapy_rep.scheduler.redis_queue import RobotsAwareRedisQueue as RobotsAwareRedisQueue
    from scrapy_rep.sitemap_spiders import RobotsSitemapMixin as RobotsSitemapMixin
    from scrapy_rep.sitemap_spiders import RobotsSitemapSpider as RobotsSitemapSpider
    from scrapy_rep.spidermiddlewares.metatags import RobotsTagsMiddleware as RobotsTagsMiddleware
    from scrapy_rep.spidermiddlewares.usage import RobotsUsageMiddleware as RobotsUsageMiddleware

    __version__: str

# These modules are imported when a name is first used (PEP 562), so that scrapy_rep.protocol can be
# used without Scrapy.
_NAMES: Final = {
    "addon": "Addon",
    "downloadermiddlewares.fetch_and_response": (
        "RobotsTxtFetchMiddleware RobotsTxtResponseMiddleware"
    ),
    "downloadermiddlewares.robotstxt": "RobotsTxtMiddleware",
    "exceptions": "CrawlClosingError RobotsTxtDisallowed RobotsUsageDisallowed SettingsError",
    "extensions.evidence": "RobotsEvidence",
    "extensions.playwright": "abort_disallowed",
    "extensions.report": "RobotsReport",
    "robots": "RobotParser Robots Wait",
    "scheduler.priority_queue": "RobotsAwarePriorityQueue",
    "scheduler.redis_queue": "RobotsAwareRedisFifoQueue RobotsAwareRedisLifoQueue "
    "RobotsAwareRedisQueue",
    "sitemap_spiders": "RobotsSitemapMixin RobotsSitemapSpider",
    "spidermiddlewares.metatags": "RobotsTagsMiddleware",
    "spidermiddlewares.usage": "RobotsUsageMiddleware",
}
_HOMES: Final = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("scrapy-rep")
    if name in _HOMES:
        return getattr(import_module(f"scrapy_rep.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
