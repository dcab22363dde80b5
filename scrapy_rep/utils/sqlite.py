"""Functions for all SQLite files of scrapy-rep: identity, version, write-ahead log."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import monotonic, sleep
from typing import Final

Identity = tuple[int, int] | None

_WAL_BYTES: Final = 4 * 1024 * 1024
"""Size to which SQLite truncates the write-ahead log after its content was written to the file."""
_LOCK_INTERVAL: Final = 0.02
"""Seconds between two tries to set the journal mode while another process has locked the file."""


class ForeignFileError(Exception):
    """Raised if a file was written by another program."""


class OtherVersionError(Exception):
    """Raised if a file was written by another version of scrapy-rep, and can't be migrated."""


def identity_of(path: Path) -> Identity:
    """Return device and inode of the file; None if there is no file.

    A later file with the same path has another identity. Raises OSError if the file system fails.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def version_of(
    connection: sqlite3.Connection, application_id: int, newest: int, oldest: int = 1
) -> int:
    """Return the version of the schema, from ``oldest`` to ``newest``; 0 for an empty file.

    Raises ForeignFileError if the file has another ``application_id``, OtherVersionError if it has
    another version, and sqlite3.Error if it can't be read.
    """
    try:
        identifier, version, tables = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
    except (UnicodeDecodeError, sqlite3.DatabaseError) as error:
        if isinstance(error, sqlite3.Error) and str(error):
            raise  # Python 3.10 raises an error without a message for text that is not UTF-8
        raise sqlite3.DatabaseError("its schema is not valid UTF-8") from error
    if identifier != application_id and (identifier, version, tables) != (0, 0, 0):
        raise ForeignFileError("of another program")
    if version and not oldest <= version <= newest:
        age = "a newer" if version > newest else "an older"
        raise OtherVersionError(f"written by {age} version of scrapy-rep")
    return int(version)


def enable_wal(connection: sqlite3.Connection, timeout: float = 0.0) -> None:
    """Use a write-ahead log for the file.

    Wait up to ``timeout`` seconds while another process has locked the file. If a process is
    killed, no transaction that was committed is lost. After a power failure the newest ones may be
    lost, but the file is not damaged. Raises sqlite3.Error if the log can't be used.
    """
    end = monotonic() + timeout
    while not _try_enable_wal(connection, last=monotonic() >= end):
        # SQLite's own timeout doesn't cover this statement.
        sleep(_LOCK_INTERVAL)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")


def _try_enable_wal(connection: sqlite3.Connection, *, last: bool) -> bool:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError:
        if last:
            raise
        return False
    return True
