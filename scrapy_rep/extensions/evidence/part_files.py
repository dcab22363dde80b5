"""The parts of the evidence: files of limited size. Only one crawl at a time writes to a part."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import IO, Final

MAX_BYTES: Final = 128 * 1024**2
"""Size of a part in bytes after which the next part is begun."""
_BLOCK: Final = 64 * 1024
_GZIP: Final = zlib.MAX_WBITS + 16


class Parts:
    """Appends records to a part until it has MAX_BYTES, then to the next part.

    A part of an earlier crawl is continued if it has less than MAX_BYTES. If that crawl was killed,
    an incomplete record at the end of the part is removed first. A part that is damaged in another
    way is left unchanged. A crawl locks the part that it writes, so crawls at the same time write
    different parts. If files can't be locked, each crawl begins a new part.
    """

    def __init__(
        self,
        path_of_part: Callable[[int], Path],
        end_of_records: Callable[[IO[bytes]], int | None],
        header_of_part: Callable[[Path], bytes] = lambda _: b"",
    ) -> None:
        """``path_of_part`` returns the path of the part with a number; the first number is 1.

        ``end_of_records`` returns the offset after the last complete record of a file; None if the
        file is damaged. ``header_of_part`` returns the first bytes of the part with a path.
        """
        self._name = path_of_part
        self._whole = end_of_records
        self._begin = header_of_part
        self._file: IO[bytes] | None = None
        self._size = 0

    def append(self, data: bytes) -> None:
        """Append ``data``, complete records. Raises OSError if that fails; then none is written."""
        if self._file is None or self._size >= MAX_BYTES:
            self.close()
            self._file = self._open_next_part()
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

    def close(self) -> None:
        """Close the current part."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_next_part(self) -> IO[bytes]:
        for number in count(1):
            path = self._name(number)
            file = self._open_and_lock(path)
            if file is not None:
                try:
                    size = self._remove_incomplete_record(file)
                    if size is not None:
                        self._size = size or file.write(self._begin(path))
                        return file
                except BaseException:
                    file.close()
                    raise
                file.close()
        raise AssertionError("there is no end of numbers")

    @staticmethod
    def _open_and_lock(path: Path) -> IO[bytes] | None:
        """Open and lock a part, and return the file.

        Return None if the part is full, if another crawl writes it, or if it exists and files can't
        be locked.
        """
        is_new = not path.exists()
        if not is_new and path.stat().st_size >= MAX_BYTES:
            return None
        # Not buffered, so that written records are not lost if this process is killed.
        file = path.open("ab+", buffering=0)
        is_locked = _lock(file)
        if is_locked or (is_new and is_locked is None):
            return file
        file.close()
        return None

    def _remove_incomplete_record(self, file: IO[bytes]) -> int | None:
        size = file.seek(0, 2)
        end = self._whole(file)
        return file.truncate(end) if end is not None and end < size else end


def _lock(file: IO[bytes]) -> bool | None:
    """Lock a file until it is closed; return whether that succeeded.

    False if another process has locked the file; None if files can't be locked here.
    """
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # OSError: the file system has no locks
        return None
    return True


def is_damaged(path: Path) -> bool:
    """Return whether a gzip file is damaged. A last member that is incomplete is no damage."""
    with path.open("rb") as file:
        return end_of_members(file) is None


def end_of_members(file: IO[bytes]) -> int | None:
    """Return the offset after the last complete member of a gzip file (RFC 1952 §2.2).

    Return None if the file is damaged: if it contains anything but complete members and, at its
    end, an incomplete one.
    """
    file.seek(0)
    position = end = 0
    member = zlib.decompressobj(_GZIP)
    while data := file.read(_BLOCK):
        position += len(data)
        while data:
            try:
                member.decompress(data)
            except zlib.error:
                return None
            if not member.eof:
                break
            data = member.unused_data
            end = position - len(data)
            member = zlib.decompressobj(_GZIP)
    return end
