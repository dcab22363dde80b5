"""Evidence as JSON Lines in a directory. Each robots.txt text is stored once, in its own file."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from scrapy_rep.extensions.cited_file import encode_json
from scrapy_rep.extensions.evidence.parts import DAMAGE, Found, Line, Parts, digest_of, is_about
from scrapy_rep.extensions.output_files import replace_file
from scrapy_rep.utils.bounded import BoundedCache

_BLOCK: Final = 64 * 1024
_MAX_KNOWN: Final = 10_000
"""Maximum number of texts that are remembered as stored. For other texts, it is checked whether
their file exists."""


class JsonLines(Parts):
    """Parts with a line of JSON each, and a file for each robots.txt text, named after its hash."""

    def __init__(self, path: Path, common_members: str = "") -> None:
        super().__init__(path, common_members)
        self._known: BoundedCache[str, None] = BoundedCache(max_entries=_MAX_KNOWN)

    def write(self, lines: Sequence[Line]) -> None:
        for line in lines:
            file = line.new_file
            if file is not None and file.sha256 is not None and file.body is not None:
                self._write_text(file.sha256, file.body)
        self._append(
            b"".join(line.encode(self._common_members) + b"\n" for line in lines), len(lines)
        )

    def find(self, url: str, damaged: set[Path]) -> Iterator[Found]:
        if not self._path.is_dir():
            is_file = "it is a file, not a directory, and its name does not end in .warc.gz"
            why = is_file if self._path.exists() else "there is no such directory"
            raise FileNotFoundError(2, why)
        sought = f'"url":{encode_json(url)}'.encode()
        for part in self.existing():
            with part.open("rb") as file:
                for line in file:
                    # Most lines are about other URLs, and are not parsed. If a crawl was killed,
                    # the last line may be incomplete.
                    if sought in line and line.endswith(b"\n"):
                        try:
                            values = json.loads(line)
                            if is_about(values, url):
                                yield Found.checked(values, self._read_text(values), part)
                        except DAMAGE:
                            damaged.add(part)

    def _part_path(self, number: int) -> Path:
        return self._path / f"part-{number:05}.jsonl"

    def _text_path(self, digest: str) -> Path:
        return self._path / "texts" / digest[:2] / digest

    def _end_of_records(self, file: IO[bytes]) -> int:
        """Return the offset after the last line feed, for which the file is read from its end."""
        end = file.seek(0, 2)
        while end > 0:
            start = max(0, end - _BLOCK)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
        return 0

    def _write_text(self, digest: str, text: bytes) -> None:
        """Write a text to its file, unless that exists."""
        if digest in self._known:
            return
        path = self._text_path(digest)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text)
        self._known.put(digest, None)

    def _read_text(self, values: dict[str, Any]) -> bytes | None:
        """Return the text to which a line refers, unchecked; None if it has none, or no file."""
        digest = digest_of(values)
        with suppress(FileNotFoundError):
            return None if digest is None else self._text_path(digest).read_bytes()
        return None
