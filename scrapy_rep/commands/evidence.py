"""``scrapy robots evidence``: prints the decisions on a URL from the evidence of crawls.

For each decision it prints the line of robots.txt that decided.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from scrapy import Request

from scrapy_rep.commands.arguments import (
    JSON,
    Option,
    Subcommand,
    check_url,
    only_argument,
    usage_error,
)
from scrapy_rep.commands.output import EXIT_NO, EXIT_OK, EXIT_UNKNOWN, coloured
from scrapy_rep.commands.spider import CoroutineRunner
from scrapy_rep.extensions.evidence.formats import find_lines
from scrapy_rep.extensions.evidence.parts import DAMAGE, Found
from scrapy_rep.utils.text import counted, describe_duration, printable, without_credentials

_SOURCES = {
    "cache": "from the HTTP cache, nothing was sent",
    "component": "from another component, nothing was sent",
    "handler": "the response had this URL in place of that of the request",
}


def _evidence(args: list[str], opts: argparse.Namespace, _: CoroutineRunner) -> int:
    """Print the decisions; return EXIT_NO if the last disallows, or if there are none.

    Return EXIT_UNKNOWN if a file is damaged or can't be read, else EXIT_OK.
    """
    url = only_argument(args, "evidence takes one URL")
    if not opts.evidence:
        raise usage_error("evidence requires --in PATH")
    path = Path(opts.evidence)
    check_url(url)
    url = Request(without_credentials(url)).url
    try:
        found, damaged = find_lines(path, url)
    except (ImportError, OSError) as error:
        needed = "WARC takes warcio: pip install scrapy-rep[warc]"
        why = error.strerror if isinstance(error, OSError) else needed
        print(f"{path}: {why}", file=sys.stderr)
        return EXIT_UNKNOWN
    if not found and not damaged:
        print(f"{path}: nothing was written of {printable(url)}", file=sys.stderr)
        return EXIT_NO
    for each in found:
        try:
            lines = _as_text(each)
            if opts.json:
                lines = [json.dumps({**each.values, "text": _deciding_line(each)})]
            print("\n".join(lines))
        except DAMAGE:  # noqa: PERF203 - there are few lines
            damaged.add(each.part)
    for part in sorted(damaged):
        print(f"{part}: damaged, and read only in part", file=sys.stderr)
    if damaged:
        return EXIT_UNKNOWN
    decisions = [each.values.get("decision") for each in found if each.values["kind"] != "usage"]
    return EXIT_NO if decisions[-1:] == ["disallowed"] else EXIT_OK


def _as_text(found: Found) -> list[str]:
    """Return the lines to print for a line of evidence. Raises one of DAMAGE if that is damaged."""
    values = found.values
    url = printable(values["url"])
    if values["kind"] == "usage":
        return [
            f"after the response: {url}",
            f"  {values['time']}, use: {_printable_json(values['usage'])}",
        ]
    decision = values["decision"]
    lines = [f"{coloured(decision or 'unavailable', decision or 'not judged')}: {url}"]
    lines += [f"  redirected from {printable(hop)}" for hop in values["hops"]]
    lines.append(
        f"  {values['decided']} {printable(values['method'])}, {_describe_sending(values)}"
    )
    if values["tokens"] is not None:
        lines.append(f"  product tokens: {', '.join(map(printable, values['tokens'])) or 'none'}")
    lines.append(f"  {_describe_reason(values)}")
    if values["override"] is not None:
        lines.append(f"  override: {_printable_json(values['override'])}")
    if values["usage"] is not None:
        lines.append(f"  use: {_printable_json(values['usage'])}")
    if values["robotstxt"] is not None:
        lines += _robotstxt_lines(found)
    lines.append(f"  scrapy-rep {values['version']}, settings {values['settings']}")
    return lines


def _describe_sending(values: dict[str, Any]) -> str:
    """Return whether the request was sent, as what, and how it was answered."""
    if values["kind"] == "drop":
        followed = values["source"] == "handler"
        return f"response dropped, {_SOURCES['handler']}" if followed else "not sent"
    parts = []
    if values["user_agent"] is not None:
        parts.append(f"sent as {printable(values['user_agent'])}")
    if values["source"] in _SOURCES:
        parts.append(_SOURCES[values["source"]])
    if values["status"] is not None:
        parts.append(f"status {values['status']}")
    if values["kind"] == "failed":
        parts.append("no response")
    if values["dry_run"]:
        parts.append("in a dry run")
    return ", ".join(parts) or "sent"


def _describe_reason(values: dict[str, Any]) -> str:
    """Return the rule that decided, else the reason; why nothing was decided if there is none."""
    if values["reason"] is None:
        exemption = values["exemption"]
        return "nothing was decided" if exemption is None else f"exempt: {exemption}"
    if values["rule"] is None:
        return str(values["reason"])
    return f"{printable(values['rule'])} (line {values['line']})"


def _robotstxt_lines(found: Found) -> list[str]:
    """Return lines about ``found.values["robotstxt"]``, the last with its rule, if it is known."""
    file, age = found.values["robotstxt"], found.values["age"]
    seen = file["error"] or (file["status"] and f"status {file['status']}")
    how = f" ({printable(seen)})" if seen else ""
    lines = [f"  {printable(file['url'])}: {file['outcome']}{how}"]
    lines += [f"    redirected to {printable(hop)}" for hop in file["hops"]]
    before = "" if age is None else f", {describe_duration(age)} before"
    size = counted(file["size"], "byte")
    lines.append(f"    fetched at {file['fetched'] or file['asked']}{before}, {size}")
    if file["sha256"] is None:
        return lines
    lines.append(f"    sha256 {file['sha256']}")
    if found.text is None:
        lines.append("    the text is not there, or is another one")
    elif (text := _deciding_line(found)) is not None:
        lines.append(f"    {found.values['line']}: {printable(text)}")
    return lines


def _deciding_line(found: Found) -> str | None:
    """Return the line of robots.txt that decided; None if there is none, or the text is missing."""
    number = found.values.get("line")
    if found.text is None or number is None:
        return None
    lines = found.text.splitlines()
    return lines[number - 1].decode("utf-8", "backslashreplace") if number <= len(lines) else None


def _printable_json(value: Any) -> str:
    return printable(json.dumps(value))


EVIDENCE: Final = Subcommand(
    "evidence",
    "URL",
    "the decisions about a URL that crawls have written (REP_EVIDENCE)",
    (
        Option(
            "--in",
            dest="evidence",
            metavar="PATH",
            help="the path that REP_EVIDENCE was set to",
        ),
        JSON,
    ),
    _evidence,
)
