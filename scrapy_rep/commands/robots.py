"""The command ``scrapy robots``: its options and subcommands."""

from __future__ import annotations

import argparse
import math
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project

from scrapy_rep.addon import Addon
from scrapy_rep.commands.cache import cache
from scrapy_rep.commands.check import check
from scrapy_rep.commands.evidence import evidence
from scrapy_rep.commands.explain import explain
from scrapy_rep.commands.lint import lint
from scrapy_rep.commands.plan import plan
from scrapy_rep.commands.spider import CoroutineRunner
from scrapy_rep.commands.terminal import EXIT_UNKNOWN
from scrapy_rep.exceptions import CrawlClosingError, SettingsError
from scrapy_rep.protocol.product_tokens import tokens_of_setting
from scrapy_rep.protocol.usage.statement import PURPOSES
from scrapy_rep.settings import Options
from scrapy_rep.stores.registry import make_unguarded_store

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
_SUBCOMMANDS: Final = {
    "check": check,
    "explain": explain,
    "lint": lint,
    "cache": cache,
    "evidence": evidence,
    "plan": plan,
}
_BELONGS_TO: Final = {
    "file": ("--file", "check", "explain"),
    "urls_from": ("--urls-from", "check", "plan"),
    "purpose": ("--purpose", "explain", "plan"),
    "delay": ("--delay", "plan"),
    "other_agent": ("--other-agent", "plan"),
    "sitemaps": ("--sitemaps", "plan"),
    "evidence": ("--in", "evidence"),
}
"""Options that only some subcommands accept: by attribute of ``opts``, the flag and the subcommands
that accept it."""


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError(text)
    return seconds


def _check_tokens(option: str, value: str) -> None:
    """Raise UsageError if ``value``, of the flag ``option``, contains no product token."""
    with suppress(ValueError):
        if tokens_of_setting(value):
            return
    raise UsageError(f"{option} must be a product token or a User-Agent", print_help=False)


_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    # No line of help may end with a colon, as Scrapy would format it as a heading.
    "--agent": {
        "metavar": "TOKEN",
        "help": "product token or User-Agent of the crawler, instead of that of the settings",
    },
    "--file": {
        "metavar": "FILE",
        "help": "read the rules from FILE, or standard input (-), not from the site "
        "(check, explain)",
    },
    "--urls-from": {
        "metavar": "FILE",
        "help": "read URLs from FILE, or standard input (-), one per line; lines that start with "
        "# are comments (check, plan)",
    },
    "--purpose": {
        "metavar": "PURPOSE",
        "action": "append",
        "choices": PURPOSES,
        "default": [],
        "help": f"also show the result for this purpose ({', '.join(PURPOSES)}; explain, plan)",
    },
    "--delay": {
        "metavar": "SECONDS",
        "type": _seconds,
        "help": "also show what changes with this DOWNLOAD_DELAY (plan)",
    },
    "--other-agent": {
        "metavar": "TOKEN",
        "help": "also show what changes for this product token or User-Agent (plan)",
    },
    "--sitemaps": {
        "action": "store_true",
        "help": "also count the URLs in the sitemaps that robots.txt names (plan)",
    },
    "--in": {
        "dest": "evidence",
        "metavar": "PATH",
        "help": "the path that REP_EVIDENCE was set to (evidence)",
    },
    "--fresh": {
        "action": "store_true",
        "help": "fetch robots.txt even if it is stored; the store is not changed",
    },
    "--json": {"action": "store_true", "help": "print JSON"},
}
"""The options of all subcommands, by flag: arguments of argparse's ``add_argument``."""


