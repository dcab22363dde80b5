"""Scrapy's commands at which somebody waits for an answer, which tell the crawl so.

They are registered in the place of Scrapy's own, and do the same with one setting more.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from scrapy.commands import check, fetch, parse, shell, view

_SETTINGS: Final[dict[str, Any]] = {"REP_INTERACTIVE": True, "REP_TIMEOUT": 10.0}
"""Of priority ``command``: those of the project win."""


class Check(check.Command):
    """``scrapy check``."""

    default_settings: ClassVar[dict[str, Any]] = {**check.Command.default_settings, **_SETTINGS}


class Fetch(fetch.Command):
    """``scrapy fetch``."""

    default_settings: ClassVar[dict[str, Any]] = {**fetch.Command.default_settings, **_SETTINGS}


class Parse(parse.Command):
    """``scrapy parse``."""

    default_settings: ClassVar[dict[str, Any]] = {**parse.Command.default_settings, **_SETTINGS}


class Shell(shell.Command):
    """``scrapy shell``."""

    default_settings: ClassVar[dict[str, Any]] = {**shell.Command.default_settings, **_SETTINGS}


class View(view.Command):
    """``scrapy view``."""

    default_settings: ClassVar[dict[str, Any]] = {**view.Command.default_settings, **_SETTINGS}
