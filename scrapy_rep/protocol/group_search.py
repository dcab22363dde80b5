"""Search for the groups of a crawler: of a body, only their lines are read.

Most lines of most files are rules for others, or rules as they are nearly always written: the
groups of a crawler are found by a search, and runs of their lines are read at once. Whatever is
written otherwise is left to the lexer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.lexer import LineKind, field_and_value, line_kind_of, read_line, text_of
from scrapy_rep.protocol.limits import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy_rep.protocol.lexer import Line

    _Search = Callable[[bytes, int], re.Match[bytes] | None]

_TOO_LONG: Final = re.compile(rb"(\n[^\n]{%d})[^\n]+" % MAX_LINE_BYTES)
_BLANK: Final = rb"[ \t\v\f]*"
# The value stands in the group where the line is as it should be.
_USER_AGENT_LINE: Final = re.compile(
    rb"\n%s[Uu][Ss][Ee][Rr][- ]?[Aa][Gg][Ee][Nn][Tt](?:%s:([^\n#]*))?[^\n]*" % (_BLANK, _BLANK)
).match
# What its field ends with, in lower case: a search for characters that are so is the quickest.
_USER_AGENT: Final = rb"gent(?:(?<=\suser[- ]agent)|(?<=\suseragent))"
_ANY_USER_AGENT: Final = re.compile(_USER_AGENT).search
_RULE: Final = rb"%s(?:[Aa][Ll][Ll][Oo][Ww]|[Dd][Ii](?:[Ss][AaSs]|[Aa][Ss]))" % _BLANK
_MAY_BE_RULE: Final = re.compile(_RULE).match
_MAY_BE_RULE_LINE: Final = re.compile(b"\n" + _RULE)

# Whether fields as they are nearly always written allow; None for those of no rules.
_COMMON: Final[dict[bytes, int | None]] = {
    **dict.fromkeys((b"Disallow", b"disallow", b"DISALLOW"), 0),
    **dict.fromkeys((b"Allow", b"allow", b"ALLOW"), 1),
    **dict.fromkeys((b"User-agent", b"User-Agent", b"user-agent", b"Crawl-delay", b"Sitemap")),
    **dict.fromkeys((b"", b"\r", b"#")),
}
_ALLOWS: Final = {LineKind.ALLOW: 1, LineKind.DISALLOW: 0}
_TO_BE_READ: Final = -1

# A look for an octet of bytes is quick where it is a number.
_LF: Final = ord("\n")
_HASH: Final = ord("#")


class Span(NamedTuple):
    """Successive lines of a text: the number of the first, and where they begin and end."""

    number: int
    start: int
    stop: int


class _UserAgent(NamedTuple):
    """A ``User-agent`` line: lower-case value, number, where it and where the next line begin."""

    value: bytes
    number: int
    start: int
    stop: int


class Part(NamedTuple):
    """Successive lines: the number of the first, and their text, with LF before each."""

    number: int
    text: bytes


class Contents:
    """The lines of a body as far as they count, none too long; CR before LF is white space."""

    __slots__ = ("_lower", "text")

    def __init__(self, body: bytes) -> None:
        """Take any bytes."""
        text = text_of(body)
        if 0 in text:
            text = text.replace(b"\0", b"#")  # both end the content of a line
        if _may_have_long_line(text):
            text = _TOO_LONG.sub(rb"\1", text)
        self.text = text
        self._lower = text.lower()

    @property
    def span(self) -> Span:
        """All lines."""
        return Span(1, 1, len(self.text) + 1)

    def lines(self, span: Span) -> Iterator[Line]:
        """Yield the lines of a span, read."""
        return starmap(read_line, self.numbered(span))

    def numbered(self, span: Span) -> Iterator[tuple[int, bytes]]:
        """Yield number and content of each line of a span."""
        return enumerate(self.text[span.start : span.stop - 1].split(b"\n"), span.number)

    def mentions(self, text: bytes) -> bool:
        """Say whether a text, given in lower case, is found in any line, in any case."""
        return text in self._lower

    def part(self, span: Span) -> Part:
        """Return the lines of a span, from a ``User-agent`` line on, for their rules to be read."""
        return Part(span.number, self.text[span.start - 1 : span.stop - 1])

    def groups(self, *names: bytes) -> Iterator[tuple[list[bytes], Span]]:
        """Yield values of the ``User-agent`` lines, in lower case, and all lines, of each group.

        With *names*, in lower case, only of groups that may be meant for one of these: values that
        begin with one, and the lines from the first of them on.
        """
        search = _may_be_named(names) if names else _ANY_USER_AGENT
        first = self._user_agent(search, 0, 0)
        while first:
            agents, last = [first.value], first
            behind = self._user_agent(_ANY_USER_AGENT, last.number, last.stop - 1)
            while behind and not self._has_rule(last.stop, behind.start):
                if not names or behind.value.startswith(names):
                    agents.append(behind.value)
                last = behind
                behind = self._user_agent(_ANY_USER_AGENT, last.number, last.stop - 1)
            stop = behind.start if behind else len(self.text) + 1
            yield agents, Span(first.number, first.start, stop)
            first = behind
            if behind and names and not behind.value.startswith(names):
                first = self._user_agent(search, behind.number, behind.stop - 1)

    def _user_agent(self, search: _Search, number: int, start: int) -> _UserAgent | None:
        """Return the next ``User-agent`` line that a search finds, behind a number of lines."""
        text, lower = self.text, self._lower
        begin = end = start
        while found := search(lower, end):
            begin = text.rfind(b"\n", begin, found.start())
            line = _USER_AGENT_LINE(text, begin)
            if not line:
                end = text.find(b"\n", found.end())
                if end < 0:
                    break
                continue
            end = line.end()
            value = line[1]
            if value is None:
                kind, value = _kind_and_value(line[0])
                if kind is not LineKind.USER_AGENT:
                    continue
            number += text.count(b"\n", start, begin + 1)
            return _UserAgent(value.strip().lower(), number, begin + 1, end + 1)
        return None

    def _has_rule(self, start: int, stop: int) -> bool:
        """Say whether there is a rule between two lines."""
        for found in _MAY_BE_RULE_LINE.finditer(self.text, start - 1, stop):
            end = self.text.index(b"\n", found.end())
            if _read_rule(self.text[found.start() + 1 : end])[0] is not None:
                return True
        return False


def read_rules(part: Part) -> tuple[list[bytes], list[int]]:
    """Return values and words of the rules behind the first line, which is none.

    A word is twice the line's number, plus one for ``Allow``.
    """
    # Most lines are Disallow, with nothing between many of them: such a run is read at once. Behind
    # its last value stand other lines, as they do where the text begins.
    chunks = part.text.split(b"\nDisallow: ")
    values: list[bytes] = []
    words: list[int] = []
    number, start = part.number - 2, 0
    for last in [index for index, chunk in enumerate(chunks) if _LF in chunk]:
        others = chunks[last]
        chunks[last], _, _ = others.partition(b"\n")
        stop = last + 1
        values += chunks[start:stop]
        words += range(2 * number + 2, 2 * (number + 1 + stop - start), 2)
        number += stop - start
        start = stop
        if not _MAY_BE_RULE_LINE.search(others):
            number += others.count(b"\n")
            continue
        for content in others.split(b"\n")[1:]:
            number += 1
            field, colon, value = content.partition(b":")
            allow = _COMMON.get(field, _TO_BE_READ)
            if allow is None:
                continue
            if allow == _TO_BE_READ or not colon:
                allow, value = _read_rule(content)
                if allow is None:
                    continue
            values.append(value)
            words.append(2 * number + allow)
    values += chunks[start:]
    words += range(2 * number + 2, 2 * (number + 1 + len(chunks) - start), 2)
    if _HASH in part.text:
        values = [value[: value.index(b"#")] if _HASH in value else value for value in values]
    return list(map(bytes.strip, values[1:])), words[1:]


@lru_cache
def _may_be_named(names: tuple[bytes, ...]) -> _Search:
    """Return a search for the ``User-agent`` lines that may begin with one of the names."""
    begins = b"|".join(map(re.escape, names))
    forms = rb"(?:%s:%s(?:%s)|(?!%s:))" % (_BLANK, _BLANK, begins, _BLANK)
    return re.compile(_USER_AGENT + forms).search


def _may_have_long_line(text: bytes) -> bool:
    """Say, without a look at every byte, whether a line may be too long."""
    start = 0
    while len(text) - start > MAX_LINE_BYTES:
        start = text.rfind(b"\n", start + 1, start + MAX_LINE_BYTES + 2)
        if start < 0:
            return True
    return False


def _read_rule(content: bytes) -> tuple[int | None, bytes]:
    """Return whether a rule allows, None if it is none, and its value."""
    if not _MAY_BE_RULE(content):
        return None, b""
    kind, value = _kind_and_value(content)
    return _ALLOWS.get(kind), value


def _kind_and_value(content: bytes) -> tuple[LineKind, bytes]:
    """Return what read_line does of a line, as far as a group needs it."""
    field, _, value = field_and_value(content.partition(b"#")[0].strip())
    return line_kind_of(field.lower()), value
