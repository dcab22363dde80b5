"""The add-on, which enables all components of scrapy-rep."""

from __future__ import annotations

from math import inf, nextafter
from typing import Final

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_rep.downloadermiddlewares.fetch_and_response import (
    RobotsTxtFetchMiddleware,
    RobotsTxtResponseMiddleware,
)
from scrapy_rep.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy_rep.extensions.evidence import RobotsEvidence
from scrapy_rep.extensions.report import RobotsReport
from scrapy_rep.scheduler.priority_queue import RobotsAwarePriorityQueue
from scrapy_rep.scheduler.request_table import RequestTable
from scrapy_rep.settings import Options
from scrapy_rep.spidermiddlewares.metatags import RobotsTagsMiddleware
from scrapy_rep.spidermiddlewares.usage import RobotsUsageMiddleware
from scrapy_rep.utils.log import LimitedLogger

logger: Final = LimitedLogger(__name__)

_ORDER: Final = 100  # of Scrapy's built-in RobotsTxtMiddleware
_FETCH_ORDER: Final = 1_000_000  # the last middleware before the downloader
_RESPONSE_ORDER: Final = -_FETCH_ORDER  # the last that gets a response before the engine
_TAGS_ORDER: Final = 10  # near the engine: they get what all other spider middlewares pass on


class Addon:
    """The add-on that enables scrapy-rep: ``ADDONS = {"scrapy_rep.Addon": 500}``."""

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Addon:
        """Return the add-on of a crawl."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable all components in place of Scrapy's built-in middleware, and ROBOTSTXT_OBEY.

        Settings of the user are kept. Raises SettingsError if robots.txt is obeyed and a setting
        has an invalid value, or if the requests in JOBDIR can't be used.
        """
        name = "DOWNLOADER_MIDDLEWARES"
        components = settings.getdict(name)
        order: float = _ORDER
        for component in list(components):
            if load_object(component) is BuiltInMiddleware:
                moved = components.pop(component)
                order = order if moved is None else moved
        # The built-in is named by its path, as in the _BASE dict. Scrapy before 2.15 does not
        # recognize that a class and its path are the same component.
        components[global_object_name(BuiltInMiddleware)] = None
        settings.set(name, components, settings.getpriority(name) or 0)
        # The built-in, in the _BASE dict, is the first of the middlewares with the same order. So
        # that this is also true of its replacement, the order is made slightly smaller.
        order = nextafter(order, -inf)
        _enable(settings, name, RobotsTxtMiddleware, order)
        _enable(settings, name, RobotsTxtFetchMiddleware, _FETCH_ORDER)
        _enable(settings, name, RobotsTxtResponseMiddleware, _RESPONSE_ORDER)
        # Like the queue that it replaces, RobotsAwarePriorityQueue doesn't support this setting.
        if not settings.getint("CONCURRENT_REQUESTS_PER_IP"):
            # If the user has set another queue, that setting has a higher priority, and is kept.
            settings.set(
                "SCHEDULER_PRIORITY_QUEUE", "scrapy_rep.RobotsAwarePriorityQueue", priority="addon"
            )
        for middleware in (RobotsTagsMiddleware, RobotsUsageMiddleware):
            _enable(settings, "SPIDER_MIDDLEWARES", middleware, _TAGS_ORDER)
        for extension in (RobotsReport, RobotsEvidence):
            _enable(settings, "EXTENSIONS", extension, 0)
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        settings.set("ROBOTSTXT_PARSER", "scrapy_rep.RobotParser", priority="addon")
        if settings.getbool("ROBOTSTXT_OBEY"):
            # The settings are checked here already, where the traceback of an error is short.
            Options.from_settings(settings)
            if not _is_enabled(settings, name, RobotsTxtMiddleware):
                logger.warning(
                    "robots.txt is not obeyed, because DOWNLOADER_MIDDLEWARES disables "
                    "RobotsTxtMiddleware"
                )
        queue = load_object(settings["SCHEDULER_PRIORITY_QUEUE"])
        if self._crawler is not None and queue is RobotsAwarePriorityQueue:
            RequestTable.open_early(self._crawler)


def _enable(settings: BaseSettings, name: str, cls: type, order: float) -> None:
    """Add a component, unless the user has enabled or disabled it, or enabled a subclass of it."""
    if not _is_enabled(settings, name, cls):
        settings.setdefault_in_component_priority_dict(name, cls, order)  # type: ignore[arg-type] # may be a float


def _is_enabled(settings: BaseSettings, name: str, cls: type) -> bool:
    components = settings.getdict(name).items()
    enabled = [load_object(each) for each, order in components if order is not None]
    return any(isinstance(found, type) and issubclass(found, cls) for found in enabled)
