"""What ``scrapy robots lint`` prints: each line, and what it was taken for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from scrapy_rep.commands.terminal import coloured, counted
from scrapy_rep.utils.text import printable, short

if TYPE_CHECKING:
    from scrapy_rep.protocol.lint import Lint

_WIDTH: Final = 56
"""Characters of a line of robots.txt that are shown beside what it was taken for."""


def as_json(source: str, result: Lint) -> str:
    """Return it for programs."""
    return json.dumps(
        {
            "source": source,
            "lines": [reading._asdict() for reading in result.readings],
            "findings": [finding._asdict() for finding in result.findings],
        }
    )


def as_text(source: str, result: Lint) -> str:
    """Return it for people, the findings below their lines."""
    findings: dict[int | None, list[str]] = {}
    for finding in result.findings:
        findings.setdefault(finding.line, []).append(printable(finding.text))
    lines = [coloured("heading", printable(source))]
    lines += [f"        {coloured('finding', f'! {text}')}" for text in findings.get(None, [])]
    width = min(_WIDTH, max((len(printable(r.raw)) for r in result.readings), default=0))
    for reading in result.readings:
        raw = short(printable(reading.raw), width)
        taken_for = short(printable(reading.taken_for), _WIDTH)
        lines.append(f"{reading.line:6}  {raw:{width}}  {taken_for}".rstrip())
        lines += [
            f"        {coloured('finding', f'! {text}')}" for text in findings.get(reading.line, [])
        ]
    lines.append(f"{counted(len(result.readings), 'line')}, findings: {len(result.findings)}")
    return "\n".join(lines)
