"""The linter, for authors of a robots.txt: finds how each line is read, and its problems."""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in
from scrapy_rep.protocol.lexer import Line, LineKind, Oddity, as_text, lex, whole_lines
from scrapy_rep.protocol.limits import MAX_BODY_BYTES, MAX_LINT_LINES
from scrapy_rep.protocol.matching.ruleset import rank_of
from scrapy_rep.protocol.parser import Field, RobotsTxt
from scrapy_rep.protocol.usage import readers
from scrapy_rep.protocol.usage.rules import USAGE_FIELDS, path_and_statement, source_of
from scrapy_rep.protocol.usage.statement import CONTENT_SIGNAL, CONTENT_USAGE, LICENSE, UNKNOWN
from scrapy_rep.protocol.verdict import Rule


class Finding(NamedTuple):
    """A problem in a file."""

    line: int | None
    """The line number, 1-based; None if the problem is about the whole file."""
    code: str
    """The kind of problem, one of CODES, for programs."""
    text: str
    """A message, for users."""


class Reading(NamedTuple):
    """A line, and how it is read."""

    line: int
    """The line number, 1-based."""
    raw: str
    """The line as written; bytes that are not UTF-8 are escaped."""
    taken_for: str
    """How the line is read, in words; empty if it has no content."""


@dataclass(frozen=True)
class Lint:
    """The result for a file: how each line is read, and the problems."""

    readings: list[Reading] = field(default_factory=list)
    """The lines, in the order of the file."""
    findings: list[Finding] = field(default_factory=list)
    """The problems, sorted by line; problems of the whole file come first."""


CODES: Final = {
    "byte-order-mark": "the file begins with a byte order mark, whole or a part of it",
    "html": "the file is an HTML page",
    "too-large": "the file is larger than 512,000 bytes: the rest is ignored",
    "too-many-lines": "more than 50,000 lines: the rest is not checked",
    "no-group": "rules, but no User-agent line: they apply to no crawler",
    "misspelt": "a typing error in a field that is accepted all the same",
    "no-colon": "two words without a colon: accepted all the same",
    "unknown-field": "a field that no crawler is known to read",
    "delay-not-taken": "not a valid delay: a number above 0, at most one day",
    "skipped": "no field name: the line is skipped",
    "not-utf-8": "bytes that are not UTF-8",
    "nul": "a NUL byte ends the line",
    "line-too-long": "a line of more than 16,663 bytes: the rest is ignored",
    "no-name": "a User-agent line without a product token",
    "beyond-the-name": "the text after the product token is ignored",
    "rule-without-group": "a rule before any User-agent line applies to no crawler",
    "full-url": "a full URL is no path: the rule never matches",
    "no-slash": "a path begins with '/' or '*': the rule never matches",
    "dollar-inside": "a '$' that isn't at the end is a plain character",
    "never-wins": "another rule of the group always takes precedence",
    "relative-sitemap": "not a full URL",
    "usage-foreign": "no label of this field that is known: it says nothing",
    "usage-retired": "a label that draft-ietf-aipref-vocab-08 no longer has: it says nothing",
    "usage-unreadable": "it can't be parsed, and says nothing",
    "usage-value": "a value that is neither of the two that there are: it says nothing",
    "usage-empty": "a path and nothing behind it: what shorter paths say doesn't hold for it",
    "usage-without-group": "a usage line before any User-agent line belongs to nobody",
    "usage-above-groups": "a Content-Signal above the first User-agent line: a 'no' counts for "
    "crawlers whose group has no Content-Signal (scrapy-rep's own decision), a 'yes' for nobody",
    "usage-between-names": "a usage line between User-agent lines is for all of them",
    "usage-misspelt": "a field that is Content-Signal with a letter too many, and read as that",
    "relative-license": "a license takes a full URL",
}
"""The kinds of findings, with their messages."""

OTHER_FIELDS: Final = frozenset(
    {*DELAY_FIELDS, *USAGE_FIELDS, "host", "clean-param", "noindex", "visit-time"}
)
"""Fields outside RFC 9309 that some crawlers read."""

