"""``scrapy robots lint``: prints the problems in a robots.txt, and what each line means."""

import argparse
import json
import sys
from typing import Final

from scrapy.crawler import Crawler

from scrapy_rep.commands.arguments import Subcommand, check_url, only_argument, read_file
from scrapy_rep.commands.crawl import CoroutineRunner, robots_of
from scrapy_rep.commands.output import Exit, coloured
from scrapy_rep.protocol.lint import Lint, lint
from scrapy_rep.protocol.outcome import Available, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.utils.text import counted, printable, short, without_credentials

_WIDTH: Final = 56  # of the columns with lines of the file and their meanings


def _lint(args: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    source = only_argument(args, "lint takes one file, or a URL of a site")
    if "://" in source:
        source = without_credentials(source)
        check_url(source)

        async def look_up(crawler: Crawler) -> Record | None:
            robots = robots_of(crawler)
            await robots.robotstxt(source)  # even if an entry of REP_OVERRIDES decides on the URL
            return await robots.record(source)

        record = runner.run(look_up)
        if record is None or isinstance(record.last, Unreachable):
            why = "" if record is None else f": {printable(record.last.evidence.summary)}"
            print(f"{source}: robots.txt is unreachable{why}", file=sys.stderr)
            return Exit.UNKNOWN
        if not isinstance(record.last, Available):
            print(f"{source} has no robots.txt: {record.last.evidence.status}", file=sys.stderr)
            return Exit.OK
        name, body = record.origin.robotstxt_url, record.last.body
    else:
        name, body = read_file(source)
    result = lint(body)
    if opts.json:
        lines, findings = ([each._asdict() for each in part] for part in result)
        print(json.dumps({"source": name, "lines": lines, "findings": findings}))
    else:
        print(_as_text(name, result))
    return Exit.NO if result.findings else Exit.OK


def _as_text(source: str, result: Lint) -> str:
    findings: dict[int | None, list[str]] = {}
    for line, _, text in result.findings:
        findings.setdefault(line, []).append(f"        {coloured('finding', f'! {text}')}")
    lines = [coloured("heading", printable(source)), *findings.get(None, [])]
    width = min(_WIDTH, max((len(printable(r.raw)) for r in result.readings), default=0))
    for line, raw, taken_for in result.readings:
        read = short(printable(taken_for), _WIDTH)
        lines.append(f"{line:6}  {short(printable(raw), width):{width}}  {read}".rstrip())
        lines += findings.get(line, [])
    lines.append(f"{counted(len(result.readings), 'line')}, findings: {len(result.findings)}")
    return "\n".join(lines)


LINT: Final = Subcommand(
    "lint", "FILE|URL", "the meaning of each line, and mistakes", ("--fresh", "--json"), _lint
)
