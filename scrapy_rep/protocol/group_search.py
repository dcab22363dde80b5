"""Finds the groups of a crawler in a body, and reads only their lines.

To read a file line by line would take most of the time of the parser, but most lines are rules for
other crawlers, and nearly all rules are written in the same way. So the ``User-agent`` lines of the
crawler are found by a search for its names. The rules below them are read many at a time, by
splitting the text at ``Disallow:`` and ``Allow:``. Only lines that are written in another way are
read one by one.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from scrapy_rep.protocol.lexer import (
    FIELD,
    FIELD_BUT_SITEMAP,
    Line,
    LineKind,
    line_pattern,
    normalise_lines,
    read_line,
)
from scrapy_rep.protocol.limits import MAX_LINE_BYTES

_Search = Callable[[bytes, int], re.Match[bytes] | None]

_TOO_LONG: Final = re.compile(rb"(\n[^\n]{%d})[^\n]+" % MAX_LINE_BYTES)
_BLANK: Final = rb"[ \t\v\f]*"
# Finds the end of the field name User-agent in lower-case text. To search for the literal "gent" is
# the fastest; the look-behinds then check the text before it.
_USER_AGENT: Final = rb"gent(?:(?<=\suser[- ]agent)|(?<=\suseragent))"
_ANY_USER_AGENT: Final = re.compile(_USER_AGENT).search
_USER_AGENT_LINE: Final = line_pattern(LineKind.USER_AGENT).match
_RULE: Final = line_pattern(LineKind.ALLOW, LineKind.DISALLOW)
_RUN: Final = line_pattern(LineKind.USER_AGENT, LineKind.ALLOW, LineKind.DISALLOW)
_SITEMAP: Final = line_pattern(LineKind.SITEMAP)
_split_at_rules: Final = re.compile(rb"\n(?:Disa|(A))llow: ").split
_END_OF_RUN: Final = FIELD_BUT_SITEMAP.search
_OF_FIRST_KIND: Final = 2
"""Number of regex groups for the first kind of line in a pattern of ``line_pattern``."""

# ``in`` is faster with an int than with bytes.
_LF: Final = ord("\n")
_HASH: Final = ord("#")


class Span(NamedTuple):
    """Successive lines of a text."""

    number: int
    start: int
    """The offset of the first byte of the first line, whose number is ``number``."""
    stop: int
    """The offset of the first byte of the line after them."""


class Contents:
    """The text of a body: finds groups, and reads the fields or rules in their spans.

    Lines are cut at NUL and MAX_LINE_BYTES.
    """

    __slots__ = ("_lower", "text")

    def __init__(self, body: bytes) -> None:
        """``body`` may be any bytes."""
        text = normalise_lines(body)
        if 0 in text:
            text = text.replace(b"\0", b"#")  # NUL ends the content of a line, as # does
        if _may_have_long_line(text):
            text = _TOO_LONG.sub(rb"\1", text)
        self.text: bytes = text
        self._lower = text.lower()

    @property
    def sitemaps(self) -> Iterator[bytes]:
        return map(_value_of, _SITEMAP.finditer(self.text))

    def fields(self, span: Span, names: tuple[str, ...] = ()) -> Iterator[Line]:
        """Yield the lines of a span with a field; with *names*, with one that begins with these."""
        search = line_pattern(fields=names) if names else FIELD
        return (read_line(number, line[0]) for number, line in self._numbered(search, span))

    def agents_and_fields(self, span: Span, names: tuple[str, ...]) -> Iterator[tuple[Line, bool]]:
        """Yield ``User-agent`` lines, and other lines as ``fields`` does, each with a flag.

        The flag is true for a ``User-agent`` line that directly follows another one, or is the
        first of the span. ``Sitemap`` lines, and lines without a field, between them don't matter.
        """
        end = span.start - 1
        search = line_pattern(LineKind.USER_AGENT, fields=names) if names else FIELD
        for number, found in self._numbered(search, span):
            line = read_line(number, found[0])
            is_next = False
            if line.kind is LineKind.USER_AGENT:
                is_next = not _END_OF_RUN(self.text, end, found.start())
                end = found.end()
            yield line, is_next

    def _numbered(
        self, lines: re.Pattern[bytes], span: Span
    ) -> Iterator[tuple[int, re.Match[bytes]]]:
        """Yield the matches of ``lines`` in a span, each with the number of its line."""
        number, counted = span.number - 1, span.start - 1
        for line in lines.finditer(self.text, counted, span.stop - 1):
            number += self.text.count(b"\n", counted, line.start() + 1)
            counted = line.start() + 1
            yield number, line

    def mentions(self, text: bytes) -> bool:
        """Return whether any line contains ``text``, a word in lower case; case doesn't matter."""
        return text in self._lower

    def rules(self, spans: Iterable[Span]) -> tuple[list[bytes], list[int]]:
        """Return the values and words of the rules in spans that begin with ``User-agent`` lines.

        A word is an integer: twice the line number, plus one for ``Allow``.
        """
        values: list[bytes] = []
        words: list[int] = []
        for number, start, stop in spans:
            more_values, more_words = _read_rules(number, self.text[start - 1 : stop - 1])
            values += more_values
            words += more_words
        return values, words

    def groups(self, *names: bytes) -> Iterator[tuple[list[bytes], Span]]:
        """Yield for each group the values of its ``User-agent`` lines, in lower case, and its span.

        With *names*, in lower case, values that begin with none of the names are left out, and so
        are groups that have only such values. Only the first value may be another one, if no colon
        is directly after its ``user-agent``. A span begins at the line of this value.
        """
        text = self.text
        search = _search_of_names(names) if names else _ANY_USER_AGENT
        number = counted = 0
        first = self._next_user_agent_line(search, 0)
        while first:
            start = first.start() + 1
            number += text.count(b"\n", counted, start)
            counted = start
            agents = [_value_of(first).lower()]
            behind = None
            for line in _RUN.finditer(text, first.end()):
                if _is_of_first_kind(line):
                    agent = _value_of(line).lower()
                    if not names or agent.startswith(names):
                        agents.append(agent)
                else:
                    behind = self._next_user_agent_line(_ANY_USER_AGENT, line.end())
                    break
            yield agents, Span(number, start, behind.start() + 1 if behind else len(text) + 1)
            first = behind
            if behind and names and not _value_of(behind).lower().startswith(names):
                first = self._next_user_agent_line(search, behind.end())

    def _next_user_agent_line(self, search: _Search, start: int) -> re.Match[bytes] | None:
        """Return the first ``User-agent`` line of those that ``search`` finds from ``start`` on."""
        text, lower = self.text, self._lower
        while start >= 0 and (found := search(lower, start)):
            line = _USER_AGENT_LINE(text, text.rfind(b"\n", 0, found.start()))
            if line:
                return line
            start = text.find(b"\n", found.end())
        return None


