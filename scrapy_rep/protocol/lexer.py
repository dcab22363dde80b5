"""Bytes to lines: what each line of a robots.txt says, and what was odd about it.

The one reader of the format. ``lex`` reports every line, also those that say nothing, for an
explanation or a linter; the parser takes the contents of lines, and has those read that it needs.
"""

from __future__ import annotations

import re
from enum import Enum, Flag, auto
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator


class Kind(Enum):
    """What a line was taken for."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    OTHER = "other"
    """A field that the standard doesn't know, such as ``Crawl-delay``."""
    EMPTY = "empty"
    """Nothing, or a comment alone."""
    INVALID = "invalid"
    """No field can be told: skipped (SPEC L-3)."""


class Oddity(Flag):
    """What a line was forgiven."""

    NONE = 0
    MISSPELT = auto()
    """The field is a known typing error, or has more characters than its name."""
    NO_COLON = auto()
    """Two words without a colon between them."""
    NUL = auto()
    """A NUL ended the content."""
    CUT = auto()
    """Longer than 16,664 bytes: the rest was ignored."""


class Line(NamedTuple):
    """One line: its number (1-based), kind, field and value as written, and its oddities."""

    number: int
    kind: Kind
    field: bytes
    value: bytes
    oddity: Oddity


# A field is known by its beginning, without case, as in Google's parser: its names, then the
# typing errors that are accepted (SPEC L-5).
_NAMES: Final = {
    b"user-agent": Kind.USER_AGENT,
    b"allow": Kind.ALLOW,
    b"disallow": Kind.DISALLOW,
    b"sitemap": Kind.SITEMAP,
}
_MISSPELT: Final = {
    b"useragent": Kind.USER_AGENT,
    b"user agent": Kind.USER_AGENT,
    b"dissallow": Kind.DISALLOW,
    b"dissalow": Kind.DISALLOW,
    b"disalow": Kind.DISALLOW,
    b"diasllow": Kind.DISALLOW,
    b"disallaw": Kind.DISALLOW,
    b"site-map": Kind.SITEMAP,
}
_BEGINNINGS: Final = (*_NAMES.items(), *_MISSPELT.items())

_BYTE_ORDER_MARK: Final = re.compile(rb"\xef(?:\xbb\xbf?)?").match
_TOO_LONG: Final = re.compile(rb"(\n[^\n]{%d})[^\n]+" % MAX_LINE_BYTES)
# The value stands in the group where the line is as it should be.
_MAY_BE_USER_AGENT: Final = re.compile(
    rb"\n[ \t\v\f]*[Uu][Ss][Ee][Rr][- ]?[Aa][Gg][Ee][Nn][Tt](?:[ \t\v\f]*:([^\n#]*))?[^\n]*"
).finditer
_IS_RULE: Final = re.compile(rb"(?:[Dd]isa|A|a)llow:").match
_MAY_BE_RULE: Final = re.compile(rb"[ \t\v\f]*(?:[Aa][Ll][Ll]|[Dd][Ii])").match
_BLANKS: Final = re.compile(rb"[ \t]+")

# Whether fields as they are nearly always written allow; None for those of no rules.
_COMMON: Final[dict[bytes, int | None]] = {
    **dict.fromkeys((b"Disallow", b"disallow", b"DISALLOW"), 0),
    **dict.fromkeys((b"Allow", b"allow", b"ALLOW"), 1),
    **dict.fromkeys((b"User-agent", b"User-Agent", b"user-agent", b"Crawl-delay", b"Sitemap")),
    b"": None,
    b"#": None,
}
_ALLOWS: Final = {Kind.ALLOW: 1, Kind.DISALLOW: 0}
_TO_BE_READ: Final = -1


def lex(body: bytes) -> Iterator[Line]:
    """Yield every line of a robots.txt body; any bytes will do."""
    for number, raw in enumerate(_text_of(body).split(b"\n")[1:], 1):
        content = raw.partition(b"#")[0].partition(b"\0")[0]
        oddity = Oddity.NONE
        if len(content) > MAX_LINE_BYTES:
            oddity |= Oddity.CUT
        if b"\0" in raw[: min(len(content) + 1, MAX_LINE_BYTES)]:
            oddity |= Oddity.NUL
        line = read_line(number, content[:MAX_LINE_BYTES])
        yield line._replace(oddity=line.oddity | oddity) if oddity else line


