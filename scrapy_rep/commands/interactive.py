"""Scrapy's commands at which somebody waits for an answer, which tell the crawl so.

They are registered in the place of Scrapy's own, and do the same with one setting more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from scrapy.commands import ScrapyCommand, check, fetch, parse, shell, view
from scrapy.exceptions import UsageError
from scrapy.utils.project import inside_project

if TYPE_CHECKING:
    import argparse

_SETTINGS: Final[dict[str, Any]] = {"REP_INTERACTIVE": True, "REP_TIMEOUT": 10.0}
"""Of priority ``command``: those of the project win."""


class _OfProject(ScrapyCommand):
    """A command for projects alone: of packages' commands Scrapy does not look after that."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if not inside_project():
            raise UsageError("this command is only available from within a project")
        super().process_options(args, opts)


class Check(_OfProject, check.Command):
    """``scrapy check``."""

    default_settings: ClassVar[dict[str, Any]] = {**check.Command.default_settings, **_SETTINGS}


class Fetch(fetch.Command):
    """``scrapy fetch``."""

    default_settings: ClassVar[dict[str, Any]] = {**fetch.Command.default_settings, **_SETTINGS}


class Parse(_OfProject, parse.Command):
    """``scrapy parse``."""

    default_settings: ClassVar[dict[str, Any]] = {**parse.Command.default_settings, **_SETTINGS}


class Shell(shell.Command):
    """``scrapy shell``."""

    default_settings: ClassVar[dict[str, Any]] = {**shell.Command.default_settings, **_SETTINGS}


class View(view.Command):
    """``scrapy view``."""

    default_settings: ClassVar[dict[str, Any]] = {**view.Command.default_settings, **_SETTINGS}