_MARK: Final = (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef")
_HTML: Final = re.compile(rb"\s*<(?:!doctype|html|head|body|!--)|\s*<\?xml", re.IGNORECASE)
_URL: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://")
_FULL_URL: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[^/]")
_NAME: Final = re.compile(rb"[A-Za-z_-]+|\*(?!\S)")
_WIDE_NAME: Final = re.compile(rb"[A-Za-z0-9._-]+")
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


def lint(body: bytes) -> Lint:
    """Return how each line of ``body`` is read, and its problems; ``body`` may be any bytes.

    Lines above MAX_BODY_BYTES and MAX_LINT_LINES are left out; this is one of the problems.
    """
    return _Linter().read(body)


class _Linter:
    """Collects the findings in one file. The methods for lines add to them.

    Those named ``_read_…`` return how the line is read, in words.
    """

    def __init__(self) -> None:
        self._lint = Lint()
        self._named = False
        self._has_rule = False
        """Whether there was a rule since the last ``User-agent`` line."""
        self._between: list[int] = []
        """Numbers of the usage lines between the last ``User-agent`` line and its first rule."""

    def read(self, body: bytes) -> Lint:
        """Do what ``lint`` does. To be called once."""
        mark = next((mark for mark in _MARK if body.startswith(mark)), b"")
        if mark:
            self._add_finding(None, "byte-order-mark")
        if _HTML.match(body, len(mark)):
            self._add_finding(None, "html")
        if len(body) > MAX_BODY_BYTES:
            self._add_finding(None, "too-large", f"the file has {len(body):,} bytes")
            body = whole_lines(body, MAX_BODY_BYTES)
        end = next(islice(_LINE_END.finditer(body), MAX_LINT_LINES - 1, None), None)
        if end and end.end() < len(body):
            self._add_finding(None, "too-many-lines")
            body = body[: end.start()]
        raws = _LINE_END.split(body[len(mark) :])
        lines = list(lex(body))
        for line in lines:
            self._lint.readings.append(
                Reading(line.number, as_text(raws[line.number - 1]), self._read_line(line))
            )
        for group in RobotsTxt.parse(body).groups:
            self._add_never_wins(group.rules)
        kinds = {line.kind for line in lines}
        if not self._named and kinds & {LineKind.ALLOW, LineKind.DISALLOW}:
            self._add_finding(None, "no-group")
        self._lint.findings.sort(key=lambda finding: finding.line or 0)
        return self._lint

    def _add_finding(self, line: int | None, code: str, detail: str = "") -> None:
        text = f"{detail}: {CODES[code]}" if detail else CODES[code]
        self._lint.findings.append(Finding(line, code, text))

    def _read_line(self, line: Line) -> str:
        if line.kind is LineKind.OTHER and Oddity.NO_COLON in line.oddity:
            # The lexer reads any two words as a field without a colon. An unknown one is just text.
            return self._read_invalid(line)
        for oddity, code in (
            (Oddity.MISSPELT, "misspelt"),
            (Oddity.NO_COLON, "no-colon"),
            (Oddity.NUL, "nul"),
            (Oddity.CUT, "line-too-long"),
        ):
            if oddity in line.oddity:
                name = as_text(line.field) if code == "misspelt" else ""
                self._add_finding(line.number, code, name)
        try:
            (line.field + line.value).decode()
        except UnicodeDecodeError:
            self._add_finding(line.number, "not-utf-8")
        read_kind = {
            LineKind.EMPTY: lambda _: "",
            LineKind.INVALID: self._read_invalid,
            LineKind.OTHER: self._read_other,
            LineKind.SITEMAP: self._read_sitemap,
            LineKind.USER_AGENT: self._read_user_agent,
            LineKind.ALLOW: self._read_rule,
            LineKind.DISALLOW: self._read_rule,
        }
        return read_kind[line.kind](line)

    def _read_invalid(self, line: Line) -> str:
        self._add_finding(line.number, "skipped")
        return "nothing: skipped"

    def _read_other(self, line: Line) -> str:
        self._check_usage(line)
        name = as_text(line.field.lower())
        if name not in OTHER_FIELDS:
            self._add_finding(line.number, "unknown-field", as_text(line.field))
            return "an unknown field"
        value = as_text(line.value)
        if name in DELAY_FIELDS and value.strip("0.") and not delay_in([Field(name, value, 0)]):
            self._add_finding(line.number, "delay-not-taken", value)
            return f"{name} that is not taken"
        return f"{name}, beyond the standard"

    def _check_usage(self, line: Line) -> None:
        """Add findings about a usage line, and note where it is; ignore any other line."""
        source = source_of(line)
        if source is None:
            return
        if source == LICENSE:
            if not readers.license_in(as_text(line.value), line.number):
                self._add_finding(line.number, "relative-license", as_text(line.value))
            return
        if line.field.lower() == b"content-signals":
            self._add_finding(line.number, "usage-misspelt")
        path, statement = path_and_statement(line.value)
        if path and not statement:
            self._add_finding(line.number, "usage-empty", as_text(path))
        elif source == CONTENT_USAGE:
            self._check_content_usage(line.number, statement)
        else:
            self._check_content_signal(line.number, statement)
        if not self._named:
            code = "usage-above-groups" if source == CONTENT_SIGNAL else "usage-without-group"
            self._add_finding(line.number, code)
        elif not self._has_rule:
            self._between.append(line.number)

    def _check_content_usage(self, number: int, statement: bytes) -> None:
        try:
            values = readers.usage_by_label(statement)
        except ValueError as error:
            self._add_finding(number, "usage-unreadable", f"{as_text(statement)} ({error})")
            return
        for label, value in values.items():
            if label in readers.RETIRED_LABELS:
                self._add_finding(number, "usage-retired", label)
            elif label not in readers.USAGE_LABELS:
                self._add_finding(number, "usage-foreign", label)
            elif value == UNKNOWN:
                self._add_finding(number, "usage-value", label)

    def _check_content_signal(self, number: int, statement: bytes) -> None:
        pairs = readers.signal_pairs(statement)
        if not pairs:
            self._add_finding(number, "usage-unreadable", as_text(statement))
        for key, value in pairs:
            if key not in readers.SIGNAL_LABELS:
                if key not in readers.OTHER_SIGNALS:
                    self._add_finding(number, "usage-foreign", key)
            elif value not in readers.SIGNAL_VALUES:
                self._add_finding(number, "usage-value", f"{key}={value}")

    def _read_sitemap(self, line: Line) -> str:
        if not _FULL_URL.match(line.value):
            self._add_finding(line.number, "relative-sitemap", as_text(line.value))
        return f"sitemap {as_text(line.value)}"

    def _read_user_agent(self, line: Line) -> str:
        """Also add findings about usage lines that are between ``User-agent`` lines."""
        self._named = True
        self._has_rule = False
        for number in self._between:
            self._add_finding(number, "usage-between-names")
        self._between.clear()
        name = _NAME.match(line.value)
        if name is None:
            self._add_finding(line.number, "no-name", as_text(line.value))
            return "a group for nobody"
        if name[0] == b"*":
            return "a group for anyone"
        if name.end() < len(line.value):
            self._add_finding(line.number, "beyond-the-name", as_text(line.value))
        wide = _WIDE_NAME.match(line.value)
        other = f" or {as_text(wide[0])}" if wide and wide[0] != name[0] else ""
        return f"a group for {as_text(name[0]).lower()}{other.lower()}"

    def _read_rule(self, line: Line) -> str:
        self._between.clear()
        self._has_rule = True
        word = "allow" if line.kind is LineKind.ALLOW else "disallow"
        if not self._named:
            self._add_finding(line.number, "rule-without-group")
            return f"{word} for nobody"
        value = as_text(line.value)
        if not line.value:
            return f"{word} nothing"
        if line.value[:1] not in {b"/", b"*"}:
            code = "full-url" if _URL.match(line.value) else "no-slash"
            self._add_finding(line.number, code, value)
            return f"{word} that never matches"
        if b"$" in line.value[:-1]:
            self._add_finding(line.number, "dollar-inside", value)
        return f"{word} {value}"

    def _add_never_wins(self, rules: tuple[Rule, ...]) -> None:
        """Add findings about rules that never decide, as another rule for the same URLs does."""
        same: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.pattern.startswith(("/", "*")):
                # Patterns with the same key match the same targets.
                same.setdefault(rule.pattern.rstrip("*") or "/", []).append(rule)
        for each in same.values():
            winner = max(each, key=rank_of)
            for rule in each:
                if rule is not winner:
                    self._add_finding(rule.line, "never-wins", f"line {winner.line} goes before it")
