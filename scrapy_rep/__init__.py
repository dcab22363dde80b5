"""robots.txt for Scrapy, as defined in RFC 9309 and in Google's specification.

The public names, for settings and imports, are in ``scrapy_rep``, ``scrapy_rep.signals`` and
``scrapy_rep.protocol``. Everything else is private, and may change.

A request passes four places. In the scheduler, ``scheduler/priority_queue.py`` keeps it as long as
the ``admission`` has a reason to wait. ``downloadermiddlewares/robotstxt.py`` gets the decision
from ``decision/decider.py``, and drops the request, or writes on its ticket what may be sent.
``downloadermiddlewares/wire.py``, called in place of the download handler, compares that with what
is sent. The response reaches its callback through the ``spidermiddlewares``, which obey robots meta
tags and usage preferences.

The rules are in ``cache/cache.py`` until they expire. A lookup reads the record of an origin (how
the last fetches ended) in one of the ``stores``, or fetches robots.txt (``fetch/fetcher.py``). The
``extensions`` only receive signals: the report and the evidence.

If an error occurs while a request is decided, the error is logged and the request is dropped. In a
dry run the request is sent.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_rep.addon import Addon
    from scrapy_rep.cache.cache import Census
    from scrapy_rep.downloadermiddlewares.outermost import (
        RobotsTxtFetchMiddleware,
        RobotsTxtResponseMiddleware,
    )
    from scrapy_rep.downloadermiddlewares.playwright import abort_disallowed
    from scrapy_rep.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
    from scrapy_rep.exceptions import (
        CrawlClosingError,
        RobotsTxtDisallowed,
        RobotsUsageDisallowed,
        SettingsError,
    )
    from scrapy_rep.extensions.evidence import RobotsEvidence
    from scrapy_rep.extensions.report.extension import RobotsReport
    from scrapy_rep.robotparser import RobotParser
    from scrapy_rep.robots import Robots, Wait
    from scrapy_rep.scheduler.priority_queue import RobotsAwarePriorityQueue
    from scrapy_rep.scheduler.redis_queue import (
        RobotsAwareRedisFifoQueue,
        RobotsAwareRedisLifoQueue,
        RobotsAwareRedisQueue,
    )
    from scrapy_rep.spidermiddlewares.metatags import RobotsTagsMiddleware
    from scrapy_rep.spidermiddlewares.usage import RobotsUsageMiddleware
    from scrapy_rep.spiders import RobotsSitemapMixin, RobotsSitemapSpider

    __version__: str

__all__ = [
    "Addon",
    "Census",
    "CrawlClosingError",
    "RobotParser",
    "Robots",
    "RobotsAwarePriorityQueue",
    "RobotsAwareRedisFifoQueue",
    "RobotsAwareRedisLifoQueue",
    "RobotsAwareRedisQueue",
    "RobotsEvidence",
    "RobotsReport",
    "RobotsSitemapMixin",
    "RobotsSitemapSpider",
    "RobotsTagsMiddleware",
    "RobotsTxtDisallowed",
    "RobotsTxtFetchMiddleware",
    "RobotsTxtMiddleware",
    "RobotsTxtResponseMiddleware",
    "RobotsUsageDisallowed",
    "RobotsUsageMiddleware",
    "SettingsError",
    "Wait",
    "__version__",
    "abort_disallowed",
]

# These modules are imported when a name is first used (PEP 562), so that scrapy_rep.protocol can be
# used without Scrapy.
_HOMES = {
    "Addon": "scrapy_rep.addon",
    "Census": "scrapy_rep.cache.cache",
    "CrawlClosingError": "scrapy_rep.exceptions",
    "RobotParser": "scrapy_rep.robotparser",
    "Robots": "scrapy_rep.robots",
    "RobotsAwarePriorityQueue": "scrapy_rep.scheduler.priority_queue",
    "RobotsAwareRedisFifoQueue": "scrapy_rep.scheduler.redis_queue",
    "RobotsAwareRedisLifoQueue": "scrapy_rep.scheduler.redis_queue",
    "RobotsAwareRedisQueue": "scrapy_rep.scheduler.redis_queue",
    "RobotsEvidence": "scrapy_rep.extensions.evidence",
    "RobotsReport": "scrapy_rep.extensions.report.extension",
    "RobotsSitemapMixin": "scrapy_rep.spiders",
    "RobotsSitemapSpider": "scrapy_rep.spiders",
    "RobotsTagsMiddleware": "scrapy_rep.spidermiddlewares.metatags",
    "RobotsTxtDisallowed": "scrapy_rep.exceptions",
    "RobotsTxtFetchMiddleware": "scrapy_rep.downloadermiddlewares.outermost",
    "RobotsTxtMiddleware": "scrapy_rep.downloadermiddlewares.robotstxt",
    "RobotsTxtResponseMiddleware": "scrapy_rep.downloadermiddlewares.outermost",
    "RobotsUsageDisallowed": "scrapy_rep.exceptions",
    "RobotsUsageMiddleware": "scrapy_rep.spidermiddlewares.usage",
    "SettingsError": "scrapy_rep.exceptions",
    "Wait": "scrapy_rep.robots",
    "abort_disallowed": "scrapy_rep.downloadermiddlewares.playwright",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("scrapy-rep")
    if name in _HOMES:
        import_module("scrapy_rep.utils.scrapy_version").check_scrapy()
        return getattr(import_module(_HOMES[name]), name)
    if name == "addon":  # ADDONS has scrapy_rep.addon by mistake; the module reports that
        return import_module("scrapy_rep.addon")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
