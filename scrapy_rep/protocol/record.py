"""The record of a robots.txt: how the last fetches ended, and the file; and its stored form."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, get_args, get_type_hints

from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Kind, Outcome, Unavailable, Unreachable

VERSION: Final = 5
_VERSION: Final = bytes([VERSION])
_LEVEL: Final = 1
"""Compression level of zlib: half the time of the default level, for a tenth more bytes."""
_to_json: Final = json.JSONEncoder(separators=(",", ":")).encode
_OF_OUTAGE: Final = ("unreachable_since", "unreachable_for", "tries", "next_try")
_MAX_HEADER: Final = 262_144
"""Maximum size of a header in bytes. scrapy-rep writes no larger header."""
_MAX_INFLATED: Final = 4 + _MAX_HEADER + MAX_BODY_BYTES
# zlib adds 5 bytes to every 16 KiB that it can't compress, and 11 bytes in total.
MAX_ENCODED_SIZE: Final = 1 + _MAX_INFLATED + 5 * (_MAX_INFLATED // 16_384 + 1) + 11
"""Maximum size in bytes of the encoded body of a record."""


class RecordError(ValueError):
    """A stored record can't be used: it is damaged, too large, of another version or file."""


@dataclass(frozen=True, slots=True)
class Record:
    """How the last fetches of a file ended; a fetch has failed if the file is unreachable."""

    origin: Origin
    last: Outcome
    copy: Available | None = None
    """``last`` if that is available; after a failed fetch the last file that was, if any."""
    unreachable_since: float | None = None
    """Time of the first failed fetch in a row, in seconds since the epoch; None if the last has not
    failed. It is only shown to users, as the clock may have been set since then."""
    unreachable_for: float = 0.0
    """Seconds for which the file has been unreachable."""
    tries: int = 0
    next_try: float | None = None
    """Time of the next fetch, in seconds since the epoch; None if the last fetch has not failed, or
    if this process doesn't try again."""
    may_have_copy: bool = False
    """Whether the store, which could not be read, may have a copy. This is not stored."""

    @property
    def of_origin(self) -> bool:
        """Whether the last outcome is that of the origin itself; other outcomes are not stored."""
        return isinstance(self.last, Available) or self.last.of_origin

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return the state and the copy as bytes; None if the copy that is stored stays."""
        if not self.of_origin:
            raise ValueError("what is not the origin's own answer is not stored")
        evidence = _without_defaults(self.last.evidence)
        body: bytes | None = None
        if isinstance(self.last, Available):
            head = _to_json(evidence).encode()
            evidence = {"at": self.last.evidence.at}  # the rest is in the body
            inflated = len(head).to_bytes(4, "big") + head + self.last.body
            body = _VERSION + zlib.compress(inflated, _LEVEL)
        elif isinstance(self.last, Unavailable):
            body = b""
        state = {
            "origin": str(self.origin),
            "last": {"kind": self.last.kind.value, **evidence},
            **{name: getattr(self, name) for name in _OF_OUTAGE},
        }
        return _VERSION + _to_json(state).encode(), body

    @classmethod
    def decode(cls, state: bytes, body: bytes, key: str) -> Record:
        """Return the record that ``encode`` wrote for the origin ``key``; raises RecordError."""
        try:
            return _decode(state, body, key)
        # Damaged data may raise any error; callers treat a RecordError as a missing record.
        except Exception as error:
            raise RecordError(f"damaged record: {error!r}") from error


def _decode(state: bytes, body: bytes, key: str) -> Record:
    if state[:1] != _VERSION or body[:1] not in {_VERSION, b""}:
        raise RecordError("record of another version")
    if len(state) > _MAX_HEADER or len(body) > MAX_ENCODED_SIZE:
        raise RecordError("record above the limit")
    header = json.loads(state[1:])
    origin = origin_of(header["origin"])
    if not header["origin"] == str(origin) == key:
        raise RecordError("record of another file")
    last = dict(header["last"])
    kind = Kind(last.pop("kind"))
    outage = {name: header[name] for name in _OF_OUTAGE}
    _check_types(outage)
    if outage["unreachable_for"] < 0 or outage["tries"] < 0:
        raise RecordError("record with negative numbers")
    is_up = {outage["unreachable_since"] is None, outage["next_try"] is None}
    if is_up != {kind is not Kind.UNREACHABLE}:
        raise RecordError("record that contradicts itself")
    copy = _copy_of(body) if body and kind is not Kind.UNAVAILABLE else None
    if kind is Kind.AVAILABLE:
        if copy is None or copy.evidence.at != last["at"]:
            raise RecordError("record without its text")
        return Record(origin, copy, copy, **outage)
    failed = Unavailable if kind is Kind.UNAVAILABLE else Unreachable
    return Record(origin, failed(_evidence_of(**last)), copy, **outage)


def _copy_of(body: bytes) -> Available:
    inflater = zlib.decompressobj()
    inflated = inflater.decompress(body[1:], _MAX_INFLATED)
    if not inflater.eof or inflater.unused_data:
        raise RecordError("record that is too large, cut, or followed by other data")
    end = 4 + int.from_bytes(inflated[:4], "big")
    text = inflated[end:]
    if end - 4 > _MAX_HEADER or len(text) > MAX_BODY_BYTES:
        raise RecordError("record with too large a header or body")
    return Available(text, _evidence_of(**json.loads(inflated[4:end])))


_TYPES: Final = {
    name: get_args(hint) or (hint,)
    for of in (Record, Evidence)
    for name, hint in get_type_hints(of).items()
}
_DEFAULTS: Final = {field.name: field.default for field in fields(Evidence)}


def _without_defaults(evidence: Evidence) -> dict[str, Any]:
    return {name: value for name, value in asdict(evidence).items() if value != _DEFAULTS[name]}


def _evidence_of(hops: Any = (), **values: Any) -> Evidence:
    """Return the evidence with these fields of JSON, which are not trusted. Raises any error."""
    _check_types(values)
    if not isinstance(hops, list | tuple) or not all(isinstance(hop, str) for hop in hops):
        raise RecordError("record with hops that are none")
    return Evidence(hops=tuple(hops), **values)


def _check_types(values: dict[str, Any]) -> None:
    for name, value in values.items():
        is_finite = type(value) is not float or math.isfinite(value)
        if type(value) not in _TYPES[name] or not is_finite:
            raise RecordError(f"record with a {name} of another type")
