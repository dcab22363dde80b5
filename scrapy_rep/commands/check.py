"""``scrapy robots check``: prints the verdicts on URLs, one line for each URL."""

import argparse
import json
from collections.abc import Callable
from time import time
from typing import Final, NamedTuple

from scrapy.crawler import Crawler

from scrapy_rep.commands.arguments import (
    Subcommand,
    displayed_name,
    read_robotstxt,
    urls_of,
    usage_error,
)
from scrapy_rep.commands.crawl import CoroutineRunner, robots_of
from scrapy_rep.commands.output import describe_age, describe_tokens, exit_status_of, word_of
from scrapy_rep.decision.usage import describe_decision
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.usage import Judgement
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.concurrency import as_completed
from scrapy_rep.utils.text import printable, without_credentials


class _Result(NamedTuple):
    """What is printed about a URL: a verdict, or the error if the URL has none."""

    verdict: Verdict | ValueError
    tokens: tuple[str, ...] = ()
    fetched_at: float | None = None
    """None if there is no record, or an override decided."""
    judgement: Judgement | None = None


def _check(urls: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    if opts.file == opts.urls_from == "-":
        raise usage_error("rules and URLs can't both come from standard input")
    urls = urls_of("check", urls, opts)
    started = time()

    def show(url: str, result: _Result) -> int:
        print(_result_line(url, result, started, as_json=opts.json), flush=True)
        return exit_status_of(result.verdict)

    if opts.file:
        decide = runner.decider_of_file(read_robotstxt(opts.file), displayed_name(opts.file))

        def by_file(url: str) -> _Result:
            try:
                verdict, decision = decide(url)
                return _Result(verdict, decision.tokens)
            except ValueError as error:
                return _Result(error)

        return max([show(url, by_file(url)) for url in urls])
    return max(runner.run(lambda crawler: _check_urls(crawler, urls, show)))


async def _check_urls(
    crawler: Crawler, urls: list[str], show: Callable[[str, _Result], int]
) -> list[int]:
    """Return the exit statuses for ``urls``; call ``show`` as soon as a result is known."""
    robots = robots_of(crawler)

    async def check(url: str) -> int:
        return show(url, await find(url))

    async def find(url: str) -> _Result:
        try:
            origin_of(url)  # raises an error with a better message than that of Request
            verdict, decision = await robots.decide(url)
        except ValueError as error:
            return _Result(error)
        except CrawlClosingError:
            return _Result(Verdict(allowed=False, reason=Reason.CLOSING))
        record = None if verdict.reason is Reason.OVERRIDE else await robots.record(url)
        fetched_at = None if record is None else record.last.evidence.at
        return _Result(verdict, decision.tokens, fetched_at, decision.judgement)

    return [status async for status in as_completed(map(check, urls))]


def _result_line(url: str, result: _Result, started: float, *, as_json: bool) -> str:
    verdict, tokens, fetched_at, judgement = result
    line = f"{word_of(exit_status_of(verdict), 10)}  {printable(without_credentials(url))}"
    if isinstance(verdict, ValueError):
        if as_json:
            return json.dumps({"url": url, "error": str(verdict)})
        return f"{line}  {printable(str(verdict))}"
    is_from_store = None if fetched_at is None else fetched_at < started
    if as_json:
        more = {"tokens": tokens, "from_store": is_from_store}
        return json.dumps({"url": url, **verdict.as_dict(), **more})
    how = "" if verdict.reason is Reason.CLOSING else f", as {describe_tokens(tokens)}"
    if fetched_at is not None:
        when = describe_age(time() - fetched_at) if is_from_store else "just now"
        how += f", {'fetched' if verdict.outage is None else 'tried'} {when}"
    return f"{line}  {printable(describe_decision(verdict, judgement))}{how}"


CHECK: Final = Subcommand(
    "check",
    "URL...",
    "whether URLs may be fetched",
    ("--agent", "--spider", "--urls-from", "--file", "--fresh", "--json"),
    _check,
)
