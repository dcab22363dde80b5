"""``scrapy robots check``: prints the verdicts on URLs, one line for each URL."""

import argparse
import json
from collections.abc import Callable
from functools import partial
from time import time
from typing import Any, Final

from scrapy.crawler import Crawler

from scrapy_rep.commands.arguments import Subcommand, read_robotstxt, urls_of, usage_error
from scrapy_rep.commands.crawl import CoroutineRunner, robots_of
from scrapy_rep.commands.output import Exit, describe_age, describe_tokens, exit_status_of, word_of
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.usage import describe_decision
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.concurrency import as_completed
from scrapy_rep.utils.text import printable, without_credentials


def _check(urls: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    if opts.file == opts.urls_from == "-":
        raise usage_error("rules and URLs can't both come from standard input")
    urls = urls_of("check", urls, opts)
    show = partial(_show, started=time(), as_json=opts.json)
    if not opts.file:
        return max(runner.run(partial(_check_urls, urls, show)))
    decide = runner.decider_of_file(*read_robotstxt(opts.file))

    def by_file(url: str) -> int:
        try:
            return show(url, *decide(url))
        except ValueError as error:
            return show(url, error)

    return max([by_file(url) for url in urls])


async def _check_urls(urls: list[str], show: Callable[..., int], crawler: Crawler) -> list[int]:
    """Return the exit statuses for ``urls``; call ``show`` as soon as a result is known."""
    robots = robots_of(crawler)

    async def check(url: str) -> int:
        try:
            origin_of(url)  # raises an error with a better message than that of Request
            verdict, decision = await robots.decide(url)
        except ValueError as error:
            return show(url, error)
        record = None if verdict.reason is Reason.OVERRIDE else await robots.record(url)
        return show(url, verdict, decision, record)

    return [status async for status in as_completed(map(check, urls))]


def _show(
    url: str,
    verdict: Verdict | ValueError,
    decision: Decision | None = None,
    record: Record | None = None,
    *,
    started: float,
    as_json: bool,
) -> Exit:
    """Print the result for ``url``, which has an error or a decision; return the exit status."""
    status = exit_status_of(verdict)
    line = f"{word_of(status, 10)}  {printable(without_credentials(url))}"
    if isinstance(verdict, ValueError) or decision is None:
        text = f"{line}  {printable(str(verdict))}"
        values: dict[str, Any] = {"url": url, "error": str(verdict)}
    else:
        fetched_at = None if record is None else record.last.evidence.at
        is_from_store = None if fetched_at is None else fetched_at < started
        more = {"tokens": decision.tokens, "from_store": is_from_store}
        values = {"url": url, **verdict.as_dict(), **more}
        why = printable(describe_decision(verdict, decision.judgement))
        text = f"{line}  {why}, as {describe_tokens(decision.tokens)}"
        if fetched_at is not None:
            when = describe_age(time() - fetched_at) if is_from_store else "just now"
            text += f", {'fetched' if verdict.outage is None else 'tried'} {when}"
    print(json.dumps(values) if as_json else text, flush=True)
    return status


CHECK: Final = Subcommand(
    "check",
    "URL...",
    "whether URLs may be fetched",
    ("--agent", "--spider", "--urls-from", "--file", "--fresh", "--json"),
    _check,
)
