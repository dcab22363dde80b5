"""``scrapy robots check``: prints the verdicts on URLs, one line for each URL."""

from __future__ import annotations

import argparse
import json
from codecs import BOM_UTF8
from collections.abc import Callable
from time import time
from typing import Final

from scrapy.exceptions import UsageError

from scrapy_rep.commands.arguments import displayed_name, read_file, read_robotstxt
from scrapy_rep.commands.spider import CheckResult, CoroutineRunner, check_urls
from scrapy_rep.commands.terminal import (
    EXIT_NO,
    EXIT_OK,
    EXIT_UNKNOWN,
    Progress,
    coloured,
    describe_age,
    scheme_hint,
)
from scrapy_rep.decision.spellings import Spellings
from scrapy_rep.decision.strictest import verdict_of_rules
from scrapy_rep.decision.usage import describe_decision
from scrapy_rep.protocol.matching.ruleset import RuleSet
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.text import printable, without_credentials

_UNKNOWN_REASONS: Final = {Reason.UNREACHABLE, Reason.ERROR, Reason.CLOSING}
_WORDS: Final = {EXIT_OK: "allowed", EXIT_NO: "disallowed", EXIT_UNKNOWN: "can't tell"}


def check(urls: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    """Print the verdicts on URLs; return the highest exit status among them."""
    if opts.file == opts.urls_from == "-":
        raise UsageError("rules and URLs can't both come from standard input", print_help=False)
    if opts.urls_from:
        lines = read_file(opts.urls_from).removeprefix(BOM_UTF8).splitlines()
        texts = (line.decode("utf-8", "surrogateescape").strip() for line in lines)
        urls = [*urls, *(text for text in texts if text and not text.startswith("#"))]
    if not urls:
        raise UsageError("check requires URLs", print_help=False)
    started = time()

    def show(url: str, result: CheckResult) -> None:
        print(_result_line(url, result, started, as_json=opts.json), flush=True)

    if opts.file:
        tokens, spellings = runner.tokens_and_spellings()
        body = read_robotstxt(opts.file, runner.options.max_size)
        rules = RobotsTxt.parse(body).rules_for(*tokens)
        name = displayed_name(opts.file)
        found = [CheckResult(_verdict_of(rules, url, name, spellings)) for url in urls]
        for url, result in zip(urls, found, strict=True):
            show(url, result)
    else:
        found = _check_urls(urls, runner, show)
    return max(exit_status_of(result.verdict) for result in found)


def _check_urls(
    urls: list[str], runner: CoroutineRunner, show: Callable[[str, CheckResult], None]
) -> list[CheckResult]:
    """Return the results for ``urls``. ``show`` is called with each result when it is known."""
    progress = Progress(len(urls))

    def show_result(url: str, result: CheckResult) -> None:
        progress.clear()
        show(url, result)
        progress.step()

    found: list[CheckResult] = runner.run(lambda crawler: check_urls(crawler, urls, show_result))
    return found


def _verdict_of(rules: RuleSet, url: str, name: str, spellings: Spellings) -> Verdict | ValueError:
    """Return the verdict of ``rules`` on ``url``; the ValueError if ``url`` is not valid.

    ``name`` is the name of the file with the rules.
    """
    try:
        origin_of(url)
    except ValueError as error:
        return error
    return verdict_of_rules(rules, url, spellings)._replace(robotstxt_url=name)


def exit_status_of(verdict: Verdict | ValueError) -> int:
    """Return the exit status for a verdict, or for the error of a URL without a verdict."""
    if isinstance(verdict, ValueError) or verdict.reason in _UNKNOWN_REASONS:
        return EXIT_UNKNOWN
    return EXIT_OK if verdict.allowed else EXIT_NO


def _result_line(url: str, result: CheckResult, started: float, *, as_json: bool) -> str:
    """Return the line to print for a result, as text or JSON.

    ``started`` is when the command began: a robots.txt that was fetched earlier is from the store.
    """
    verdict, fetched_at, usage = result
    shown = printable(without_credentials(url))
    status = exit_status_of(verdict)
    remembered = None if fetched_at is None else fetched_at < started
    if isinstance(verdict, ValueError):
        if as_json:
            return json.dumps({"url": url, "error": str(verdict)})
        word = coloured(_WORDS[status], f"{_WORDS[status]:10}")
        return f"{word}  {shown}  {printable(str(verdict))}{scheme_hint(url)}"
    if as_json:
        return json.dumps({"url": url, **verdict.as_dict(), "from_store": remembered})
    word = coloured(_WORDS[status], f"{_WORDS[status]:10}")
    how = ""
    if fetched_at is not None:
        how = f", fetched {describe_age(time() - fetched_at) if remembered else 'just now'}"
    return f"{word}  {shown}  {printable(describe_decision(verdict, usage))}{how}"
