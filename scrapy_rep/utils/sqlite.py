"""What the SQLite files of scrapy-rep have in common: identity, version, write-ahead log."""

from __future__ import annotations

import sqlite3
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

Identity = tuple[int, int] | None

_WAL_BYTES: Final = 4 * 1024 * 1024
"""Bytes to which the write-ahead log is truncated."""
_LOCK_INTERVAL: Final = 0.02
"""Seconds between two tries to set the journal mode."""


class ForeignFileError(Exception):
    """The file was written by another program."""


class NewerFileError(Exception):
    """The file was written by a newer version of scrapy-rep."""


def identity_of(path: Path) -> Identity:
    """Return device and inode of the file, which tell it from a later file of the same name.

    None if there is no file. Raises OSError if the file system doesn't answer.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def version_of(connection: sqlite3.Connection, application_id: int, newest: int) -> int:
    """Return the version of the schema, 0 for an empty file.

    Raises ForeignFileError, NewerFileError if the version is above ``newest``, and sqlite3.Error.
    """
    try:
        identifier, version, tables = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError("its schema is not valid UTF-8") from error
    if identifier != application_id and (identifier, version, tables) != (0, 0, 0):
        raise ForeignFileError("of another program")
    if version > newest:
        raise NewerFileError("written by a newer version of scrapy-rep")
    return int(version)


def begin_log(connection: sqlite3.Connection, timeout: float = 0.0) -> None:
    """Use a write-ahead log; wait up to ``timeout`` seconds for others that open the file.

    A killed process loses no commit. A power cut may lose the newest ones, but never damages the
    file. Raises sqlite3.Error.
    """
    end = monotonic() + timeout
    while not _is_log_begun(connection, last=monotonic() >= end):
        # SQLite's own timeout doesn't cover this statement.
        sleep(_LOCK_INTERVAL)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")


def _is_log_begun(connection: sqlite3.Connection, *, last: bool) -> bool:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError:
        if last:
            raise
        return False
    return True
