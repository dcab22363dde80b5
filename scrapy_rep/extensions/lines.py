"""Lines that extensions write as the crawl goes, and the robots.txt that they speak of."""

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
"""Returns a value as JSON, in ASCII; what JSON doesn't have as a string."""


def iso(seconds: float) -> str:
    """Return a time, seconds since the epoch, as ISO 8601 in UTC, to the millisecond."""
    # A store may hold any time.
    whole, milliseconds = divmod(int(min(max(0.0, seconds), _LAST) * 1_000), 1_000)
    return f"{_to_the_second(whole)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}"


def of_override(override: Override) -> dict[str, Any]:
    """Return what is told of an entry of REP_OVERRIDES."""
    return {
        "host": override.host,
        "policy": override.policy,
        "reason": override.reason,
        "until": override.until_text,
    }


@dataclass(eq=False)
class RobotsFile:
    """What a robots.txt came to, by which is decided; or the file of an override.

    ``sha256`` and ``as_json`` are taken in the thread that writes, before the body is let go of.
    """

    url: str
    outcome: str
    """``available``, ``unavailable``, ``unreachable``; ``override`` for the file of one."""
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
    """When the text was fetched whose rules hold; None where there is none."""
    body: bytes | None = None
    """That text, until it is written."""
    answer: Evidence | None = None
    """How the fetch ended that decides: of an unreachable robots.txt it may be an older one."""
    record_id: str | None = None
    """Of the WARC record that holds it, once that is written."""

    @classmethod
    def from_record(cls, record: Record, access: Access) -> RobotsFile:
        """Return what ``access`` makes of ``record``."""
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
        """Of the text whose rules hold."""
        return None if self.body is None else sha256(self.body).hexdigest()

    @cached_property
    def as_json(self) -> str:
        """What lines say of it."""
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
    """A line, to be written."""

    values: dict[str, Any]
    file: RobotsFile | None = None
    """The robots.txt that it speaks of."""

    @property
    def is_of_file(self) -> bool:
        """Whether it tells what a file came to: the first line of each, which has its text."""
        return self.file is not None and self.values["kind"] in {"robotstxt", "tdmrep"}

    @property
    def text(self) -> bytes | None:
        """The text that is to be kept with it."""
        return self.file.body if self.is_of_file and self.file is not None else None

    @property
    def nbytes(self) -> int:
        """Bytes of that text."""
        return len(self.text or b"")

    def let_go(self) -> None:
        """Keep the hash of the text, and nothing else of it."""
        if self.text is not None and self.file is not None and self.file.as_json:
            self.file.body = None

    def encode(self, tail: str) -> bytes:
        """Return it as JSON; ``tail`` are the last members, which all lines have."""
        file = "null" if self.file is None else self.file.as_json
        name = "tdmrep" if self.values["kind"] == "tdmrep" else "robotstxt"
        return f'{as_json(self.values)[:-1]},"{name}":{file},{tail}}}'.encode("ascii")


def end_of_lines(file: IO[bytes]) -> int:
    """Return where the last line of a file ends that has an end."""
    end = file.seek(0, 2)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
