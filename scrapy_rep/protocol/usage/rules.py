"""The usage lines in the groups for a crawler: the lines with usage preferences."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import Line, Oddity, as_text
from scrapy_rep.protocol.limits import MAX_USAGE_BYTES
from scrapy_rep.protocol.rules import is_match
from scrapy_rep.protocol.usage.readers import READERS, license_in
from scrapy_rep.protocol.usage.statement import (
    ABOVE_GROUPS,
    ANY,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DISALLOW,
    LICENSE,
    ROBOTSTXT,
    Statement,
    statements_of,
)
from scrapy_rep.protocol.usage.usage import Usage, distinct

SOURCE_OF_FIELD: Final = {
    b"content-usage": CONTENT_USAGE,
    b"content-signal": CONTENT_SIGNAL,
    b"content-signals": CONTENT_SIGNAL,
    b"license": LICENSE,
}
"""The source of the statements of each field; fields are in lower case."""
USAGE_FIELDS: Final = tuple(field.decode() for field in SOURCE_OF_FIELD)
USAGE_WORDS: Final = (b"content-usage", b"content-signal", b"license")
"""Each of USAGE_FIELDS contains one of these words: a file without them has no usage lines."""

_PATH: Final = re.compile(rb"(?s)(/[^ \t]*)[ \t]*(.*)").fullmatch
_Rule = tuple[str, tuple[Statement, ...]]
"""A canonical pattern, and the statements for the targets that it matches."""
_LINE_BYTES: Final = 500
"""Approximate size of a line in memory, in bytes, without its value."""


def source_of(line: Line) -> str | None:
    """Return the source of the statements of a line, by its field; None if it is no usage line."""
    return SOURCE_OF_FIELD.get(line.field.lower())


def usage_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the usage lines with a colon, at most one more than MAX_USAGE_BYTES has room for.

    By this additional line, UsageRules recognizes that there are too many.
    """
    found: list[Line] = []
    room = MAX_USAGE_BYTES
    for line in lines:
        if source_of(line) and Oddity.NO_COLON not in line.oddity:
            found.append(line)
            room -= _size_of(line)
            if room < 0:
                break
    return found


def _size_of(line: Line) -> int:
    return len(line.field) + len(line.value) + 2


_WHY: Final = f"more than {MAX_USAGE_BYTES:,} bytes of usage lines"
TOO_MANY: Final = tuple(
    Statement(source, ANY, DISALLOW, _WHY, None) for source in (CONTENT_USAGE, CONTENT_SIGNAL)
)
"""The statements if the usage lines have more bytes than are read: all uses are disallowed."""


class UsageRules:
    """The usage lines for a crawler, which are read on first use. Too many disallow all uses."""

    __slots__ = ("_above", "_compiled", "_licenses", "_lines", "nbytes")

    def __init__(self, lines: Sequence[Line], above: Sequence[Line] = ()) -> None:
        """``lines`` are in the groups, ``above`` above the first ``User-agent`` line.

        Of the lines above, licenses count if the groups have none, and so does a Content-Signal,
        but only what it disallows: our own decision, as authors write such lines for all crawlers.
        """
        self._licenses = _licenses(lines) or _licenses(above)
        if any(map(_is_signal, lines)):
            above = ()
        if sum(map(_size_of, (*lines, *above))) > MAX_USAGE_BYTES:
            self._licenses += TOO_MANY
            lines = above = ()
        self._lines = lines
        self._above = list(filter(_is_signal, above))
        self._compiled: list[list[_Rule]] | None = None
        self.nbytes: int = sum(
            _LINE_BYTES + len(line.value) for line in (*self._lines, *self._above)
        )

    def usage_for(self, target: str, *tokens: str) -> Usage:
        """Return the usage preferences in robots.txt for a canonical target.

        *tokens*, the product tokens of the crawler, are only stored in the result.
        """
        if self._compiled is None:
            self._compiled = [
                _rules_of(source, self._lines) for source in (CONTENT_USAGE, CONTENT_SIGNAL)
            ]
            self._compiled.append(_rules_of(CONTENT_SIGNAL, self._above, place=ABOVE_GROUPS))
            self._lines, self._above = (), []
        found = [each for rules in self._compiled for each in _statements_of_longest(rules, target)]
        return Usage(distinct((*found, *self._licenses)), tokens)


def _is_signal(line: Line) -> bool:
    return source_of(line) == CONTENT_SIGNAL


def _rules_of(source: str, lines: Iterable[Line], place: str = ROBOTSTXT) -> list[_Rule]:
    """Return the patterns in the lines of a source, with their statements, the longest first.

    Of lines above the first ``User-agent`` line, only what they disallow is returned.
    """
    by_pattern: dict[str, list[Statement]] = {}
    for line in lines:
        if source_of(line) != source:
            continue
        path, statement = path_and_statement(line.value)
        values = READERS[source](statement)
        if place == ABOVE_GROUPS:
            values = {label: value for label, value in values.items() if value == DISALLOW}
            if not values:
                continue
        statements = statements_of(source, values, as_text(line.value), line.number, place)
        by_pattern.setdefault(canonical_patterns(path), []).extend(statements)
    patterns = sorted(by_pattern, key=len, reverse=True)
    return [(pattern, distinct(by_pattern[pattern])) for pattern in patterns]


def path_and_statement(value: bytes) -> tuple[bytes, bytes]:
    """Return the path in the value of a line, empty if there is none, and the text after it."""
    parts = _PATH(value)
    return (parts[1], parts[2]) if parts else (b"", value)


def _statements_of_longest(rules: Iterable[_Rule], target: str) -> list[Statement]:
    """Return the statements of the longest pattern that matches ``target``, or an empty list.

    ``rules`` are sorted, the longest pattern first. If several patterns of the same length match,
    the statements of all of them are returned.
    """
    longest = 0
    found: list[Statement] = []
    for pattern, statements in rules:
        if len(pattern) < longest:
            break
        if is_match(pattern, target):
            longest = len(pattern)
            found += statements
    return found


def _licenses(lines: Iterable[Line]) -> tuple[Statement, ...]:
    """Return the statements of the ``License`` lines whose URI is absolute."""
    return distinct(
        statement
        for line in lines
        if source_of(line) == LICENSE
        for statement in license_in(as_text(line.value), line.number)
    )


NO_USAGE_RULES: Final = UsageRules(())
