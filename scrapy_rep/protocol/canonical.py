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
_ESCAPE: Final = {octet: b"%%%02X" % octet for octet in range(256)}
_FORM_OF_ESCAPE: Final = {
    octet: bytes([octet]) if octet in _UNRESERVED else _ESCAPE[octet] for octet in range(256)
}

# What already is in canonical form: unreserved and reserved characters (RFC 3986 §2.2).
PLAIN: Final = r"A-Za-z0-9\-._~!&'()+,;=:@/?#\[\]"
_PLAIN_TARGET: Final = re.compile(f"[{PLAIN}]*").fullmatch

# Each begins with the set of what may have to change, which the regular expression engine skips to.
_UNSAFE: Final = rb'\x0b-\x20"<>\\^`{|}\x7f-\xff'
_ESCAPE_DIGITS: Final = rb"(?<=%)([0-9A-Fa-f]{2})"
_CHANGES_TARGET: Final = re.compile(
    rb"[\x00-\x0a" + _UNSAFE + rb"%*$](?:" + _ESCAPE_DIGITS + rb"|(?<!%))"
).sub
_CHANGES_PATTERNS: Final = re.compile(
    rb"[\x00-\x09" + _UNSAFE + rb"%](?:" + _ESCAPE_DIGITS + rb"|(?<!%))|\$(?![\n]|\Z)"
).sub
_INNER_DOLLAR: Final = re.compile(rb"\$(?![\n]|\Z)").search
_PLAIN_OCTETS: Final = bytes(
    octet for octet in range(256) if re.match(rf"[{PLAIN}*$\n]", chr(octet))
)


def _one_form(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    return _FORM_OF_ESCAPE[int(escape, 16)] if escape else _ESCAPE[ord(match[0])]


def canonical_target(target: str) -> str:
    """Return a path with its query, without fragment, in canonical form.

    Characters outside ASCII stand for their UTF-8; a lone surrogate is encoded like any other code
    point, so that nothing raises.
    """
    if _PLAIN_TARGET(target):
        return target
    return _CHANGES_TARGET(_one_form, target.encode("utf-8", "surrogatepass")).decode("ascii")


def canonical_patterns(values: bytes) -> bytes:
    """Return values of rules in canonical form: ``*`` and a ``$`` at the end are operators.

    Values are given together, a line feed between them, which none of them can hold.
    """
    if values.translate(None, _PLAIN_OCTETS) or _INNER_DOLLAR(values):
        values = _CHANGES_PATTERNS(_one_form, values)
    return values
