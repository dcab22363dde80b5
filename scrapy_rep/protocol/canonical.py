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
_NEEDED_ESCAPE: Final = r"%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_CANONICAL_TARGET: Final = re.compile(f"[{PLAIN}]*(?:{_NEEDED_ESCAPE}[{PLAIN}]*)*").fullmatch

_ESCAPES: Final = rb"(?:%[0-9A-Fa-f]{2})+"
_UNSAFE: Final = rb'\x0b-\x20"<>\\^`{|}\x7f-\xff'
_FORM_OF_UNSAFE: Final = {
    octet: _ESCAPE[octet].decode()
    for octet in range(256)
    if re.match(rb"[\x00-\x09" + _UNSAFE + rb"]", bytes([octet]))
}
_CHANGES_TARGET: Final = re.compile(_ESCAPES + rb"|[\x00-\x0a" + _UNSAFE + rb"*$]+").sub
_CHANGES_PATTERN: Final = re.compile(_ESCAPES + rb"|[\x00-\x0a" + _UNSAFE + rb"]+|\$+(?!\Z)").sub
_INNER_DOLLAR: Final = re.compile(rb"\$(?![\n]|\Z)").search
_PLAIN_OCTETS: Final = bytes(
    octet for octet in range(256) if re.match(rf"[{PLAIN}*$\n]", chr(octet))
)


def _one_form(match: re.Match[bytes]) -> bytes:
    """Return the form of a run of escapes, or of characters that have to be escaped."""
    run = match[0]
    if run[:1] == b"%":
        return b"".join([_FORM_OF_ESCAPE[digits] for digits in run[1:].split(b"%")])
    return b"".join([_ESCAPE[octet] for octet in run])


def canonical_target(target: str) -> str:
    """Return a path with its query, without fragment, in canonical form.

    Characters outside ASCII stand for their UTF-8; a lone surrogate is encoded like any other code
    point, so that nothing raises.
    """
    if _CANONICAL_TARGET(target):
        return target
    return _CHANGES_TARGET(_one_form, target.encode("utf-8", "surrogatepass")).decode("ascii")


def canonical_patterns(values: bytes) -> str:
    """Return values of rules, a line each, in canonical form: ``*`` and a last ``$`` operate."""
    has_dollar = _INNER_DOLLAR(values)
    if has_dollar or values.translate(None, _PLAIN_OCTETS):
        if b"%" not in values and not has_dollar:
            return values.decode("latin-1").translate(_FORM_OF_UNSAFE)
        values = b"\n".join(
            [
                _CHANGES_PATTERN(_one_form, value)
                if value.translate(None, _PLAIN_OCTETS) or b"$" in value[:-1]
                else value
                for value in values.split(b"\n")
            ]
        )
    return values.decode("ascii")
