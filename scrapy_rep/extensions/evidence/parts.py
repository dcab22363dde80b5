"""The lines of the evidence, and the parts in which they are: files of limited size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count, takewhile
from os import fstat
from os.path import samestat
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from scrapy_rep.extensions.cited_file import CitedFile, encode_json

MAX_BYTES: Final = 128 * 1024**2
"""Size of a part in bytes after which the next part is begun."""
DAMAGE: Final = (ValueError, LookupError, TypeError, AttributeError)
"""Exceptions that are raised while a line is read that is not JSON, or that lacks members."""
_OF_FILES: Final = {"robotstxt", "tdmrep"}
_OF_URLS: Final = {"page", "failed", "drop", "usage"}


class Line(NamedTuple):
    """A line to be written, about a request, a robots.txt, or the crawl."""

    values: dict[str, Any]
    file: CitedFile | None = None
    """The robots.txt or tdmrep.json to which the line refers; None if there is none."""

    @property
    def new_file(self) -> CitedFile | None:
        """The file, if the line is about it. Its text is written with this line."""
        return self.file if self.values["kind"] in _OF_FILES else None

    @property
    def nbytes(self) -> int:
        """Size of the text to be written with the line, in bytes."""
        return len((self.new_file and self.new_file.body) or b"")

    def encode(self, common_members: str) -> bytes:
        """Return the line as JSON, with the members that all lines have."""
        file = "null" if self.file is None else self.file.as_json
        name = "tdmrep" if self.values["kind"] == "tdmrep" else "robotstxt"
        return f'{encode_json(self.values)[:-1]},"{name}":{file},{common_members}}}'.encode("ascii")


class Found(NamedTuple):
    """A line that was read, and the text of the robots.txt to which it refers."""

    values: dict[str, Any]
    text: bytes | None
    """The text of robots.txt. None if the line refers to no text, or if the text is missing or
    doesn't have the hash in the line."""
    part: Path

    @classmethod
    def checked(cls, values: dict[str, Any], text: bytes | None, part: Path) -> Found:
        """Return the line, with ``text`` if that has the hash in the line."""
        is_unchanged = text is not None and sha256(text).hexdigest() == digest_of(values)
        return cls(values, text if is_unchanged else None, part)


class Parts(ABC):
    """The evidence at a path, in one format. Only one crawl at a time writes to a part.

    The first ``write`` opens a part. Records are appended to it until it has MAX_BYTES, then to the
    next part. A part of an earlier crawl is continued if it has less than MAX_BYTES. If that crawl
    was killed, an incomplete record at the end of the part is removed first. A part that is damaged
    in another way is left unchanged. A crawl locks the part that it writes, so crawls at the same
    time write different parts. If files can't be locked, each crawl begins a new part.
    """

    def __init__(self, path: Path, common_members: str = "") -> None:
        """``common_members`` are the members of the JSON object that all written lines have."""
        self._path = path
        self._common_members = common_members
        self._file: IO[bytes] | None = None
        self._size = 0
        self._lines = 0
        self.part = path
        """The part that was opened last."""

    @abstractmethod
    def write(self, lines: Sequence[Line]) -> None:
        """Write all lines and new texts. Raises OSError if that fails; no line is written then."""

    @abstractmethod
    def find(self, url: str, damaged: set[Path]) -> Iterator[Found]:
        """Yield the lines about ``url``; add damaged parts to ``damaged``. Raises OSError."""

    @abstractmethod
    def _part_path(self, number: int) -> Path:
        """Return the path of the part with this number; the first number is 1."""

    @abstractmethod
    def _end_of_records(self, file: IO[bytes]) -> int | None:
        """Return the offset after the last complete record of a part; None if it is damaged."""

    def _header_of_part(self, path: Path) -> bytes:  # noqa: ARG002
        """Return the first bytes of a new part."""
        return b""

    def existing(self) -> Iterator[Path]:
        """Yield the paths of the parts that exist, up to the first that does not."""
        return takewhile(Path.exists, map(self._part_path, count(1)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close_if_removed(self) -> int:
        """Close the open part if its file was removed or replaced.

        Return the number of lines that this crawl has written to it, which are lost.
        """
        if self._file is None or not _was_removed(self.part, self._file):
            return 0
        self.close()
        return self._lines

    def _append(self, data: bytes, lines: int) -> None:
        """Append ``data``, the records of so many ``lines``.

        Raises OSError if that fails; then none is written.
        """
        if self._file is None or self._size >= MAX_BYTES:
            self.close()
            self._file = self._open_free_part()
        file, rest = self._file, memoryview(data)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            try:
                file.truncate(self._size)
            except OSError:  # the incomplete record is removed when the part is opened again
                self.close()
            raise
        self._size += len(data)
        self._lines += lines

    def _open_free_part(self) -> IO[bytes]:
        """Return the first part that this crawl can write to, open; set ``part`` and its counts."""
        for path in map(self._part_path, count(1)):
            file = _open_and_lock(path)
            if file is not None:
                try:
                    size, end = file.seek(0, 2), self._end_of_records(file)
                    if end is not None:
                        if end < size:  # the last record is incomplete
                            file.truncate(end)
                        self._size = end or file.write(self._header_of_part(path))
                        self.part, self._lines = path, 0
                        return file
                except BaseException:
                    file.close()
                    raise
                file.close()
        raise AssertionError("there is no end of numbers")


def _open_and_lock(path: Path) -> IO[bytes] | None:
    """Return a part, open, and locked until it is closed; None if this crawl can't write to it.

    It can't if the part is full, locked by another process, or exists where files can't be locked.
    """
    is_new = not path.exists()
    if not is_new and path.stat().st_size >= MAX_BYTES:
        return None
    # Not buffered, so that written records are not lost if this process is killed.
    file = path.open("ab+", buffering=0)
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
        is_ours = True
    except BlockingIOError:
        is_ours = False
    except (ImportError, OSError):  # OSError: the file system has no locks
        is_ours = is_new
    if is_ours:
        return file
    file.close()
    return None


def _was_removed(path: Path, file: IO[bytes]) -> bool:
    try:
        return not samestat(path.stat(), fstat(file.fileno()))
    except FileNotFoundError:
        return True
    except OSError:  # the file system fails, so the file may still be there
        return False


def is_about(values: dict[str, Any], url: str) -> bool:
    """Return whether a line with these members is about ``url``."""
    return values["kind"] in _OF_URLS and values["url"] == url


def digest_of(values: dict[str, Any]) -> str | None:
    """Return the hash of the text to which a line with these members refers; None without one."""
    digest: str | None = (values["robotstxt"] or {}).get("sha256")
    return digest
