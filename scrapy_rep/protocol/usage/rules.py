"""Lines about use that are meant for one crawler, and what they say of a target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import Oddity, as_text
from scrapy_rep.protocol.limits import MAX_USAGE_BYTES
from scrapy_rep.protocol.matching.wildcards import is_match
from scrapy_rep.protocol.usage.content_signal import read_signals
from scrapy_rep.protocol.usage.content_usage import read_usage
from scrapy_rep.protocol.usage.license import license_in
from scrapy_rep.protocol.usage.statement import (
    ALLOW,
    ANY,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DISALLOW,
    LEGACY,
    LICENSE,
    ROBOTSTXT,
    Statement,
    statements_of,
)
from scrapy_rep.protocol.usage.usage import Usage, distinct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy_rep.protocol.lexer import Line
    from scrapy_rep.protocol.usage.statement import Value

SOURCE_OF_FIELD: Final = {
    b"content-usage": CONTENT_USAGE,
    b"content-signal": CONTENT_SIGNAL,
    b"content-signals": CONTENT_SIGNAL,
    b"license": LICENSE,
    b"disallowaitraining": LEGACY,
    b"allowaitraining": LEGACY,
}
"""Fields in lower case."""
USAGE_FIELDS: Final = tuple(field.decode() for field in SOURCE_OF_FIELD)
USAGE_WORDS: Final = (b"content-usage", b"content-signal", b"license", b"allowaitraining")
"""One of these is in any file that has one of the fields."""

_PATH: Final = re.compile(rb"(?s)(/[^ \t]*)[ \t]*(.*)").fullmatch
_LINE_BYTES: Final = 500
"""About what a line costs beside its text."""


def usage_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the lines about use among others, up to the one with which they are too many."""
    found: list[Line] = []
    room = MAX_USAGE_BYTES
    for line in lines:
        if line.field.lower() in SOURCE_OF_FIELD and Oddity.NO_COLON not in line.oddity:
            found.append(line)
            room -= _size_of(line)
            if room < 0:
                break
    return found


def _size_of(line: Line) -> int:
    return len(line.field) + len(line.value) + 2


class _Rule(NamedTuple):
    """A line: its path, and what it says where that matches."""

    path: bytes
    statements: list[Statement]


_WHY: Final = f"more than {MAX_USAGE_BYTES:,} bytes of lines about use"
TOO_MANY: Final = tuple(
    Statement(source, ANY, DISALLOW, _WHY, None)
    for source in (CONTENT_USAGE, CONTENT_SIGNAL, LEGACY)
)
"""What holds where there are more lines than are read."""


class UsageRules:
    """The lines about use of one crawler's groups, read when they are first asked for."""

    __slots__ = ("_compiled", "_lines", "_said", "nbytes")

    def __init__(self, lines: Sequence[Line], outside: Sequence[Line] = ()) -> None:
        """Take the lines of the groups, and those outside of all groups."""
        self._said = _licenses(lines) or _licenses(outside)
        if sum(map(_size_of, lines)) > MAX_USAGE_BYTES:
            # Never less than what they may say.
            self._said += TOO_MANY
            lines = ()
        self._lines = lines
        self._compiled: list[list[dict[str, tuple[Statement, ...]]]] | None = None
        self.nbytes = sum(_LINE_BYTES + len(line.value) for line in lines)
        """About how many bytes of memory it takes."""

    def usage_for(self, target: str, *tokens: str) -> Usage:
        """Return what is said of a target, in canonical form, to a crawler of these tokens."""
        if self._compiled is None:
            self._compiled = [
                _by_length(_rules_of(source, self._lines))
                for source in (CONTENT_USAGE, CONTENT_SIGNAL, LEGACY)
            ]
            self._lines = ()
        found = [said for lengths in self._compiled for said in _longest(lengths, target)]
        return Usage(distinct((*found, *self._said)), tokens)


def _rules_of(source: str, lines: Iterable[Line]) -> list[_Rule]:
    return [
        rule
        for line in lines
        if SOURCE_OF_FIELD.get(line.field.lower()) == source
        and (rule := _rule_of(source, line)) is not None
    ]


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
    """Return the path of a line, empty where it has none, and the statement behind it."""
    parts = _PATH(value)
    return (parts[1], parts[2]) if parts else (b"", value)


def _by_length(rules: Sequence[_Rule]) -> list[dict[str, tuple[Statement, ...]]]:
    """Return statements by pattern, those of equal length together, the longest first."""
    patterns = canonical_patterns(b"\n".join([rule.path for rule in rules])).split("\n")
    lengths: dict[int, dict[str, list[Statement]]] = {}
    for pattern, rule in zip(patterns, rules, strict=False):
        lengths.setdefault(len(pattern), {}).setdefault(pattern, []).extend(rule.statements)
    return [
        {pattern: distinct(said) for pattern, said in lengths[length].items()}
        for length in sorted(lengths, reverse=True)
    ]


def _longest(lengths: list[dict[str, tuple[Statement, ...]]], target: str) -> list[Statement]:
    """Return what the lines say whose path is the longest that matches.

    Of different paths that match and are equally long all hold: no line's place in the file counts.
    """
    for patterns in lengths:
        found = [said for pattern, said in patterns.items() if is_match(pattern, target)]
        if found:
            return [statement for said in found for statement in said]
    return []


def _licenses(lines: Iterable[Line]) -> tuple[Statement, ...]:
    return distinct(
        statement
        for line in lines
        if SOURCE_OF_FIELD.get(line.field.lower()) == LICENSE
        for statement in license_in(as_text(line.value), line.number)
    )


NO_USAGE_RULES: Final = UsageRules(())
