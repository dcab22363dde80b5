"""The lexer of robots.txt: finds kind, field and value of each line, and its oddities.

``lex`` yields every line, for the linter. The parser needs only some lines, which ``Contents``
finds by the patterns of this module.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum, Flag, auto
from functools import lru_cache
from typing import Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_LINE_BYTES


class LineKind(Enum):
    """The kind of a line: that of its field in RFC 9309, other fields, empty, or invalid."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    OTHER = "other"
    """A field that is not in RFC 9309, such as ``Crawl-delay``."""
    EMPTY = "empty"
    """A line without content, or with a comment only."""
    INVALID = "invalid"
    """A line without a field: its text is the value. It is skipped (SPEC L-3)."""


class Oddity(Flag):
    """Errors in a line in spite of which it is read."""

    NONE = 0
    MISSPELT = auto()
    """The field begins with a known misspelling, or is a known name with more characters."""
    NO_COLON = auto()
    """The line has two words without a colon; the first word is the field."""
    NUL = auto()
    """The line has a NUL; it and the bytes after it are ignored."""
    CUT = auto()
    """The line has more than 16,663 bytes before a comment; the bytes after them are ignored."""


class Line(NamedTuple):
    """A line: its number (1-based), kind, field and value as written, and oddities."""

    number: int
    kind: LineKind
    field: bytes
    value: bytes
    oddity: Oddity


# As in Google's parser, a field has the kind of the first name below with which it begins; upper
# and lower case are the same. The accepted misspellings are tried last (SPEC L-5).
_OF_RFC: Final = (LineKind.USER_AGENT, LineKind.ALLOW, LineKind.DISALLOW, LineKind.SITEMAP)
_NAMES: Final = {kind.value.encode(): kind for kind in _OF_RFC}
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
_BEGINNINGS: Final = {**_NAMES, **_MISSPELT}
_ANY_BEGINNING: Final = tuple(_BEGINNINGS)

# Patterns of the text of a line after the name of its field. Their regex group is the value: the
# text after the colon, or the second of two words.
_COLON: Final = rb"[^:#\n]*:([^#\n]*)[^\n]*"
_WORD: Final = rb"[^ \t:#\n]*[ \t]+([^ \t:#\n]*[^\s:#\n])[ \t\v\f\r]*(?![^#\n])[^\n]*"
_LINE: Final = rb"\n[ \t\v\f]*(?:%s)"

BYTE_ORDER_MARK: Final = re.compile(rb"\xef(?:\xbb\xbf?)?").match
_LONE_CR: Final = re.compile(rb"\r(?!\n)").search
_TWO_WORDS: Final = re.compile(rb"([^ \t]+)[ \t]+([^ \t]+)").fullmatch
_CONTENT: Final = re.compile(rb"\n[ \t\v\f\r]*[^\s#]").search
_CR: Final = ord("\r")


def lex(body: bytes) -> Iterator[Line]:
    """Yield every line of a robots.txt body, which may be any bytes."""
    for number, raw in enumerate(split_lines(body), 1):
        content = raw.partition(b"#")[0].partition(b"\0")[0]
        oddity = Oddity.NONE
        if len(content) > MAX_LINE_BYTES:
            oddity |= Oddity.CUT
        if b"\0" in raw[: min(len(content) + 1, MAX_LINE_BYTES)]:
            oddity |= Oddity.NUL
        line = read_line(number, content[:MAX_LINE_BYTES])
        yield line._replace(oddity=line.oddity | oddity) if oddity else line


def read_line(number: int, content: bytes) -> Line:
    """Return the line with this content, which the caller has cut at NUL and MAX_LINE_BYTES."""
    content = content.partition(b"#")[0].strip()
    if not content:
        return Line(number, LineKind.EMPTY, b"", b"", Oddity.NONE)
    field, colon, value = content.partition(b":")
    if not colon:
        # As in Google's parser, the colon may be missing if the line has exactly two words.
        words = _TWO_WORDS(content)
        field, value = words.groups() if words else (b"", b"")
    field, value = field.strip(), value.strip()
    if not field:
        return Line(number, LineKind.INVALID, b"", content, Oddity.NONE)
    oddity = Oddity.NONE if colon else Oddity.NO_COLON
    name = field.lower()
    kind = _NAMES.get(name, LineKind.OTHER)
    if kind is LineKind.OTHER and name.startswith(_ANY_BEGINNING):
        kind = next(kind for begin, kind in _BEGINNINGS.items() if name.startswith(begin))
        oddity |= Oddity.MISSPELT
    return Line(number, kind, field, value, oddity)


