"""Content codings, undone to a bound: a gzip bomb costs no more than a plain file."""

from __future__ import annotations

import zlib
from typing import Final

# Servers put charsets and the like where a coding belongs; the text is as it is.
_NO_CODING: Final = frozenset(
    {"", "identity", "none", "utf-8", "utf8", "iso-8859-1", "us-ascii", "ascii", "text/plain"}
)
_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
# Gzip is asked for. Servers send deflate unasked, some of them without the zlib format that
# RFC 9110 §8.4.1.2 asks for; both are of the library that gzip needs.
_CODINGS: Final = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _RAW)}
_MEMBER: Final = b"\x1f\x8b"
"""What each member of a gzip body begins with (RFC 1952 §2.3.1)."""
_MAX_MEMBERS: Final = 64
"""Members of a gzip body; each more costs a copy of what follows it."""
_MAX_CODINGS: Final = 5
"""Codings on top of each other; nobody needs two."""


class DecodingError(ValueError):
    """A body that is not what its Content-Encoding says, or in a coding that was not asked for.

    SPEC F-10: an invalid response.
    """


def decode(body: bytes, codings: list[str], limit: int, *, complete: bool) -> bytes:
    """Return the text of ``body``, at most ``limit`` bytes of it.

    ``codings`` are the values of Content-Encoding, in the order in which they were applied
    (RFC 9110 §8.4). Where ``complete`` is false the body was cut, and ends without a complaint.
    Raises DecodingError for a broken body, for one that ends too soon though it is complete, and
    for a coding other than gzip.
    """
    if not body:
        return body
    if len(codings) > _MAX_CODINGS:
        raise DecodingError(f"{len(codings)} content codings")
    for coding in reversed(codings):
        name = coding.strip().lower()
        if name in _NO_CODING:
            continue
        if name not in _CODINGS:
            raise DecodingError(f"a content coding that was not asked for: {name!a}")
        first, *others = _CODINGS[name]
        try:
            text = _inflate(body, first, limit, complete=complete)
        except DecodingError:
            if not others:
                raise
            text = _inflate(body, others[0], limit, complete=complete)
        body = text
        # What one coding had to be cut at can't be the whole of the next.
        complete = complete and len(body) < limit
    return body[:limit]


def _inflate(body: bytes, wbits: int, limit: int, *, complete: bool) -> bytes:
    text = bytearray()
    for _ in range(_MAX_MEMBERS):
        stream = zlib.decompressobj(wbits)
        try:
            text += stream.decompress(body, limit - len(text))
        except zlib.error as error:
            raise DecodingError(f"broken compression: {error}") from error
        if len(text) >= limit:
            return bytes(text)
        if not stream.eof:
            if complete:
                raise DecodingError("broken compression: it ends too soon")
            return bytes(text)
        body = stream.unused_data
        # RFC 1952 §2.2: there may be several members; anything else that follows is padding.
        if not body.startswith(_MEMBER):
            return bytes(text)
    raise DecodingError(f"broken compression: more than {_MAX_MEMBERS} members")
