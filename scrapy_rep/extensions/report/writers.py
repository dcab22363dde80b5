"""The forms of a report: evidence as JSON Lines, all as JSON, a page as HTML."""

from __future__ import annotations

import json
import os
import tempfile
from typing import IO, TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_rep.extensions.report.counts import Collected


class Writer(Protocol):
    """One form of a report."""

    def line(self, line: dict[str, Any]) -> None:
        """Take a piece of evidence, as the crawl goes."""

    def finish(self, crawl: dict[str, Any], collected: Collected) -> None:
        """Write what there is to write at the end."""


class LinesWriter:
    """JSON Lines, written as the crawl goes: what was written stays, however the crawl ends."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)

    def line(self, line: dict[str, Any]) -> None:
        """Write a line."""
        self._file.write(json.dumps(line) + "\n")

    def finish(
        self,
        crawl: dict[str, Any],
        collected: Collected,  # noqa: ARG002 - the other writers need it
    ) -> None:
        """Write the last line."""
        self.line({"kind": "end", **crawl})
        self._file.close()


class JsonWriter:
    """One JSON object; until the end its evidence is in a temporary file, not in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Closed by finish().
        self._evidence = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def line(self, line: dict[str, Any]) -> None:
        """Keep a line."""
        self._evidence.write(json.dumps(line) + "\n")

    def finish(self, crawl: dict[str, Any], collected: Collected) -> None:
        """Write the object."""
        with self._evidence, replacing(self._path) as file:
            head = json.dumps({"crawl": crawl, **collected.as_dict()})
            file.write(head[:-1] + ', "evidence": [')
            self._evidence.seek(0)
            for number, line in enumerate(self._evidence):
                file.write(f"{',' if number else ''}\n{line.rstrip()}")
            file.write("\n]}\n")


class replacing:  # noqa: N801 - used as a function
    """A file that takes the place of ``path`` only when it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f".{path.name}.{os.getpid()}")

    def __enter__(self) -> IO[str]:
        self._file = self._new.open("w", encoding="utf-8")
        return self._file

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is None:
            self._new.replace(self._path)
        else:
            self._new.unlink()


def most_telling(collected: Collected) -> Iterator[dict[str, Any]]:
    """Yield the origins, those first of which there is most to say."""
    rows = collected.as_dict()["origins"]
    rows.sort(key=lambda row: (row["outcome"] != "unreachable", -row["dropped"], row["origin"]))
    yield from rows
