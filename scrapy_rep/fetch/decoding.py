"""Decodes content codings and transfer codings (gzip, deflate) up to a size limit.

A small body that inflates to gigabytes (a "gzip bomb") needs no more memory than the limit.
"""

import zlib
from typing import Final

from scrapy_rep.fetch.errors import DecodingError

# Some servers send a charset or a media type in Content-Encoding. The text is not encoded then.
_NO_CODING: Final = frozenset(
    {"", "identity", "none", "utf-8", "utf8", "iso-8859-1", "us-ascii", "ascii", "text/plain"}
)
_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
# Requests accept gzip only. Some servers send deflate nevertheless, and some of these without the
# zlib format that RFC 9110 §8.4.1.2 requires. Both forms are decoded.
_CODINGS: Final = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _RAW)}
_MEMBER: Final = b"\x1f\x8b"
"""First bytes of each member of a gzip body (RFC 1952 §2.3.1)."""
_MAX_MEMBERS: Final = 64
"""Maximum number of members of a gzip body. For each, the bytes after it are copied."""
_MAX_CODINGS: Final = 5


def decode(body: bytes, codings: list[str], limit: int, *, complete: bool) -> bytes:
    """Return the first ``limit`` bytes of the decoded text of ``body``.

    ``codings`` are in the order in which they were applied. Raises DecodingError if the body is
    damaged, or ends too soon though it is ``complete``, or if a coding isn't gzip or deflate.
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
            body = _inflate(body, first, limit, complete=complete)
        except DecodingError:
            if not others:
                raise
            body = _inflate(body, others[0], limit, complete=complete)
        # A text that was cut at the limit is not complete: the next coding must accept that.
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
        # RFC 1952 §2.2: a gzip body may have several members. Other bytes after them are padding.
        if not body.startswith(_MEMBER):
            return bytes(text)
    raise DecodingError(f"broken compression: more than {_MAX_MEMBERS} members")