@lru_cache
def line_pattern(*kinds: LineKind, fields: tuple[str, ...] = ()) -> re.Pattern[bytes]:
    """Return a pattern that matches the lines of these kinds or fields, with the LF before each.

    ``fields`` are in lower case; a field that only begins with one is matched, too. There are two
    regex groups for each kind, then two for each field; one of all these groups has the value.
    """
    forms, letters = [], b""
    for names in [*map(_names_of, kinds), *([name.encode()] for name in fields)]:
        one_word = [name for name in names if b" " not in name]
        forms += [_any_case_pattern(names) + _COLON, _any_case_pattern(one_word) + _WORD]
        letters += b"".join(name[:1] + name[:1].upper() for name in names)
    # The letters first: most lines of an HTML page begin with another character.
    return re.compile(_LINE % (b"(?=[%b])(?:%b)" % (letters, b"|".join(forms))))


def _names_of(of: LineKind) -> list[bytes]:
    return [name for name, kind in _BEGINNINGS.items() if kind is of]


def _any_case_pattern(names: Iterable[bytes]) -> bytes:
    # A set such as [Aa] is faster than the flag re.IGNORECASE.
    names = (
        re.sub(rb"[a-z]", lambda found: b"[%b%b]" % (found[0].upper(), found[0]), re.escape(name))
        for name in names
    )
    return b"(?:%s)" % b"|".join(names)


def split_lines(body: bytes) -> list[bytes]:
    """Return the lines of a body, without byte order mark and line ends."""
    return [line.removesuffix(b"\r") for line in normalise_lines(body).split(b"\n")[1:]]


def normalise_lines(body: bytes) -> bytes:
    """Return a body without byte order mark, with LF before each line, not behind the last one.

    A CR before LF may stay, as white space at the end of a line; another becomes LF (SPEC L-1).
    """
    mark = BYTE_ORDER_MARK(body)
    text = b"\n" + (body[mark.end() :] if mark else body)
    if _CR in text and _LONE_CR(text):
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text[:-1] if text[-1:] == b"\n" else text


FIELDS_OF_GROUPS: Final = ("crawl-delay", "request-rate", "visit-time", "noindex", "content-usage")
"""Fields outside RFC 9309 that some crawlers read, in groups."""
FIELDS_OF_FILES: Final = ("host", "clean-param", "content-signal", "content-signals", "license")
"""The same wherever they stand."""


def has_known_line(body: bytes) -> bool:
    """Return whether a line has a field of RFC 9309, or one that some crawlers read."""
    pattern = line_pattern(*_OF_RFC, fields=FIELDS_OF_GROUPS + FIELDS_OF_FILES)
    return pattern.search(normalise_lines(body)) is not None


def is_robotstxt(body: bytes) -> bool:
    """Return whether a body has a known line, or nothing but blanks and comments."""
    return has_known_line(body) or _CONTENT(normalise_lines(body)) is None


def whole_lines(text: bytes, size: int) -> bytes:
    """Return the complete lines, maybe none, in the first ``size`` bytes of a longer text."""
    if text[size : size + 1] in (b"\n", b"\r"):
        return text[:size]
    text = text[:size]
    return text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


def as_text(value: bytes) -> str:
    """Return bytes of a file as text; bytes that are not UTF-8 become escapes."""
    return value.decode("utf-8", "backslashreplace")


_FIELD: Final = rb"(?=[^\s:#])(?:%s|%s)" % (_COLON, _WORD)
FIELD: Final = re.compile(_LINE % _FIELD)
"""Matches a line in which ``read_line`` finds a field, with the LF before it."""
FIELD_BUT_SITEMAP: Final = re.compile(
    _LINE % (b"(?!%s)%s" % (_any_case_pattern(_names_of(LineKind.SITEMAP)), _FIELD))
)