def read_line(number: int, content: bytes) -> Line:
    """Read one line, given without its end and what is too long."""
    content = content.partition(b"#")[0].strip()
    if not content:
        return Line(number, Kind.EMPTY, b"", b"", Oddity.NONE)
    field, colon, value = _field_and_value(content)
    if not field:
        return Line(number, Kind.INVALID, b"", content, Oddity.NONE)
    oddity = Oddity.NONE if colon else Oddity.NO_COLON
    name = field.lower()
    kind = _NAMES.get(name)
    if kind is None:
        kind = _kind_of(name)
        if kind is not Kind.OTHER:
            oddity |= Oddity.MISSPELT
    return Line(number, kind, field, value, oddity)


def _field_and_value(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return field, colon, if there is one, and value; no field where none can be told."""
    field, colon, value = content.partition(b":")
    if not colon:
        # Google: a missing colon is forgiven where the line is exactly two words.
        words = _BLANKS.split(content)
        if len(words) != 2:  # noqa: PLR2004
            return b"", b"", b""
        field, value = words
    return field.strip(), colon, value.strip()


def _kind_of(name: bytes) -> Kind:
    for beginning, kind in _BEGINNINGS:
        if name.startswith(beginning):
            return kind
    return Kind.OTHER


class Span(NamedTuple):
    """Successive lines of a text: the number of the first, and where they begin and end."""

    number: int
    start: int
    stop: int


class Contents:
    """The lines of a body as far as they count: no ends, none too long."""

    __slots__ = ("text",)

    def __init__(self, body: bytes) -> None:
        """Take any bytes."""
        text = _text_of(body)
        if b"\0" in text:
            text = text.replace(b"\0", b"#")  # both end the content of a line
        if _may_have_long_line(text):
            text = _TOO_LONG.sub(rb"\1", text)
        self.text = text

    @property
    def span(self) -> Span:
        """All lines."""
        return Span(1, 1, len(self.text) + 1)

    def lines(self, span: Span) -> Iterator[Line]:
        """Yield the lines of a span, read."""
        contents = self.text[span.start : span.stop - 1].split(b"\n")
        return map(read_line, range(span.number, span.number + len(contents)), contents)

    def rules(self, span: Span) -> tuple[list[bytes], list[int]]:
        """Return values and words of the rules in a span.

        A word is twice the line's number, plus one for ``Allow``. Lines as they are nearly always
        written are read here, the others by read_line.
        """
        values: list[bytes] = []
        words: list[int] = []
        text = self.text[span.start : span.stop - 1]
        common = _COMMON.get
        lines = map(bytes.partition, text.split(b"\n"), repeat(b":"))
        for number, (field, colon, value) in enumerate(lines, span.number):
            allow = common(field, _TO_BE_READ)
            if allow is None:
                continue
            if allow == _TO_BE_READ or not colon:
                allow, value = _read_rule(field + colon + value)  # noqa: PLW2901 - as it is read
                if allow is None:
                    continue
            elif b"#" in value:
                value = value[: value.index(b"#")]  # noqa: PLW2901 - as far as it counts
            values.append(value)
            words.append(2 * number + allow)
        return list(map(bytes.strip, values)), words

    def groups(self) -> Iterator[tuple[list[bytes], Span]]:
        """Yield values of the ``User-agent`` lines, and all lines, of each group."""
        text = self.text
        agents: list[bytes] = []
        number = start = behind = 0
        first = number, start
        for match in _MAY_BE_USER_AGENT(text):
            value = match[1]
            if value is None:
                line = read_line(0, match[0])
                if line.kind is not Kind.USER_AGENT:
                    continue
                value = line.value
            begin = match.start() + 1
            number += text.count(b"\n", start, begin)
            start = begin
            if agents and self._has_rule(behind, start):
                yield agents, Span(*first, start)
                agents = []
            if not agents:
                first = number, start
            agents.append(value.strip())
            behind = match.end() + 1
        if agents:
            yield agents, Span(*first, len(text) + 1)

    def _has_rule(self, start: int, stop: int) -> bool:
        """Say whether there is a rule in a part of the text."""
        if start == stop:
            return False
        if _IS_RULE(self.text, start, stop):
            return True
        for content in self.text[start : stop - 1].split(b"\n"):
            field, colon, _ = content.partition(b":")
            allow = _COMMON.get(field, _TO_BE_READ)
            if not colon or allow == _TO_BE_READ:
                allow, _ = _read_rule(content)
            if allow is not None:
                return True
        return False


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
    field, _, value = _field_and_value(content.partition(b"#")[0].strip())
    name = field.lower()
    return _ALLOWS.get(_NAMES.get(name) or _kind_of(name)), value


def _text_of(body: bytes) -> bytes:
    """Return a body with LF before each line, and no other line ends (SPEC L-1)."""
    mark = _BYTE_ORDER_MARK(body)
    text = b"\n" + (body[mark.end() :] if mark else body)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text[:-1] if text[-1:] == b"\n" else text
