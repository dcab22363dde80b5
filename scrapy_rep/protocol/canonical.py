r"""The canonical form in which octets of patterns and targets are compared (RFC 9309 §2.2.2).

Patterns and targets must be converted exactly once: a second conversion could change them again,
because a ``%`` that begins no escape is not changed (``%%41a`` becomes ``%Aa``).

The result is printable ASCII. Octets that may not occur in a URI (RFC 3986 §2) are escaped:
controls, space, ``"<>\^`{|}``, and all above 0x7E. Unreserved characters are never escaped.
Reserved characters stay raw or escaped, as written, and the two differ, with two exceptions. ``*``
and ``$`` of a target are always escaped, so that in a pattern a raw ``*``, and a raw ``$`` at the
end, are operators. And behind the first raw ``?``, ``:``, ``/``, ``?`` and ``@`` are never escaped:
in a query they are data (RFC 3986 §3.4), and RFC 9309 §2.2.2 has ``?baz=https://foo.bar`` equal to
``?baz=https%3A%2F%2Ffoo.bar``. These escapes are undone last, so that texts that are equal without
this step are equal with it.
"""

import re
from itertools import product
from string import hexdigits
from typing import Final
from urllib.parse import quote

_ESCAPE: Final = tuple(b"%%%02X" % octet for octet in range(256))
# ``quote`` leaves the unreserved characters of RFC 3986 §2.3 as they are.
_FORM_OF_ESCAPE: Final = {
    digits.encode(): quote(bytes.fromhex(digits), safe="").encode()
    for digits in map("".join, product(hexdigits, repeat=2))
}

# Characters that are not escaped: unreserved and reserved ones (RFC 3986 §2.2), without * and $.
PLAIN: Final = r"A-Za-z0-9\-._~!&'()+,;=:@/?#\[\]"
# The escapes in canonical form: of all octets but the unreserved ones, with upper-case digits.
_NEEDED_ESCAPE: Final = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
# Those of them that are needed in a query, too: without those in QUERY_DATA.
NEEDED_IN_QUERY: Final = "%(?:[0189A-F][0-9A-F]|2[0-9A-C]|3[B-E]|5[B-E]|60|7[BCDF])"
QUERY_DATA: Final = {"%2F": "/", "%3A": ":", "%3F": "?", "%40": "@"}
"""The characters that are not escaped in a query, by their escapes."""
_HAS_NEEDED_ESCAPES: Final = re.compile(f"[{PLAIN}]*(?:{_NEEDED_ESCAPE}[{PLAIN}]*)*").fullmatch
_PLAIN_IN_PATTERNS: Final = bytes(
    octet for octet in range(256) if re.match(rf"[{PLAIN}*$\n]", chr(octet))
)

_PLAIN_IN_TARGET: Final = _PLAIN_IN_PATTERNS.translate(None, b"*$\n")
_DOLLAR: Final = ord("$")
_PERCENT: Final = ord("%")
_OTHER_ESCAPE: Final = re.compile(rb"%%(?!%s)[0-9A-Fa-f]{2}" % _NEEDED_ESCAPE[1:].encode()).search


class Target(str):
    """A canonical target that has lost an escape, which its form as ``written`` still has."""

    __slots__ = ("written",)
    written: str
    """The target as written: only octets that may not occur in a URI are escaped."""


def canonical_target(target: str) -> str:
    """Return path and query in canonical form: a ``Target`` if that differs from the written."""
    written = form = target
    if not _HAS_NEEDED_ESCAPES(target):
        octets = _escaped(target.encode("utf-8", "surrogatepass"), _PLAIN_IN_TARGET)
        written, form = octets.decode("ascii"), _with_canonical_escapes(octets).decode("ascii")
    form = _with_query_data(form)
    if form != written:
        form = Target(form)
        form.written = written
    return form


def written_patterns(values: bytes) -> bytes:
    """Return values of rules, one per line, as written, but what may not occur in a URI."""
    values = _escaped(values, _PLAIN_IN_PATTERNS)
    if _DOLLAR in values:
        # NUL, which no value contains, marks each dollar that is an operator.
        values = (values + b"\n").replace(b"$\n", b"\0")
        values = values.replace(b"$", _ESCAPE[_DOLLAR]).replace(b"\0", b"$\n")[:-1]
    return values


def canonical_patterns(values: bytes) -> str:
    """Return values of rules, one per line, in canonical form; operators stay raw."""
    values = written_patterns(values)
    if _PERCENT not in values:
        return values.decode("ascii")
    forms = _with_canonical_escapes(values).decode("ascii")
    if "?" in forms and any(escape in forms for escape in QUERY_DATA):
        forms = "\n".join(map(_with_query_data, forms.split("\n")))
    return forms


def as_query_data(text: str) -> str:
    """Return a canonical text in the form that it has in a query: with raw ``: / ? @``."""
    if "%" in text:
        for escape, character in QUERY_DATA.items():
            text = text.replace(escape, character)
    return text


def _with_query_data(form: str) -> str:
    path, question, query = form.partition("?")
    return path + question + as_query_data(query)


def _escaped(octets: bytes, plain: bytes) -> bytes:
    """Escape the octets that are not in ``plain``, except ``%``."""
    # Escaping the octet behind a % that begins no escape doesn't make an escape of both: the new
    # text behind this % begins with another %.
    for octet in set(octets.translate(None, plain + b"%")):
        octets = octets.replace(b"%c" % octet, _ESCAPE[octet])
    return octets


def _with_canonical_escapes(octets: bytes) -> bytes:
    if not _OTHER_ESCAPE(octets):
        return octets
    return b"\n".join(map(_normalise_escapes, octets.split(b"\n")))


def _normalise_escapes(line: bytes) -> bytes:
    first, *parts = line.split(b"%")
    forms = [_FORM_OF_ESCAPE.get(part[:2], b"%" + part[:2]) + part[2:] for part in parts]
    return first + b"".join(forms)
