"""The usage lines of robots.txt: which apply to a crawler, and what they say about a target."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import Line, Oddity, as_text
from scrapy_rep.protocol.limits import MAX_USAGE_BYTES
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.rules import is_match
from scrapy_rep.protocol.usage.statement import (
    ABOVE_GROUPS,
    ANY,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DISALLOW,
    LICENSE,
    READERS,
    ROBOTSTXT,
    Statement,
    license_in,
    statements_of,
)
from scrapy_rep.protocol.usage.usage import Usage, distinct

_SOURCES: Final = {
    b"content-usage": CONTENT_USAGE,
    b"content-signal": CONTENT_SIGNAL,
    b"content-signals": CONTENT_SIGNAL,
    b"license": LICENSE,
}
USAGE_FIELDS: Final = ("content-usage", "content-signal", "license")
"""The field of a usage line begins with one of these, in lower case."""

_path_and_text: Final = re.compile(rb"(?s)(/[^ \t]*)[ \t]*(.*)").fullmatch
_Rules = list[tuple[str, tuple[Statement, ...]]]
"""Canonical patterns, the longest first, and the statements for the targets that they match."""
_LINE_BYTES: Final = 500
"""Approximate size of a line in memory, in bytes, without its value."""
_WHY: Final = f"more than {MAX_USAGE_BYTES:,} bytes of usage lines"
_TOO_MANY: Final = tuple(
    Statement(source, ANY, DISALLOW, _WHY, None) for source in (CONTENT_USAGE, CONTENT_SIGNAL)
)
"""The statements if the usage lines have more bytes than are read: all uses are disallowed."""


class UsageLines(NamedTuple):
    """The usage lines for a crawler, as written; their text is read when it is needed."""

    inside: tuple[Line, ...] = ()
    """Those in its groups."""
    above: tuple[Line, ...] = ()
    """Those above the first ``User-agent`` line that apply, too."""

    @property
    def nbytes(self) -> int:
        """Estimated size in memory, in bytes."""
        return sum([_LINE_BYTES + len(line.value) for line in (*self.inside, *self.above)])


NO_USAGE_LINES: Final = UsageLines()


def usage_lines(inside: Iterable[Line], above: Iterable[Line]) -> UsageLines:
    """Return the usage lines for a crawler, of the lines in its groups and those ``above`` all.

    A ``License`` above all groups counts if its groups have none, and so does a Content-Signal, but
    only what it disallows: our own decision, as authors write such lines for all crawlers.
    """
    ours = _usage_lines_in(inside)
    found = {CONTENT_USAGE, *map(_source_of, ours)}
    others = [line for line in _usage_lines_in(above) if _source_of(line) not in found]
    return UsageLines(tuple(ours), tuple(others)) if ours or others else NO_USAGE_LINES


def _usage_lines_in(lines: Iterable[Line]) -> list[Line]:
    """Return the usage lines with a colon, until they have more than MAX_USAGE_BYTES."""
    found: list[Line] = []
    room = MAX_USAGE_BYTES
    for line in lines:
        if _source_of(line) and Oddity.NO_COLON not in line.oddity:
            found.append(line)
            room -= _size_of(line)
            if room < 0:
                break
    return found


def _source_of(line: Line) -> str | None:
    return _SOURCES.get(line.field.lower())


def _size_of(line: Line) -> int:
    return len(line.field) + len(line.value) + 2


def read(lines: UsageLines, target: str, tokens: Tokens) -> Usage:
    """Return the usage preferences in ``lines`` for a canonical target.

    Of the lines of a source, those with the longest path that matches apply. ``tokens``, the
    product tokens of the crawler, are only stored in the result.
    """
    found = [each for rules in _rules_of(lines) for each in _statements_of_longest(rules, target)]
    return Usage(distinct(found), tokens)


@lru_cache(16)  # as the next page often is of the same site
def _rules_of(lines: UsageLines) -> list[_Rules]:
    """Return the rules of each source, separately for lines above all groups."""
    if sum(map(_size_of, (*lines.inside, *lines.above))) > MAX_USAGE_BYTES:
        return [[("", _TOO_MANY)]]
    found: dict[tuple[str, str], dict[str, list[Statement]]] = {}
    for place, some in ((ROBOTSTXT, lines.inside), (ABOVE_GROUPS, lines.above)):
        for line in some:
            source = _SOURCES[line.field.lower()]
            path, statements = _read_line(line, source, place)
            if statements:
                by_pattern = found.setdefault((source, place), {})
                by_pattern.setdefault(canonical_patterns(path), []).extend(statements)
    return [
        [(pattern, distinct(rules[pattern])) for pattern in sorted(rules, key=len, reverse=True)]
        for rules in found.values()
    ]


def _read_line(line: Line, source: str, place: str) -> tuple[bytes, list[Statement]]:
    """Return the path in the value of a line, empty if there is none, and its statements."""
    raw = as_text(line.value)
    if source == LICENSE:
        return b"", license_in(raw, line.number)
    parts = _path_and_text(line.value)
    path, text = parts.groups() if parts else (b"", line.value)
    statements = statements_of(source, READERS[source](text), raw, line.number, place)
    if place == ABOVE_GROUPS:
        statements = [statement for statement in statements if statement.value == DISALLOW]
    return path, statements


def _statements_of_longest(rules: _Rules, target: str) -> list[Statement]:
    longest = 0
    found: list[Statement] = []
    for pattern, statements in rules:
        if len(pattern) < longest:
            break
        if is_match(pattern, target):
            longest = len(pattern)
            found += statements
    return found
