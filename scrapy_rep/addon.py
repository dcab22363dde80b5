"""One settings line that puts everything in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.utils.misc import load_object

from scrapy_rep.fetcher import RobotsTxtFetchMiddleware
from scrapy_rep.middleware import RobotsTxtMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_PLACE: Final = 100
"""Where Scrapy has its built-in RobotsTxtMiddleware."""
_FETCH_PLACE: Final = 595
"""Nearer the downloader than HttpCompressionMiddleware (590): answers come here first."""


class Addon:
    """Obeys robots.txt: ``ADDONS = {"scrapy_rep.Addon": 500}``."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Take the place of the built-in, and leave alone what the user has set."""
        name = "DOWNLOADER_MIDDLEWARES"
        place = _PLACE
        for component, priority in settings.getdict(name).items():
            if load_object(component) is BuiltInMiddleware and priority is not None:
                place = priority
        settings.set_in_component_priority_dict(name, BuiltInMiddleware, None)
        settings.setdefault_in_component_priority_dict(name, RobotsTxtMiddleware, place)
        settings.setdefault_in_component_priority_dict(name, RobotsTxtFetchMiddleware, _FETCH_PLACE)
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        settings.set("ROBOTSTXT_PARSER", "scrapy_rep.RobotParser", priority="addon")
