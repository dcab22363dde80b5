"""The usage lines in the groups for a crawler: the lines with usage preferences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import Line, Oddity, as_text
from scrapy_rep.protocol.limits import MAX_USAGE_BYTES
from scrapy_rep.protocol.matching.wildcards import is_match
from scrapy_rep.protocol.usage.content_signal import read_signals
from scrapy_rep.protocol.usage.content_usage import read_usage
from scrapy_rep.protocol.usage.license import license_in
from scrapy_rep.protocol.usage.statement import (
    ABOVE_GROUPS,
    ALLOW,
    ANY,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DISALLOW,
    LEGACY,
    LICENSE,
    ROBOTSTXT,
    Statement,
    Value,
    statements_of,
)
from scrapy_rep.protocol.usage.usage import Usage, distinct

SOURCE_OF_FIELD: Final = {
    b"content-usage": CONTENT_USAGE,
    b"content-signal": CONTENT_SIGNAL,
    b"content-signals": CONTENT_SIGNAL,
    b"license": LICENSE,
    b"disallowaitraining": LEGACY,
    b"allowaitraining": LEGACY,
}
"""The source of the statements of each field; fields are in lower case."""
USAGE_FIELDS: Final = tuple(field.decode() for field in SOURCE_OF_FIELD)
USAGE_WORDS: Final = (b"content-usage", b"content-signal", b"license", b"allowaitraining")
"""Each of USAGE_FIELDS contains one of these words: a file without them has no usage lines."""

_PATH: Final = re.compile(rb"(?s)(/[^ \t]*)[ \t]*(.*)").fullmatch
_LINE_BYTES: Final = 500
"""Approximate size of a line in memory, in bytes, without its value."""


def source_of(line: Line) -> str | None:
    """Return the source of the statements of a line; None if it is no usage line."""
    return SOURCE_OF_FIELD.get(line.field.lower())


def usage_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the usage lines in ``lines``, at most one more than MAX_USAGE_BYTES has room for.

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


class _Rule(NamedTuple):
    """A usage line: its path, and the statements for the targets that the path matches."""

    path: bytes
    statements: list[Statement]


_WHY: Final = f"more than {MAX_USAGE_BYTES:,} bytes of usage lines"
TOO_MANY: Final = tuple(
    Statement(source, ANY, DISALLOW, _WHY, None)
    for source in (CONTENT_USAGE, CONTENT_SIGNAL, LEGACY)
)
"""The statements if the usage lines have more bytes than are read: all uses are disallowed."""


class UsageRules:
    """The usage lines in the groups for a crawler; they are read when they are first used."""

    __slots__ = ("_above", "_compiled", "_licenses", "_lines", "nbytes")

    def __init__(self, lines: Sequence[Line], above: Sequence[Line] = ()) -> None:
        """``lines`` are in the groups, ``above`` above the first ``User-agent`` line.

        Of the lines above, licenses count if the groups have none. A Content-Signal counts if the
        groups have none, but only what it disallows: this is our own decision, as authors write
        such lines for all crawlers.
        """
        self._licenses = _licenses(lines) or _licenses(above)
        if any(map(_is_signal, lines)):
            above = ()
        if sum(map(_size_of, (*lines, *above))) > MAX_USAGE_BYTES:
            # Lines that are not read may disallow any use.
            self._licenses += TOO_MANY
            lines = above = ()
        self._lines = lines
        self._above = list(filter(_is_signal, above))
        self._compiled: list[list[dict[str, tuple[Statement, ...]]]] | None = None
        self.nbytes: int = sum(
            _LINE_BYTES + len(line.value) for line in (*self._lines, *self._above)
        )
        """Approximate size in memory, in bytes."""

    def usage_for(self, target: str, *tokens: str) -> Usage:
        """Return the usage preferences for a canonical target.

        *tokens* are the product tokens of the crawler.
        """
        if self._compiled is None:
            self._compiled = [
                _group_by_length(_rules_of(source, self._lines))
                for source in (CONTENT_USAGE, CONTENT_SIGNAL, LEGACY)
            ]
            self._compiled.append(_group_by_length(_refusals_of(self._above)))
            self._lines, self._above = (), []
        found = [
            each for lengths in self._compiled for each in _statements_of_longest(lengths, target)
        ]
        return Usage(distinct((*found, *self._licenses)), tokens)


def _rules_of(source: str, lines: Iterable[Line]) -> list[_Rule]:
    return [
        rule
        for line in lines
        if source_of(line) == source and (rule := _rule_of(source, line)) is not None
    ]


def _is_signal(line: Line) -> bool:
    return source_of(line) == CONTENT_SIGNAL


def _refusals_of(above: Iterable[Line]) -> list[_Rule]:
    """Return the rules of Content-Signal lines above all groups, with what they disallow only."""
    rules = [
        rule._replace(
            statements=[
                statement._replace(place=ABOVE_GROUPS)
                for statement in rule.statements
                if statement.value == DISALLOW
            ]
        )
        for rule in _rules_of(CONTENT_SIGNAL, above)
    ]
    return [rule for rule in rules if rule.statements]


def _rule_of(source: str, line: Line) -> _Rule | None:
    values: dict[str, Value]
    if source == LEGACY:
        if not line.value.startswith((b"/", b"*")):
            return None
        path = line.value
        values = {"ai-training": ALLOW if line.field[:1] in b"aA" else DISALLOW}
    else:
        path, statement = path_and_statement(line.value)
        values = (read_usage if source == CONTENT_USAGE else read_signals)(statement)
    raw = as_text(line.value)
    return _Rule(path, statements_of(source, values, raw, line.number, ROBOTSTXT))


def path_and_statement(value: bytes) -> tuple[bytes, bytes]:
    """Return the path in the value of a line, empty if there is none, and the text after it."""
    parts = _PATH(value)
    return (parts[1], parts[2]) if parts else (b"", value)


def _group_by_length(rules: Sequence[_Rule]) -> list[dict[str, tuple[Statement, ...]]]:
    """Return the statements by pattern, in one dict per length of patterns, the longest first."""
    patterns = canonical_patterns(b"\n".join([rule.path for rule in rules])).split("\n")
    lengths: dict[int, dict[str, list[Statement]]] = {}
    for pattern, rule in zip(patterns, rules, strict=False):
        lengths.setdefault(len(pattern), {}).setdefault(pattern, []).extend(rule.statements)
    return [
        {pattern: distinct(statements) for pattern, statements in lengths[length].items()}
        for length in sorted(lengths, reverse=True)
    ]


def _statements_of_longest(
    lengths: list[dict[str, tuple[Statement, ...]]], target: str
) -> list[Statement]:
    """Return the statements of the longest path that matches ``target``.

    If several paths of this length match, the statements of all of them are returned. Their order
    in the file doesn't matter.
    """
    for patterns in lengths:
        found = [patterns[pattern] for pattern in patterns if is_match(pattern, target)]
        if found:
            return [statement for statements in found for statement in statements]
    return []


def _licenses(lines: Iterable[Line]) -> tuple[Statement, ...]:
    return distinct(
        statement
        for line in lines
        if source_of(line) == LICENSE
        for statement in license_in(as_text(line.value), line.number)
    )


NO_USAGE_RULES: Final = UsageRules(())
