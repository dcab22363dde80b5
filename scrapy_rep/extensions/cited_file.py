"""The robots.txt to which evidence and report refer, and the form of times and JSON in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Final

from scrapy_rep.protocol.fetch_policy import Access
from scrapy_rep.protocol.outcome import Evidence
from scrapy_rep.protocol.record import Record

_LAST: Final = datetime(9999, 12, 31, tzinfo=timezone.utc).timestamp()
encode_json: Final = json.JSONEncoder(separators=(",", ":"), default=str).encode
"""Returns a value as JSON in ASCII. Values that JSON has no type for become strings."""


def iso_time(seconds: float) -> str:
    """Return a time in seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    # The time may come from a record in a store, which may have any time: it is limited.
    whole, milliseconds = divmod(int(min(max(0.0, seconds), _LAST) * 1_000), 1_000)
    return f"{_iso_second(whole)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _iso_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}"


@dataclass(eq=False)
class CitedFile:
    """A robots.txt or tdmrep.json that decided on requests, or the file of an override.

    The thread that writes the evidence computes ``sha256`` and ``as_json``, which keep their values
    then, before it removes the body. With WARC it sets ``record_id``.
    """

    url: str
    outcome: str
    """``available``, ``unavailable``, ``unreachable``, or ``override`` for an override's file."""
    asked: float
    """When the last fetch ended, in seconds since the epoch."""
    status: int | None = None
    error: str | None = None
    hops: tuple[str, ...] = ()
    size: int = 0
    """Size in bytes of the text with the valid rules; if there is none, that of the last fetch."""
    truncated: bool = False
    fetched: float | None = None
    """When the text with the valid rules was fetched, in seconds since the epoch; None if no rules
    are valid."""
    body: bytes | None = None
    """The text with the valid rules. None if there is none, and after the text was written."""
    answer: Evidence | None = None
    """The evidence of the fetch of the text; without a text, of the last fetch. It may be a fetch
    before the last one if robots.txt is unreachable and the rules of its copy are used."""
    record_id: str | None = None
    """ID of the WARC record with the text; None until it is written."""

    @classmethod
    def from_record(cls, record: Record, access: Access) -> CitedFile:
        """Return the file of ``record``. Its text is that whose rules ``access`` makes valid."""
        last, copy = record.last.evidence, access.copy
        answer = last if copy is None else copy.evidence
        body = None if copy is None else copy.body
        return cls(
            url=record.file.url,
            outcome=record.last.kind.value,
            asked=last.at,
            status=last.status,
            error=last.error,
            hops=answer.hops,
            size=last.size if body is None else len(body),
            truncated=answer.truncated,
            fetched=None if copy is None else answer.at,
            body=body,
            answer=answer,
        )

    @cached_property
    def sha256(self) -> str | None:
        """SHA-256 of the text, in hex; None without a text."""
        return None if self.body is None else sha256(self.body).hexdigest()

    @cached_property
    def as_json(self) -> str:
        """The values about the file as a JSON object, for lines of the evidence."""
        return encode_json({
            "url": self.url,
            "outcome": self.outcome,
            "status": self.status,
            "error": self.error,
            "hops": self.hops,
            "asked": iso_time(self.asked),
            "sha256": self.sha256,
            "size": self.size,
            "truncated": self.truncated,
            "fetched": None if self.fetched is None else iso_time(self.fetched),
        })  # fmt: skip
