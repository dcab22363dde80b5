"""Default settings for some of Scrapy's own commands: those for whose result a user waits.

The settings are added to the classes of these commands. If this package replaced the commands
instead, its commands would be listed outside of projects, too: Scrapy checks ``requires_project``
only for its own commands and those of the project.
"""

from typing import Any, Final

from scrapy.commands import check, fetch, parse, shell, view

_SETTINGS: Final[dict[str, Any]] = {"REP_INTERACTIVE": True, "REP_TIMEOUT": 10.0}
"""Default settings of the commands. Settings of the project have a higher priority."""


def add_settings() -> None:
    """Add REP_INTERACTIVE and REP_TIMEOUT to the default settings of the commands."""
    for command in (check.Command, fetch.Command, parse.Command, shell.Command, view.Command):
        command.default_settings = {**command.default_settings, **_SETTINGS}
