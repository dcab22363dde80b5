"""The command ``scrapy robots``: its options and subcommands."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project

from scrapy_rep.addon import Addon
from scrapy_rep.commands import lint as lint_text
from scrapy_rep.commands import record_text
from scrapy_rep.commands.cache import cache
from scrapy_rep.commands.check import line, status_of, verdict_of
from scrapy_rep.commands.evidence import evidence
from scrapy_rep.commands.explain import Got, as_json, as_text
from scrapy_rep.commands.spider import Answer, AskingSpider, answers_on, ask
from scrapy_rep.commands.terminal import FINE, FOUND, UNKNOWN, Progress, with_scheme
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.product_tokens import ProductTokens
from scrapy_rep.decision.spellings import Spellings
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.outcome import Available, Unreachable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import tokens_of_setting
from scrapy_rep.protocol.usage.statement import PURPOSES
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.stores.registry import make_bare_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.record import Record


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
}
"""What a crawl that asks has otherwise than the project's crawls."""
_BELONGS_TO: Final = {
    "file": ("--file", "check", "explain"),
    "urls_from": ("--urls-from", "check"),
    "purpose": ("--purpose", "explain"),
    "evidence": ("--in", "evidence"),
}
"""Options, and the subcommands that take them."""


class Command(ScrapyCommand):
    """``scrapy robots check|explain|lint|cache|evidence``."""

    def syntax(self) -> str:
        """Return the line behind ``scrapy robots``."""
        return "[options] check URL... | explain URL | lint FILE|URL | cache ... | evidence URL"

    def short_desc(self) -> str:
        """Return what it is for."""
        return "Check URLs against robots.txt, and explain the result"

    def long_desc(self) -> str:
        """Return what its subcommands do."""
        return (
            "check: whether URLs may be fetched. explain: why, and how robots.txt was got. "
            "lint: what every line was taken for, and what is odd about it. cache list, show "
            "ORIGIN, refresh ORIGIN, drop ORIGIN, prune: what the store holds. evidence: what "
            "crawls have written of a URL (REP_EVIDENCE). Robots.txt is fetched as a crawl fetches "
            "it. Exit status: 0 allowed or nothing found, 1 disallowed, findings or nothing held, "
            "2 can't tell or wrong usage."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add those of ours."""
        super().add_options(parser)
        parser.add_argument(
            "--agent",
            metavar="TOKEN",
            help="product token or User-Agent of the crawler (default: from the settings)",
        )
        parser.add_argument(
            "--file",
            metavar="FILE",
            help="check, explain: read the rules from FILE, not from the site (-: standard input)",
        )
        parser.add_argument(
            "--urls-from",
            metavar="FILE",
            help="check: read URLs from FILE, one per line; lines that start with # are comments "
            "(-: standard input)",
        )
        parser.add_argument(
            "--purpose",
            metavar="PURPOSE",
            action="append",
            choices=PURPOSES,
            default=[],
            help=f"explain: also show the result for this purpose ({', '.join(PURPOSES)})",
        )
        parser.add_argument(
            "--in",
            dest="evidence",
            metavar="PATH",
            help="evidence: the path that REP_EVIDENCE was set to",
        )
        parser.add_argument(
            "--fresh",
            action="store_true",
            help="fetch robots.txt even if it is stored; the store is not changed",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Make settings for a crawl that asks."""
        settings = self.settings
        if settings is None:
            raise UsageError
        for name, value in _QUIET.items():
            settings.set(name, value, priority="cmdline")
        settings.set("LOG_LEVEL", "ERROR", priority="spider")
        if not inside_project():
            # No file is left behind in whatever directory this is.
            settings.set("REP_STORE", "memory://", priority="spider")
        addons = settings.getdict("ADDONS")
        if not any(load_object(addon) is Addon for addon in addons):
            settings.set("ADDONS", {**addons, "scrapy_rep.Addon": 500}, priority="cmdline")
        if opts.agent is not None:
            try:
                tokens = tokens_of_setting(opts.agent)
            except ValueError:
                tokens = ()
            if not tokens:
                raise UsageError(
                    "--agent must be a product token or a User-Agent", print_help=False
                )
            settings.set("ROBOTSTXT_USER_AGENT", opts.agent, priority="cmdline")
        super().process_options(args, opts)
        if opts.fresh:
            settings.set("REP_STORE", "memory://", priority="cmdline")
        try:
            # What would break the crawl is told of here. No store is opened by that.
            options = Options.from_settings(settings)
            make_bare_store(options.store_config)
            Overrides(options.overrides, time)
        except (SettingsError, OSError) as error:
            raise UsageError(str(error), print_help=False) from None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run a subcommand, and set the exit status."""
        subcommands: dict[str, Callable[[list[str], argparse.Namespace], int]] = {
            "check": self._check,
            "explain": self._explain,
            "lint": self._lint,
            "cache": self._cache,
            "evidence": self._evidence,
        }
        unknown = [arg for arg in args if arg.startswith("-") and arg != "-"]
        if unknown:
            raise UsageError(f"unknown option: {unknown[0]}", print_help=False)
        if not args or args[0] not in subcommands:
            raise UsageError(f"a subcommand is required, one of: {', '.join(subcommands)}")
        for dest, (option, *takes) in _BELONGS_TO.items():
            if getattr(opts, dest) and args[0] not in takes:
                raise UsageError(
                    f"{option} is an option of {' and '.join(takes)} only", print_help=False
                )
        if args[0] == "cache" and opts.fresh:
            raise UsageError(
                "--fresh is not an option of cache: use cache refresh", print_help=False
            )
        try:
            self.exitcode = subcommands[args[0]](args[1:], opts)
            sys.stdout.flush()
        except BrokenPipeError:
            # Who reads has had enough, as head has; at its end Python would write once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.exitcode = UNKNOWN

    def _check(self, urls: list[str], opts: argparse.Namespace) -> int:
        if opts.file == opts.urls_from == "-":
            raise UsageError("rules and URLs can't both come from standard input", print_help=False)
        if opts.urls_from:
            lines = _read(opts.urls_from).removeprefix(BOM_UTF8).splitlines()
            texts = (line.decode("utf-8", "surrogateescape").strip() for line in lines)
            urls = [*urls, *(text for text in texts if text and not text.startswith("#"))]
        if not urls:
            raise UsageError("check requires URLs", print_help=False)
        found: list[Answer]
        started = time()

        def show(url: str, answer: Answer) -> None:
            print(line(url, answer, started, as_json=opts.json), flush=True)

        if opts.file:
            tokens, spellings = self._names()
            rules = RobotsTxt.parse(_read(opts.file)).rules_for(*tokens)
            name = _name(opts.file)
            found = [Answer(verdict_of(rules, url, name, spellings)) for url in urls]
            for url, answer in zip(urls, found, strict=True):
                show(url, answer)
        else:
            found = self._asked_about(urls, show)
        if not found:
            return UNKNOWN
        return max(status_of(answer.verdict) for answer in found)

    def _asked_about(self, urls: list[str], show: Callable[[str, Answer], None]) -> list[Answer]:
        """Return the answers on ``urls``, each shown as it comes."""
        progress = Progress(len(urls))

        def answered(url: str, answer: Answer) -> None:
            progress.clear()
            show(url, answer)
            progress.step()

        return self._ask(lambda crawler: answers_on(crawler, urls, answered)) or []

    def _explain(self, args: list[str], opts: argparse.Namespace) -> int:
        (url,) = _one(args, "explain takes one URL")
        try:
            origin_of(url)
        except ValueError as error:
            raise UsageError(f"{url}: {error}{with_scheme(url)}", print_help=False) from None
        started = time()

        async def question(crawler: Crawler) -> Got:
            robots = Robots.of(crawler)
            verdict, decision = await robots.decide(url)
            usage = await robots.usage(url)
            return Got(url, verdict, decision, await robots.record(url), usage, started)

        got = self._explained(url, opts.file) if opts.file else self._ask(question)
        if got is None:
            return UNKNOWN
        if self.settings is not None:
            options = Options.from_settings(self.settings)
            show = as_json if opts.json else as_text
            print(show(got, options, opts.purpose))
        return status_of(got.verdict)

    def _explained(self, url: str, path: str) -> Got:
        """Return what a file says of ``url``, in place of its site."""
        tokens, spellings = self._names()
        body = _read(path)
        verdict = verdict_of(RobotsTxt.parse(body).rules_for(*tokens), url, _name(path), spellings)
        if isinstance(verdict, ValueError):
            raise UsageError(f"{url}: {verdict}", print_help=False)
        decision = Decision(origin_of(url), target_of(url), tokens, verdict)
        usage = RobotsTxt.parse(body).usage(url, *tokens)
        return Got(url, verdict, decision, None, usage, time(), body)

    def _lint(self, args: list[str], opts: argparse.Namespace) -> int:
        (source,) = _one(args, "lint takes one file, or a URL of a site")
        body: bytes | None
        if "://" in source:
            record = self._ask(lambda crawler: _record(Robots.of(crawler), source))
            if isinstance(record, ValueError):
                raise UsageError(f"{source}: {record}", print_help=False)
            if record is None or isinstance(record.last, Unreachable):
                why = "" if record is None else f": {record_text.what(record.last.evidence)}"
                print(f"{source}: robots.txt is unreachable{why}", file=sys.stderr)
                return UNKNOWN
            if not isinstance(record.last, Available):
                print(f"{source} has no robots.txt: {record.last.evidence.status}", file=sys.stderr)
                return FINE
            source, body = f"{record.origin}/robots.txt", record.last.body
        else:
            body, source = _read(source), _name(source)
        result = lint(body)
        print(lint_text.as_json(source, result) if opts.json else lint_text.as_text(source, result))
        return FOUND if result.findings else FINE

    def _cache(self, args: list[str], opts: argparse.Namespace) -> int:
        if self.settings is None:
            raise UsageError
        return cache(args, opts, Options.from_settings(self.settings), self._ask)

    @staticmethod
    def _evidence(args: list[str], opts: argparse.Namespace) -> int:
        (url,) = _one(args, "evidence takes one URL")
        if not opts.evidence:
            raise UsageError("evidence requires --in PATH", print_help=False)
        return evidence(url, Path(opts.evidence), as_json=opts.json)

    def _ask(self, question: Callable[[Crawler], Awaitable[Any]]) -> Any:
        if self.crawler_process is None:
            raise UsageError
        return ask(self.crawler_process, question)

    def _names(self) -> tuple[tuple[str, ...], Spellings]:
        """Return the names of the crawler, and what its URLs may be sent as."""
        if self.crawler_process is None or self.settings is None:
            raise UsageError
        crawler = self.crawler_process.create_crawler(AskingSpider)
        tokens = ProductTokens(crawler, Options.from_settings(self.settings)).of_crawl()
        return tokens, Spellings(self.settings)


def _one(args: list[str], usage: str) -> list[str]:
    if len(args) != 1:
        raise UsageError(usage, print_help=False)
    return args


def _read(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        hint = with_scheme(path) if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"{path}: {error.strerror}{hint}", print_help=False) from None


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


async def _record(robots: Robots, url: str) -> Record | ValueError | None:
    try:
        # Whatever an override says of the URL: it is the file that is looked at.
        await robots.robotstxt(url)
    except ValueError as error:
        return error
    return await robots.record(url)