class Command(ScrapyCommand):
    """``scrapy robots check|explain|lint|cache|evidence|plan``."""

    exitcode: int = 0

    def syntax(self) -> str:
        """Return the subcommands and their arguments, for the usage line."""
        return (
            "[options] check URL... | explain URL | lint FILE|URL | cache ... | evidence URL | "
            "plan URL..."
        )

    def short_desc(self) -> str:
        """Return the description for the list of commands."""
        return "Check URLs against robots.txt, and explain the result"

    def long_desc(self) -> str:
        """Return the descriptions of the subcommands and the exit statuses, for ``--help``."""
        return (
            "check: whether URLs may be fetched. explain: why, and how robots.txt was fetched. "
            "lint: the meaning of each line, and mistakes. cache list, show ORIGIN, refresh "
            "ORIGIN, drop ORIGIN, prune: the contents of the store. evidence: the decisions about "
            "a URL that crawls have written (REP_EVIDENCE). plan: how many URLs may be fetched, "
            "and how long that takes at least. robots.txt is fetched as in a crawl. "
            "Exit status: 0 allowed or nothing found, 1 disallowed, findings or nothing stored, "
            "2 unknown or wrong usage."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of all subcommands to ``parser``."""
        super().add_options(parser)
        for flag, option in _OPTIONS.items():
            parser.add_argument(flag, **option)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Set the settings for the crawl of the command, according to its options.

        Raises UsageError if an option or a setting is not valid.
        """
        settings = self.settings
        if settings is None:
            raise UsageError
        for name, value in _QUIET.items():
            settings.set(name, value, priority="cmdline")
        settings.set("LOG_LEVEL", "ERROR", priority="spider")
        if not inside_project():
            # Outside of a project, no file must be created in the current directory.
            settings.set("REP_STORE", "memory://", priority="spider")
        addons = settings.getdict("ADDONS")
        if not any(load_object(addon) is Addon for addon in addons):
            settings.set("ADDONS", {**addons, "scrapy_rep.Addon": 500}, priority="cmdline")
        if opts.other_agent is not None:
            _check_tokens("--other-agent", opts.other_agent)
        if opts.agent is not None:
            _check_tokens("--agent", opts.agent)
            settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")
        if args[:1] == ["plan"] and opts.purpose:
            settings.set("REP_PURPOSES", opts.purpose, priority="cmdline")
        super().process_options(args, opts)
        if opts.fresh:
            settings.set("REP_STORE", "memory://", priority="cmdline")
        try:
            # Raises the errors of settings that would stop the crawl. The store is not opened.
            options = Options.from_settings(settings)
            make_unguarded_store(options.store_config)
        except SettingsError as error:
            raise UsageError(str(error), print_help=False) from None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand in ``args``, and set the exit status.

        Raises UsageError if there is no subcommand, or if an option or argument is not valid.
        """
        unknown = [arg for arg in args if arg.startswith("-") and arg != "-"]
        if unknown:
            raise UsageError(f"unknown option: {unknown[0]}", print_help=False)
        if not args or args[0] not in _SUBCOMMANDS:
            got = f" (got: {args[0]!a})" if args else ""
            raise UsageError(f"a subcommand is required, one of: {', '.join(_SUBCOMMANDS)}{got}")
        for dest, (option, *takes) in _BELONGS_TO.items():
            if getattr(opts, dest) not in (None, False, []) and args[0] not in takes:
                raise UsageError(
                    f"{option} is an option of {' and '.join(takes)} only", print_help=False
                )
        if args[0] == "cache" and opts.fresh:
            raise UsageError(
                "--fresh is not an option of cache: use cache refresh", print_help=False
            )
        if self.crawler_process is None:
            raise UsageError
        # Without this, a character that standard output can't encode would raise an error.
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            self.exitcode = _SUBCOMMANDS[args[0]](
                args[1:], opts, CoroutineRunner(self.crawler_process)
            )
            sys.stdout.flush()
        except BrokenPipeError:
            # The process that reads standard output, such as ``head``, has ended. Python writes to
            # standard output again when it ends, which must not raise another error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.exitcode = EXIT_UNKNOWN
        except CrawlClosingError:
            print("the crawl ended before there was a result", file=sys.stderr)
            self.exitcode = EXIT_UNKNOWN
