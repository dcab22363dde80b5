"""The command ``scrapy robots``, which runs its subcommands."""

import argparse
import logging
import os
import sys
from io import TextIOWrapper
from typing import Any, Final

from scrapy import Spider
from scrapy.commands import ScrapyCommand
from scrapy.crawler import CrawlerProcessBase
from scrapy.settings import SETTINGS_PRIORITIES, Settings
from scrapy.utils.project import inside_project

from scrapy_rep import stores
from scrapy_rep.addon import Addon
from scrapy_rep.commands.arguments import OPTIONS, Subcommand, usage_error
from scrapy_rep.commands.cache import CACHE
from scrapy_rep.commands.check import CHECK
from scrapy_rep.commands.crawl import CoroutineRunner
from scrapy_rep.commands.explain import EXPLAIN
from scrapy_rep.commands.lint import LINT
from scrapy_rep.commands.output import Exit
from scrapy_rep.commands.plan import PLAN
from scrapy_rep.exceptions import CrawlClosingError, SettingsError
from scrapy_rep.settings import unknown_settings
from scrapy_rep.utils.log import LimitedLogger

_SUBCOMMANDS: Final = {each.name: each for each in (CHECK, EXPLAIN, LINT, CACHE, PLAN)}
_ABOVE_SPIDER: Final = SETTINGS_PRIORITIES["spider"] + 1
_QUIET: Final[dict[str, Any]] = {
    "ROBOTSTXT_OBEY": True,
    "REP_DRY_RUN": False,
    "REP_REPORT": None,
    "REP_EVIDENCE": None,
    "JOBDIR": None,
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOGSTATS_INTERVAL": 0,
    "CLOSESPIDER_TIMEOUT": 0,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
}
"""Settings for the crawls of commands. They replace those of the project, so that the crawl always
obeys robots.txt, writes no feeds, report and evidence, and is not ended early."""


def _names_with(flag: str) -> list[str]:
    return [sub.name for sub in _SUBCOMMANDS.values() if flag in sub.options]


class Command(ScrapyCommand):
    """``scrapy robots``: sets the settings of its crawl, and runs a subcommand with the rest."""

    # Scrapy sets both before it calls ``process_options`` and ``run``.
    settings: Settings
    crawler_process: CrawlerProcessBase

    def syntax(self) -> str:
        return f"[options] {' | '.join(f'{s.name} {s.arguments}' for s in _SUBCOMMANDS.values())}"

    def short_desc(self) -> str:
        return "Check URLs against robots.txt, and explain the result"

    def long_desc(self) -> str:
        subcommands = [f"{each.name}: {each.description}." for each in _SUBCOMMANDS.values()]
        return (
            f"{' '.join(subcommands)} robots.txt is fetched as in a crawl. "
            "Exit status: 0 allowed or nothing found, 1 disallowed, findings or nothing stored, "
            "2 unknown or wrong usage."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        for flag, arguments in OPTIONS.items():
            names = _names_with(flag)
            whose = f" ({', '.join(names)})" if len(names) < len(_SUBCOMMANDS) else ""
            parser.add_argument(flag, **{**arguments, "help": f"{arguments['help']}{whose}"})

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Set the settings for the crawl; print those that are unknown. Raises UsageError."""
        settings = self.settings
        # The settings of a spider don't matter; the command line does.
        settings.set("LOG_LEVEL", "ERROR", priority=_ABOVE_SPIDER)
        # Warnings of stores are printed: if one fails, that is no error, but nothing is stored.
        handler = logging.StreamHandler()
        handler.addFilter(lambda record: record.levelno == logging.WARNING)
        LimitedLogger(stores.__name__).logger.addHandler(handler)
        if not inside_project():
            # Outside of a project, no file must be created in the current directory.
            settings.set("REP_STORE", "memory://", priority="spider")
        super().process_options(args, opts)
        for name, value in _QUIET.items():
            settings.set(name, value, priority="cmdline")
        for message in unknown_settings(settings):
            print(message, file=sys.stderr)
        settings.setdefault_in_component_priority_dict("ADDONS", Addon, 500)
        if opts.agent is not None:
            settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")
        if args[:1] == [PLAN.name] and opts.purpose:
            settings.set("REP_PURPOSES", opts.purpose, priority="cmdline")
        if opts.fresh:
            settings.set("REP_STORE", "memory://", priority="cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand and set ``exitcode``. Raises UsageError for wrong usage."""
        subcommand = _subcommand_of(args, opts)
        loader, name = self.crawler_process.spider_loader, opts.spider
        try:
            like = Spider if name is None else loader.load(name)
        except KeyError:
            raise usage_error(f"there is no spider {name!a} in this project") from None
        # Without this, a character that standard output can't encode would raise an error.
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            runner = CoroutineRunner(self.crawler_process, like)
            self.exitcode = subcommand.run(args[1:], opts, runner)
            sys.stdout.flush()
        except SettingsError as error:
            raise usage_error(str(error)) from None
        except BrokenPipeError:
            # The process that reads standard output, such as ``head``, has ended. Python writes to
            # standard output again when it ends, which must not raise another error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.exitcode = Exit.UNKNOWN
        except CrawlClosingError:
            print("the crawl ended before there was a result", file=sys.stderr)
            self.exitcode = Exit.UNKNOWN


def _subcommand_of(args: list[str], opts: argparse.Namespace) -> Subcommand:
    for arg in args:
        if arg.startswith("-") and arg != "-":
            raise usage_error(f"unknown option: {arg}")
    name = args[0] if args else ""
    if name not in _SUBCOMMANDS:
        got = f" (got: {name!a})" if args else ""
        raise usage_error(f"a subcommand is required, one of: {', '.join(_SUBCOMMANDS)}{got}")
    for flag in OPTIONS:
        names = _names_with(flag)
        is_given = getattr(opts, flag.strip("-").replace("-", "_")) not in (None, False, [])
        if is_given and name not in names:
            raise usage_error(f"{flag} is an option of {', '.join(names)} only")
    return _SUBCOMMANDS[name]
