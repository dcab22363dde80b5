"""The lines of the evidence, and the robots.txt that they refer to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from scrapy_rep.overrides import Override
    from scrapy_rep.protocol.outcome import Evidence
    from scrapy_rep.protocol.policy import Access
    from scrapy_rep.protocol.record import Record

_BLOCK: Final = 64 * 1024
_LAST: Final = datetime(9999, 12, 31, tzinfo=timezone.utc).timestamp()
as_json: Final = json.JSONEncoder(separators=(",", ":"), default=str).encode
"""Returns a value as JSON in ASCII; values without a JSON type become strings."""


def iso(seconds: float) -> str:
    """Return a time in seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    # A record in a store may have any time.
    whole, milliseconds = divmod(int(min(max(0.0, seconds), _LAST) * 1_000), 1_000)
    return f"{_iso_second(whole)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _iso_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}"


def of_override(override: Override) -> dict[str, Any]:
    """Return the values of an override."""
    return {
        "host": override.host,
        "policy": override.policy,
        "reason": override.reason,
        "until": override.until_text,
    }


@dataclass(eq=False)
class RobotsFile:
    """A robots.txt by which requests were decided, or the file of an override.

    The writing thread computes ``sha256`` and ``as_json`` before it drops the body.
    """

    url: str
    outcome: str
    """``available``, ``unavailable``, ``unreachable``, or ``override`` for the file of one."""
    asked: float
    """When the last fetch ended, seconds since the epoch."""
    status: int | None = None
    """HTTP status of the last fetch."""
    error: str | None = None
    hops: tuple[str, ...] = ()
    size: int = 0
    """Bytes of decoded text."""
    truncated: bool = False
    fetched: float | None = None
    """When the text with the valid rules was fetched; None if there is none."""
    body: bytes | None = None
    """The text, until it is written."""
    answer: Evidence | None = None
    """The evidence of the fetch of the text; if robots.txt is unreachable, of an earlier one."""
    record_id: str | None = None
    """ID of the WARC record with the text, after it is written."""

    @classmethod
    def from_record(cls, record: Record, access: Access) -> RobotsFile:
        """Return the file of ``record``, with the text that is valid by ``access``."""
        last, copy = record.last.evidence, access.copy
        answer = last if copy is None else copy.evidence
        body = None if copy is None else copy.body
        return cls(
            url=record.file.url,
            outcome=type(record.last).__name__.lower(),
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
        """SHA-256 of the text, in hex."""
        return None if self.body is None else sha256(self.body).hexdigest()

    @cached_property
    def as_json(self) -> str:
        """The members of a line about the file, as JSON."""
        return as_json({
            "url": self.url,
            "outcome": self.outcome,
            "status": self.status,
            "error": self.error,
            "hops": self.hops,
            "asked": iso(self.asked),
            "sha256": self.sha256,
            "size": self.size,
            "truncated": self.truncated,
            "fetched": None if self.fetched is None else iso(self.fetched),
        })  # fmt: skip


class Line(NamedTuple):
    """One line of the evidence."""

    values: dict[str, Any]
    file: RobotsFile | None = None
    """The robots.txt that it refers to."""

    @property
    def is_of_file(self) -> bool:
        """Whether it is the first line of a file, with which its text is written."""
        return self.file is not None and self.values["kind"] in {"robotstxt", "tdmrep"}

    @property
    def text(self) -> bytes | None:
        """The text to write with the line."""
        return self.file.body if self.is_of_file and self.file is not None else None

    @property
    def nbytes(self) -> int:
        """Size of the text in bytes."""
        return len(self.text or b"")

    def drop_text(self) -> None:
        """Drop the text, and keep its hash."""
        if self.text is not None and self.file is not None and self.file.as_json:
            self.file.body = None

    def encode(self, tail: str) -> bytes:
        """Return the line as JSON; ``tail`` has the last members, the same in all lines."""
        file = "null" if self.file is None else self.file.as_json
        name = "tdmrep" if self.values["kind"] == "tdmrep" else "robotstxt"
        return f'{as_json(self.values)[:-1]},"{name}":{file},{tail}}}'.encode("ascii")


def end_of_lines(file: IO[bytes]) -> int:
    """Return the offset after the last complete line of a file."""
    end = file.seek(0, 2)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