def _read_rules(number: int, text: bytes) -> tuple[list[bytes], list[int]]:
    """Return values and words (see ``Contents.rules``) of the rules below the first line.

    ``number`` is that of this line, a ``User-agent`` line. ``text`` begins with the LF before it.
    """
    # Most rules directly follow each other: such a run is read at once. A value that contains LF is
    # the last one of a run, followed by the lines after the run.
    pieces = _split_at_rules(text)
    values, allows = pieces[::2], [None, *pieces[1::2]]
    all_values: list[bytes] = []
    all_words: list[int] = []
    number, start = number - 1, 0
    for stop in [index + 1 for index, value in enumerate(values) if _LF in value]:
        others = values[stop - 1]
        values[stop - 1], _, _ = others.partition(b"\n")
        all_values += values[start:stop]
        all_words += _words(number, allows[start:stop])
        number += stop - 1 - start
        start = stop
        counted = 0
        for rule in _RULE.finditer(others):
            begin = rule.start() + 1
            number += others.count(b"\n", counted, begin)
            counted = begin
            all_values.append(_value_of(rule))
            all_words.append(2 * number + _is_of_first_kind(rule))
        number += others.count(b"\n", counted) + 1
    all_values += values[start:]
    all_words += _words(number, allows[start:])
    if _HASH in text:
        all_values = [
            value[: value.index(b"#")] if _HASH in value else value for value in all_values
        ]
    return list(map(bytes.strip, all_values[1:])), all_words[1:]


def _words(number: int, allows: Iterable[bytes | None]) -> list[int]:
    return [2 * line + (allow is not None) for line, allow in enumerate(allows, number)]


@lru_cache
def _search_of_names(names: tuple[bytes, ...]) -> _Search:
    """Return a search for ``User-agent`` lines whose value may begin with one of the names."""
    # Those without a colon directly after the field are found with any value.
    begins = b"|".join(map(re.escape, names))
    forms = rb"(?:%s:%s(?:%s)|(?!%s:))" % (_BLANK, _BLANK, begins, _BLANK)
    return re.compile(_USER_AGENT + forms).search


def _may_have_long_line(text: bytes) -> bool:
    """Return whether any line may be longer than MAX_LINE_BYTES."""
    start = 0  # of each MAX_LINE_BYTES bytes, only the last line end is searched for
    while len(text) - start > MAX_LINE_BYTES:
        start = text.rfind(b"\n", start + 1, start + MAX_LINE_BYTES + 2)
        if start < 0:
            return True
    return False


def _value_of(line: re.Match[bytes]) -> bytes:
    return line[line.lastindex or 0].strip()


def _is_of_first_kind(line: re.Match[bytes]) -> bool:
    return (line.lastindex or 0) <= _OF_FIRST_KIND
