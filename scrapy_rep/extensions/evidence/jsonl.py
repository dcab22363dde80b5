"""Evidence as JSON Lines in a directory. Each robots.txt text is stored once, in its own file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

from scrapy_rep.extensions.evidence.part_files import Parts
from scrapy_rep.extensions.evidence.writer_thread import Line
from scrapy_rep.utils.bounded import BoundedCache

_BLOCK: Final = 64 * 1024
_MAX_KNOWN: Final = 10_000
"""Maximum number of texts that are remembered as stored. For other texts, it is checked whether
their file exists."""


def part_path(folder: Path, number: int) -> Path:
    """Return the path of the part with this number in the directory of the evidence."""
    return folder / f"part-{number:05}.jsonl"


def text_path(folder: Path, sha256: str) -> Path:
    """Return the path of the text with this hash in the directory of the evidence."""
    return folder / "texts" / sha256[:2] / sha256


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


class JsonLines:
    """Writes lines to parts, and each robots.txt text to a file whose name is its hash."""

    def __init__(self, folder: Path, tail: str) -> None:
        """``tail`` has the members of the JSON object that are the same in all lines."""
        self._folder = folder
        self._tail = tail
        self._parts = Parts(lambda number: part_path(folder, number), end_of_lines)
        self._known: BoundedCache[str, None] = BoundedCache(max_entries=_MAX_KNOWN)

    def write(self, lines: Sequence[Line]) -> None:
        """Write all lines and their texts. Raises OSError if they can't be written."""
        data = []
        for line in lines:
            if line.file is not None and line.text is not None:
                self._write_text(str(line.file.sha256), line.text)
            data.append(line.encode(self._tail))
        self._parts.append(b"\n".join([*data, b""]))

    def close(self) -> None:
        """Close the current part."""
        self._parts.close()

    def _write_text(self, name: str, text: bytes) -> None:
        if name in self._known:
            return
        path = text_path(self._folder, name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_name(f".{name}.{uuid4().hex}")
            try:
                new.write_bytes(text)
                new.replace(path)
            except OSError:
                new.unlink(missing_ok=True)
                raise
        self._known.put(name, None)
