"""Scrapy's commands for which a user waits, which tell the crawl so.

They are Scrapy's own. Commands of a package in their place would be listed outside of projects,
too: Scrapy looks at ``requires_project`` only of its own, and of those of the project.
"""

from __future__ import annotations

from typing import Any, Final

from scrapy.commands import check, fetch, parse, shell, view

_SETTINGS: Final[dict[str, Any]] = {"REP_INTERACTIVE": True, "REP_TIMEOUT": 10.0}
"""Of priority ``command``: those of the project win."""


def add_settings() -> None:
    """Add ours to the default settings of these commands."""
    for command in (check.Command, fetch.Command, parse.Command, shell.Command, view.Command):
        command.default_settings = {**command.default_settings, **_SETTINGS}
