"""``scrapy robots explain``: prints why a URL is allowed or disallowed."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from time import time
from typing import Final

from scrapy.crawler import Crawler

from scrapy_rep.admission.hold import IN_PAUSE
from scrapy_rep.commands.arguments import Subcommand, check_url, only_argument, read_robotstxt
from scrapy_rep.commands.crawl import CoroutineRunner, robots_of
from scrapy_rep.commands.output import RecordView, describe_tokens, exit_status_of, section, word_of
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.usage import describe_decision
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.parser import ANYONE, Explanation, RobotsTxt
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.usage import LICENSE, Usage
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.settings import Options
from scrapy_rep.stores.uri import display_name
from scrapy_rep.utils.text import counted, printable, utc_time_text, without_credentials


@dataclass(frozen=True)
class _Explained:
    """The verdict on a URL, and everything from which the explanation is made."""

    url: str
    verdict: Verdict
    decision: Decision
    record: Record | None
    usage: Usage
    rules: RobotsTxt | None
    back_off: float | None = None
    is_from_store: bool = False


def _explain(args: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    url = without_credentials(only_argument(args, "explain takes one URL"))
    check_url(url)
    started = time()

    async def in_crawl(crawler: Crawler) -> _Explained:
        robots = robots_of(crawler)
        verdict, decision = await robots.decide(url)
        usage = await robots.usage(url)
        record, back_off = await robots.record(url), await robots.back_off(url)
        rules, override = None, decision.override
        if override is not None and override.path is not None:
            rules = RobotsTxt.parse(override.body)
        elif override is None or override.tokens:
            rules = await robots.robotstxt(url)
        stored = record is not None and record.last.evidence.at < started
        return _Explained(url, verdict, decision, record, usage, rules, back_off, stored)

    if opts.file:
        name, body = read_robotstxt(opts.file)
        verdict, decision = runner.decider_of_file(name, body)(url)
        rules = RobotsTxt.parse(body)
        usage = rules.usage(url, *decision.tokens)
        got = _Explained(url, verdict, decision, None, usage, rules)
    else:
        got = runner.run(in_crawl)
    show = _as_json if opts.json else _as_text
    print(show(got, runner.options, opts.purpose))
    return exit_status_of(got.verdict)


def _as_json(got: _Explained, options: Options, purposes: Sequence[str]) -> str:
    decision, rules = got.decision, got.rules
    explanation = rules.explain(decision.target, *decision.tokens) if rules else None
    group = robotstxt = None
    if explanation is not None and explanation.group is not None:
        numbers = [agent.line for agent in explanation.group.agents]
        group = {"token": explanation.token, "lines": numbers}
    if got.record is not None:
        robotstxt = {**RecordView(got.record, options).as_dict(), "from_store": got.is_from_store}
    result = {
        "url": got.url,
        **got.verdict.as_dict(),
        "tokens": decision.tokens,
        "override": decision.override and decision.override.as_dict(),
        "back_off_until": got.back_off,
        "target": decision.target,
        "group": group,
        "matching": [
            {"rule": str(rule), "length": len(rule.pattern), "line": rule.line}
            for rule in (explanation.matching if explanation else ())
        ],
        "usage": {
            "statements": [{**s._asdict(), "revision": s.revision} for s in got.usage.statements],
            "results": {purpose: got.usage.result(purpose) for purpose in purposes},
        },
        "robotstxt": robotstxt,
    }
    return json.dumps(result)


def _as_text(got: _Explained, options: Options, purposes: Sequence[str]) -> str:
    lines = [
        f"{word_of(exit_status_of(got.verdict))}: {printable(got.url)}",
        f"  {printable(describe_decision(got.verdict, got.decision.judgement))}",
    ]
    override = got.decision.override
    if got.back_off is not None:
        until = utc_time_text(got.back_off)
        lines += section("Back-off", [f"{IN_PAUSE.text}: no requests until {until}"])
    if override is not None:
        end = "does not expire"
        if override.until is not None:
            end = f"valid until {utc_time_text(override.until)}"
        lines += section("Override", [printable(str(override)), end])
    if got.record is not None:
        where = display_name(options.store)
        source = f"from {where}" if got.is_from_store else "not from the store"
        lines += section("robots.txt", RecordView(got.record, options).details(source))
    lines += section("Product tokens", [describe_tokens(got.decision.tokens)])
    if got.rules is not None:
        explanation = got.rules.explain(got.decision.target, *got.decision.tokens)
        fields = got.rules.fields_for(*explanation.tokens, names=DELAY_FIELDS)
        delays = [f"line {each.line}: {printable(f'{each.name}: {each.value}')}" for each in fields]
        lines += section("Group", _group_lines(explanation) + delays)
        title = f"Rules that match {printable(explanation.target)}, the longest first"
        lines += section(title, _matching_lines(explanation))
    if got.usage.statements or purposes:
        lines += section("Usage preferences", _usage_lines(got.usage, purposes))
    return "\n".join(lines)


def _usage_lines(usage: Usage, purposes: Sequence[str]) -> list[str]:
    lines = []
    for statement in usage.statements:
        where = f"line {statement.line}" if statement.line else statement.place
        value = f"{statement.label}: {statement.value}" if statement.label else "not valid"
        if statement.source == LICENSE:
            value = "recorded, not evaluated"
        lines.append(f"{where:8} {statement.source}: {printable(statement.raw)} -> {value}")
    read = dict.fromkeys((s.source, s.revision) for s in usage.statements)
    lines += [f"{source} is read by {revision}" for source, revision in read]
    return lines + [f"for {purpose}: {usage.result(purpose)}" for purpose in purposes]


def _group_lines(explanation: Explanation) -> list[str]:
    if explanation.group is None:
        return ["none: there is no group for these tokens, and none for '*'"]
    agents = explanation.group.agents
    numbers = ", ".join(str(agent.line) for agent in agents)
    names = "'*'" if explanation.token == ANYONE else explanation.token
    where = f"User-agent in line{'s' if len(agents) > 1 else ''} {numbers}"
    lines = [f"{names}, {where}, {counted(len(explanation.group.rules), 'rule')}"]
    if others := list(takewhile(lambda token: token != explanation.token, explanation.tokens)):
        lines.append(f"no group: {', '.join(map(printable, others))}")
    return lines


def _matching_lines(explanation: Explanation) -> list[str]:
    if explanation.target == ROBOTSTXT:
        return ["none: robots.txt itself is always allowed"]
    if not explanation.matching:
        return ["none: allowed"]
    return [
        f"{'->' if number == 0 else '  '} line {rule.line:<5} length {len(rule.pattern):<4} "
        f"{printable(str(rule))}"
        for number, rule in enumerate(explanation.matching)
    ]


EXPLAIN: Final = Subcommand(
    "explain",
    "URL",
    "why, and how robots.txt was fetched",
    ("--agent", "--spider", "--file", "--purpose", "--fresh", "--json"),
    _explain,
)
