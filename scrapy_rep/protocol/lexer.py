"""Bytes to lines: what each line of a robots.txt says, and what was odd about it.

The one reader of the format. It reports every line, also those that say nothing, so that the
parser, an explanation and a linter all see the same.
"""

from __future__ import annotations

import re
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


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


RULES: Final = frozenset({Kind.ALLOW, Kind.DISALLOW})


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
_BLANKS: Final = re.compile(rb"[ \t]+")


# The fields of nearly all rules as they are written, and whether they allow.
_COMMON_RULES: Final = {b"Disallow": 0, b"Allow": 1, b"disallow": 0, b"allow": 1}


def lines_of(body: bytes) -> list[bytes]:
    """Split a body at CR LF, CR and LF (SPEC L-1), without the byte order mark at its start."""
    mark = _BYTE_ORDER_MARK(body)
    return (body[mark.end() :] if mark else body).splitlines()


def lex(body: bytes) -> Iterator[Line]:
    """Yield every line of a robots.txt body; any bytes will do."""
    for number, raw in enumerate(lines_of(body), 1):
        yield lex_line(number, raw)


def lex_line(number: int, raw: bytes) -> Line:
    """Read one line, given without its end."""
    oddity = Oddity.NONE
    if len(raw) > MAX_LINE_BYTES:
        raw = raw[:MAX_LINE_BYTES]
        oddity |= Oddity.CUT
    if b"\0" in raw:
        raw = raw[: raw.index(b"\0")]
        oddity |= Oddity.NUL
    content = raw.partition(b"#")[0].strip()
    if not content:
        return Line(number, Kind.EMPTY, b"", b"", oddity)
    field, colon, value = content.partition(b":")
    if not colon:
        # Google: a missing colon is forgiven where the line is exactly two words.
        words = _BLANKS.split(content)
        if len(words) != 2:  # noqa: PLR2004
            return Line(number, Kind.INVALID, b"", content, oddity)
        field, value = words
        oddity |= Oddity.NO_COLON
    field = field.strip()
    if not field:
        return Line(number, Kind.INVALID, b"", content, oddity)
    name = field.lower()
    kind = _NAMES.get(name)
    if kind is None:
        kind = kind_of_field(name)
        if kind is not Kind.OTHER:
            oddity |= Oddity.MISSPELT
    return Line(number, kind, field, value.strip(), oddity)


def rules_in(lines: Sequence[bytes], numbers: Iterable[int]) -> tuple[list[bytes], list[int]]:
    """Return values and words of the rules among numbered lines.

    A word is twice the line's number, plus one for ``Allow``. This reads as lex_line does, with a
    short way for the common rule.
    """
    values: list[bytes] = []
    words: list[int] = []
    for number in numbers:
        raw = lines[number - 1]
        field, _, value = raw.partition(b":")
        allow = _COMMON_RULES.get(field)
        if allow is None or b"#" in value or b"\0" in value or len(raw) > MAX_LINE_BYTES:
            if not raw:
                continue
            line = lex_line(number, raw)
            if line.kind not in RULES:
                continue
            allow = line.kind is Kind.ALLOW
            value = line.value
        values.append(value.strip())
        words.append(2 * number + allow)
    return values, words


def kind_of_field(name: bytes) -> Kind:
    """Return what a field, in lower case, is taken for."""
    for beginning, kind in _BEGINNINGS:
        if name.startswith(beginning):
            return kind
    return Kind.OTHER
