r"""Percent-encoding, brought to the one form in which octets are compared (RFC 9309 §2.2.2).

Applied once to patterns and once to targets; it is not idempotent, since a stray ``%`` stays as it
is (``%%41a`` becomes ``%Aa``).

The result is printable ASCII. An octet that no URI may hold as it is (RFC 3986 §2) has its escape
as its only form: controls, space, ``"<>\^`{|}``, and all above 0x7E. An unreserved character has
its raw form only. A reserved one has both, and they differ, but for ``*`` and ``$``: as characters
of a path these are always escaped, so that in a pattern a raw ``*``, and a raw ``$`` at the end,
are operators and nothing else.
"""

from __future__ import annotations

import re
from typing import Final

_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"  # RFC 3986 §2.3
)
_HEX_DIGITS: Final = "0123456789ABCDEFabcdef"
_ESCAPE: Final = tuple(b"%%%02X" % octet for octet in range(256))
_FORM_OF_ESCAPE: Final = {
    digits: bytes([octet]) if octet in _UNRESERVED else _ESCAPE[octet]
    for digits, octet in (
        ((high + low).encode(), int(high + low, 16)) for high in _HEX_DIGITS for low in _HEX_DIGITS
    )
}

# What already is in canonical form: unreserved and reserved characters (RFC 3986 §2.2).
PLAIN: Final = r"A-Za-z0-9\-._~!&'()+,;=:@/?#\[\]"
# And escapes of all other octets, with upper-case digits.
NEEDED_ESCAPE: Final = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_CANONICAL_TARGET: Final = re.compile(f"[{PLAIN}]*(?:{NEEDED_ESCAPE}[{PLAIN}]*)*").fullmatch
_PLAIN_IN_PATTERNS: Final = bytes(
    octet for octet in range(256) if re.match(rf"[{PLAIN}*$\n]", chr(octet))
)

# A search is quick where a pattern begins with one character, or set of them, and not with a run.
_UNSAFE: Final = rb'\x0b-\x20"<>\\^`{|}\x7f-\xff'
_ESCAPE_TARGET: Final = re.compile(rb"[\x00-\x0a%s*$][\x00-\x0a%s*$]*" % (_UNSAFE, _UNSAFE)).sub
_ESCAPE_PATTERNS: Final = re.compile(rb"[\x00-\x09%s][\x00-\x09%s]*" % (_UNSAFE, _UNSAFE)).sub
_DOLLAR: Final = ord("$")
_ESCAPE_DOLLARS: Final = re.compile(rb"\$\$*(?![\n]|\Z)").sub
_OTHER_ESCAPE: Final = rb"%%(?!%s)[0-9A-Fa-f]{2}" % NEEDED_ESCAPE[1:].encode()
_CHANGE_ESCAPES: Final = re.compile(rb"%s(?:%s)*" % (_OTHER_ESCAPE, _OTHER_ESCAPE)).sub


def canonical_target(target: str) -> str:
    """Return a path with its query, without fragment, in canonical form.

    Characters outside ASCII stand for their UTF-8; a lone surrogate is encoded like any other code
    point, so that nothing raises.
    """
    if _CANONICAL_TARGET(target):
        return target
    octets = _ESCAPE_TARGET(_escaped, target.encode("utf-8", "surrogatepass"))
    return _CHANGE_ESCAPES(_form_of_escapes, octets).decode("ascii")


def canonical_patterns(values: bytes) -> str:
    """Return values of rules, a line each, in canonical form: ``*`` and a last ``$`` operate."""
    if values.translate(None, _PLAIN_IN_PATTERNS):
        # No stray % becomes an escape by what is escaped behind it: that begins with % itself.
        values = _CHANGE_ESCAPES(_form_of_escapes, _ESCAPE_PATTERNS(_escaped, values))
    if _DOLLAR in values:
        values = _ESCAPE_DOLLARS(_escaped, values)
    return values.decode("ascii")


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"".join([_ESCAPE[octet] for octet in match[0]])


def _form_of_escapes(match: re.Match[bytes]) -> bytes:
    return b"".join([_FORM_OF_ESCAPE[digits] for digits in match[0][1:].split(b"%")])
