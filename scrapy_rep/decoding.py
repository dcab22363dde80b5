"""Content codings, undone to a bound: a gzip bomb costs no more than a plain file."""

from __future__ import annotations

import importlib
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# Servers put charsets and the like where a coding belongs; the text is as it is.
_NO_CODING: Final = frozenset(
    {"", "identity", "none", "utf-8", "utf8", "iso-8859-1", "us-ascii", "ascii", "text/plain"}
)


_MAX_MEMBERS: Final = 64
"""Members of a gzip body, frames of a zstd one; each more costs a copy of what follows it."""
_MAX_CODINGS: Final = 5
"""Codings on top of each other; nobody needs two."""


class DecodingError(ValueError):
    """A body that is not what its Content-Encoding says (SPEC F-10: an invalid response)."""


class _Decoder(Protocol):
    """Undoes one coding, at most ``limit`` bytes of it; ``complete`` tells whether it ended."""

    def __call__(self, body: bytes, limit: int, *, complete: bool) -> bytes: ...


def decode(body: bytes, codings: list[str], limit: int, *, complete: bool) -> bytes:
    """Return the text of ``body``, at most ``limit`` bytes of it.

    ``codings`` are the values of Content-Encoding, in the order in which they were applied
    (RFC 9110 §8.4). Where ``complete`` is false the body was cut, and ends without a complaint.
    Raises DecodingError for a broken body, for one that ends too soon though it is complete, and
    for a coding that nobody knows.
    """
    if not body:
        return body
    if len(codings) > _MAX_CODINGS:
        raise DecodingError(f"{len(codings)} content codings on top of each other")
    for coding in reversed(codings):
        name = coding.strip().lower()
        if name in _NO_CODING:
            continue
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise DecodingError(f"unknown content coding {name!a}")
        body = decoder(body, limit, complete=complete)
        # What one coding had to be cut at can't be the whole of the next.
        complete = complete and len(body) < limit
    return body[:limit]


def _members(  # noqa: PLR0913 - each by name
    body: bytes,
    limit: int,
    *,
    complete: bool,
    start: Callable[[], Any],
    error: type[Exception],
    begins: Callable[[bytes], bool],
    what: str,
) -> bytes:
    """Undo one compressed stream after another, as long as ``begins`` says that one follows."""
    text = bytearray()
    for _ in range(_MAX_MEMBERS):
        stream = start()
        try:
            text += stream.decompress(body, limit - len(text))
        except error as why:
            raise DecodingError(str(why)) from why
        if len(text) >= limit:
            return bytes(text)
        if not stream.eof:
            if complete:
                raise DecodingError("compressed body ends too soon")
            return bytes(text)
        body = stream.unused_data
        if not begins(body):
            return bytes(text)
    raise DecodingError(f"more than {_MAX_MEMBERS} {what}")


def _zlib(wbits: int) -> _Decoder:
    def inflate(body: bytes, limit: int, *, complete: bool) -> bytes:
        return _members(
            body,
            limit,
            complete=complete,
            start=lambda: zlib.decompressobj(wbits),
            error=zlib.error,
            # RFC 1952 §2.2: a gzip body may have several members; anything else that follows is
            # padding.
            begins=lambda rest: rest.startswith(b"\x1f\x8b"),
            what="members of a gzip body",
        )

    return inflate


def _deflate(body: bytes, limit: int, *, complete: bool) -> bytes:
    # Some servers send raw deflate where RFC 9110 §8.4.1.2 asks for zlib's format.
    try:
        return _zlib(zlib.MAX_WBITS)(body, limit, complete=complete)
    except DecodingError:
        return _zlib(-zlib.MAX_WBITS)(body, limit, complete=complete)


def _brotli(body: bytes, limit: int, *, complete: bool) -> bytes:
    brotli = _load("brotli", "brotlicffi")
    stream = brotli.Decompressor()
    try:
        text: bytes = stream.process(body, output_buffer_limit=limit)
        while len(text) < limit and not stream.is_finished():
            more = stream.process(b"", output_buffer_limit=limit - len(text))
            if not more:
                break
            text += more
    except brotli.error as error:
        raise DecodingError(str(error)) from error
    if complete and len(text) < limit and not stream.is_finished():
        raise DecodingError("compressed body ends too soon")
    return text


def _zstd(body: bytes, limit: int, *, complete: bool) -> bytes:
    zstd = _load("compression.zstd", "backports.zstd")
    # RFC 9659 §3: a zstd window of more than 8 MiB is not for the web.
    options = {zstd.DecompressionParameter.window_log_max: 23}
    return _members(
        body,
        limit,
        complete=complete,
        start=lambda: zstd.ZstdDecompressor(options=options),
        error=zstd.ZstdError,
        begins=bool,  # RFC 8878 §3: a body may have several frames, and nothing else
        what="frames of a zstd body",
    )


def _load(*names: str) -> Any:
    for name in names:
        with suppress(ImportError):
            return importlib.import_module(name)
    # Scrapy asks only for codings that it can undo, and so this server sent what nobody asked for.
    raise DecodingError(f"no library for this content coding: {' or '.join(names)}")


_gzip: Final = _zlib(zlib.MAX_WBITS | 16)
_DECODERS: Final[dict[str, Callable[..., bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
