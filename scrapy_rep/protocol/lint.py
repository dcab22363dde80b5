"""The linter, for authors of a robots.txt: finds how each line is read, and its problems."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in
from scrapy_rep.protocol.html_pages import is_html
from scrapy_rep.protocol.lexer import (
    BYTE_ORDER_MARK,
    FIELDS_OF_FILES,
    FIELDS_OF_GROUPS,
    Line,
    LineKind,
    Oddity,
    as_text,
    lex,
    normalise_lines,
    split_lines,
    whole_lines,
)
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.parser import Field, RobotsTxt, names_in_agent
from scrapy_rep.protocol.verdict import Rule


class Finding(NamedTuple):
    """A problem in a file."""

    line: int | None
    """None if the problem is about the whole file."""
    code: str
    """The kind of problem, one of CODES."""
    text: str


class Reading(NamedTuple):
    """A line, and how it is read, in words. Bytes that are not UTF-8 are escaped."""

    line: int
    raw: str
    taken_for: str


class Lint(NamedTuple):
    """How each line of a file is read; and its problems, those of the whole file first."""

    readings: list[Reading]
    findings: list[Finding]


CODES: Final = {
    "byte-order-mark": "the file begins with a byte order mark, whole or a part of it",
    "html": "the file is an HTML page",
    "too-large": "the file is larger than 512,000 bytes: the rest is ignored",
    "no-group": "rules, but no User-agent line: they apply to no crawler",
    "misspelt": "a typing error in the field, which is accepted all the same",
    "no-colon": "two words without a colon, which are accepted all the same",
    "nul": "a NUL byte ends the line",
    "cut": "a line of more than 16,663 bytes: the rest is ignored",
    "skipped": "no field name: the line is skipped",
    "not-utf-8": "bytes that are not UTF-8",
    "several-fields": "a line has one field: the next one is read as a part of its value",
    "several-paths": "a rule has one path: all of this text is read as one",
    "unknown-field": "a field that is not in RFC 9309, and that few crawlers read, or none",
    "delay-not-taken": "not a valid delay: a number above 0, at most one day",
    "no-name": "a User-agent line without a product token",
    "beyond-the-name": "the text after the product token is ignored",
    "without-group": "before any User-agent line it applies to no crawler",
    "no-path": "a path begins with '/' or '*': the rule never matches",
    "dollar-inside": "a '$' that isn't at the end is a plain character",
    "never-wins": "another rule of the group always takes precedence",
    "relative-url": "not a full URL",
}
"""The kinds of findings, with their messages."""

_FIELD: Final = rb"(?i:.*\s(?:user-agent|allow|disallow|sitemap|crawl-delay)\s*:)"
_RULES: Final = {LineKind.ALLOW, LineKind.DISALLOW}
# What the value of a line begins with if it has a problem: of lines of these kinds.
_VALUES: Final = (
    ("several-fields", {*_RULES, LineKind.USER_AGENT}, _FIELD),
    ("several-paths", _RULES, rb"(?!%s)[/*].*\s[/*]" % _FIELD),
    ("no-path", _RULES, rb"[^/*]"),
    ("dollar-inside", _RULES, rb"[/*].*\$."),
    ("no-name", {LineKind.USER_AGENT}, rb"(?![A-Za-z_-]|\*(?!\S))"),
    ("beyond-the-name", {LineKind.USER_AGENT}, rb"[A-Za-z_-]+[^A-Za-z_-]"),
    ("relative-url", {LineKind.SITEMAP}, rb"(?![A-Za-z][A-Za-z0-9+.-]*://[^/])"),
)


def lint(body: bytes) -> Lint:
    """Return how each line of ``body``, which may be any bytes, is read, and its problems."""
    of_file = ["byte-order-mark"] if BYTE_ORDER_MARK(body) else []
    if is_html(normalise_lines(body)):
        of_file.append("html")
    if len(body) > MAX_BODY_BYTES:
        of_file.append("too-large")
        body = whole_lines(body, MAX_BODY_BYTES)
    result = Lint([], [])
    kinds: set[LineKind] = set()
    for line, raw in zip(lex(body), split_lines(body), strict=True):
        kinds.add(line.kind)
        taken_for, *codes = _read(line, LineKind.USER_AGENT in kinds)
        result.readings.append(Reading(line.number, as_text(raw), taken_for))
        result.findings.extend(Finding(line.number, code, CODES[code]) for code in codes)
    if kinds & _RULES and LineKind.USER_AGENT not in kinds:
        of_file.append("no-group")
    result.findings.extend(Finding(None, code, CODES[code]) for code in of_file)
    for group in RobotsTxt.parse(body).groups:
        result.findings.extend(_never_winning(group.rules))
    result.findings.sort(key=lambda finding: finding.line or 0)
    return result


def _read(line: Line, has_group: bool) -> Iterator[str]:
    """Yield how a line is read, in words, then the codes of its problems."""
    # The lexer reads any two words as a field without a colon. An unknown one is just text.
    if line.kind is LineKind.OTHER and Oddity.NO_COLON in line.oddity:
        line = line._replace(kind=LineKind.INVALID, oddity=Oddity.NONE)
    name, value = as_text(line.field.lower()), as_text(line.value)
    yield from _meaning(line, name, value, has_group)
    for oddity in (Oddity.MISSPELT, Oddity.NO_COLON, Oddity.NUL, Oddity.CUT):
        if oddity in line.oddity:
            yield str(oddity.name).lower().replace("_", "-")
    if (name + value).encode() != line.field.lower() + line.value:
        yield "not-utf-8"
    for code, kinds, begin in _VALUES:
        if line.kind in kinds and re.match(begin, line.value, re.DOTALL):
            yield code


def _meaning(line: Line, name: str, value: str, has_group: bool) -> Iterator[str]:
    if line.kind is LineKind.EMPTY:
        yield ""
    elif line.kind is LineKind.INVALID:
        yield from ("nothing: skipped", "skipped")
    elif line.kind is LineKind.SITEMAP:
        yield f"sitemap {value}"
    elif line.kind is LineKind.USER_AGENT:
        names = map(as_text, names_in_agent(line.value.lower()))
        yield f"a group for {' or '.join(names) or 'nobody'}".replace("*", "anyone")
    elif line.kind in _RULES and has_group:
        meaning = value if value[:1] in {"/", "*"} else "that never matches"
        yield f"{line.kind.value} {meaning if value else 'nothing'}"
    elif line.kind in _RULES:
        yield from (f"{line.kind.value} for nobody", "without-group")
    elif name in FIELDS_OF_GROUPS and not has_group:
        yield from (f"{name} for nobody", "without-group")
    elif name not in FIELDS_OF_GROUPS + FIELDS_OF_FILES:
        yield from ("an unknown field", "unknown-field")
    elif name in DELAY_FIELDS and value.strip("0.") and not delay_in([Field(name, value, 0)]):
        yield from (f"{name} that is not taken", "delay-not-taken")
    else:
        yield f"{name}, beyond the standard"


def _never_winning(rules: tuple[Rule, ...]) -> Iterator[Finding]:
    same: dict[str, list[Rule]] = {}  # rules that match the same targets
    for rule in rules:
        if rule.pattern.startswith(("/", "*")):
            same.setdefault(rule.pattern.rstrip("*") or "/", []).append(rule)
    for each in same.values():
        winner = max(each, key=lambda rule: (len(rule.pattern), rule.allow, -rule.line))
        text = f"line {winner.line} goes before it: {CODES['never-wins']}"
        yield from (Finding(rule.line, "never-wins", text) for rule in each if rule is not winner)
