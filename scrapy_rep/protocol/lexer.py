"""Lexer, from bytes to lines: what each line of a robots.txt says, and what is odd about it.

The one reader of the format. ``lex`` reports every line, also those that say nothing, for an
explanation or a linter; the parser goes by ``Contents``, which have those lines read that it needs.
"""

from __future__ import annotations

import re
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class LineKind(Enum):
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
    """Longer than 16,663 bytes: the rest was ignored."""


class Line(NamedTuple):
    """One line: its number (1-based), kind, field and value as written, and its oddities."""

    number: int
    kind: LineKind
    field: bytes
    value: bytes
    oddity: Oddity


# A field is known by its beginning, without case, as in Google's parser: its names, then the
# typing errors that are accepted (SPEC L-5).
_NAMES: Final = {
    b"user-agent": LineKind.USER_AGENT,
    b"allow": LineKind.ALLOW,
    b"disallow": LineKind.DISALLOW,
    b"sitemap": LineKind.SITEMAP,
}
_MISSPELT: Final = {
    b"useragent": LineKind.USER_AGENT,
    b"user agent": LineKind.USER_AGENT,
    b"dissallow": LineKind.DISALLOW,
    b"dissalow": LineKind.DISALLOW,
    b"disalow": LineKind.DISALLOW,
    b"diasllow": LineKind.DISALLOW,
    b"disallaw": LineKind.DISALLOW,
    b"site-map": LineKind.SITEMAP,
}
_BEGINNINGS: Final = (*_NAMES.items(), *_MISSPELT.items())

# What stands behind a field's name, up to the end of the line. The value is in a group: behind a
# colon, or the second of two words.
_COLON: Final = rb"[^:#\n]*:([^#\n]*)[^\n]*"
_WORD: Final = rb"[^ \t:#\n]*[ \t]+([^ \t:#\n]*[^\s:#\n])[ \t\v\f\r]*(?![^#\n])[^\n]*"
_LINE: Final = rb"\n[ \t\v\f]*(?:%s)"

_BYTE_ORDER_MARK: Final = re.compile(rb"\xef(?:\xbb\xbf?)?").match
_LONE_CR: Final = re.compile(rb"\r(?!\n)").search
_BLANKS: Final = re.compile(rb"[ \t]+")
_CR: Final = ord("\r")


def lex(body: bytes) -> Iterator[Line]:
    """Yield every line of a robots.txt body; any bytes will do."""
    for number, line_of_text in enumerate(text_of(body).split(b"\n")[1:], 1):
        raw = line_of_text.removesuffix(b"\r")
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
        return Line(number, LineKind.EMPTY, b"", b"", Oddity.NONE)
    field, colon, value = field_and_value(content)
    if not field:
        return Line(number, LineKind.INVALID, b"", content, Oddity.NONE)
    oddity = Oddity.NONE if colon else Oddity.NO_COLON
    name = field.lower()
    kind = line_kind_of(name)
    if name not in _NAMES and kind is not LineKind.OTHER:
        oddity |= Oddity.MISSPELT
    return Line(number, kind, field, value, oddity)


def field_and_value(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return field, colon, if any, and value of a line; no field where none can be told."""
    field, colon, value = content.partition(b":")
    if not colon:
        # Google: a missing colon is forgiven where the line is exactly two words.
        match _BLANKS.split(content):
            case [field, value]:
                pass
            case _:
                return b"", b"", b""
    return field.strip(), colon, value.strip()


def line_kind_of(name: bytes) -> LineKind:
    """Return the kind of a line by its field, in lower case."""
    if name in _NAMES:
        return _NAMES[name]
    for beginning, kind in _BEGINNINGS:
        if name.startswith(beginning):
            return kind
    return LineKind.OTHER


def lines_of(*kinds: LineKind, fields: Iterable[str] = ()) -> re.Pattern[bytes]:
    """Return a search for lines of some kinds, or of other fields, with LF before each.

    They are those that ``read_line`` takes for such. A line has its value in one of two groups;
    those of the first kind are the first two.
    """
    forms = []
    for names in [*map(_names_of, kinds), *([name.encode()] for name in fields)]:
        one_word = [name for name in names if b" " not in name]
        forms += [_beginning(names) + _COLON, _beginning(one_word) + _WORD]
    return re.compile(_LINE % b"|".join(forms))


def _names_of(of: LineKind) -> list[bytes]:
    return [name for name, kind in _BEGINNINGS if kind is of]


def _beginning(names: Iterable[bytes]) -> bytes:
    """Return an expression of any of the names, in any case."""
    # A set of two letters is quicker than a flag.
    names = (
        re.sub(rb"[a-z]", lambda found: b"[%b%b]" % (found[0].upper(), found[0]), re.escape(name))
        for name in names
    )
    return b"(?:%s)" % b"|".join(names)


def text_of(body: bytes) -> bytes:
    """Return a body with LF before each line (SPEC L-1); a CR is white space before one of them."""
    mark = _BYTE_ORDER_MARK(body)
    text = b"\n" + (body[mark.end() :] if mark else body)
    if _CR in text and _LONE_CR(text):
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text[:-1] if text[-1:] == b"\n" else text


def whole_lines(text: bytes, size: int) -> bytes:
    """Return the whole lines within the first bytes of a longer text: a cut line is no line."""
    if text[size : size + 1] in (b"\n", b"\r"):
        return text[:size]
    text = text[:size]
    return text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


def as_text(value: bytes) -> str:
    """Return bytes of a file as a person reads them; those that are no UTF-8 as escapes."""
    return value.decode("utf-8", "backslashreplace")


_FIELD: Final = rb"(?=[^\s:#])(?:%s|%s)" % (_COLON, _WORD)
FIELD: Final = re.compile(_LINE % _FIELD)
"""A line of any field, with LF before it: what ``read_line`` finds a field in."""
FIELD_BUT_SITEMAP: Final = re.compile(
    _LINE % (b"(?!%s)%s" % (_beginning(_names_of(LineKind.SITEMAP)), _FIELD))
)
