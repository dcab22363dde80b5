"""All SQLite files of scrapy-rep: how they are opened, and the errors if one can't be used."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple

_WAL_BYTES: Final = 4 * 1024 * 1024
"""Size to which SQLite truncates the write-ahead log after its content was written to the file."""
_LOCK_INTERVAL: Final = 0.02
"""Seconds between two tries to set the journal mode while another process has locked the file."""


class FileFormat(NamedTuple):
    """A kind of SQLite file."""

    application_id: int
    """``PRAGMA application_id``: a file without it is of another program."""
    version: int
    """``PRAGMA user_version``: the version of the schema. Files of other versions are not read."""
    schema: Sequence[str]


class FileError(Exception):
    """A file can't be used. The message says why: the file *is* so."""


class LockedFileError(FileError):
    """Another process has locked the file."""


class OtherFormatError(FileError):
    """Another program, or another version of scrapy-rep, has written the file."""


class DamagedFileError(FileError):
    """The file is damaged, or is no SQLite file."""


@contextmanager
def file_errors() -> Iterator[None]:
    """Raise FileError in place of an error of SQLite or of the file system."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DamagedFileError("damaged (its schema is not valid UTF-8)") from error
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise LockedFileError(f"in use by another process ({error})") from error
        # SQLite's error for a damaged file is DatabaseError itself, and not one of its subclasses.
        if type(error) is sqlite3.DatabaseError:
            raise DamagedFileError(f"damaged, or of another program ({error})") from error
        raise FileError(f"not usable ({error})") from error
    except OSError as error:
        raise FileError(f"not usable ({error})") from error


def open_file(
    path: Path,
    file_format: FileFormat,
    *,
    timeout: float = 0.0,
    exclusive: bool = False,
    prepare: Callable[[sqlite3.Connection], None] | None = None,
) -> sqlite3.Connection:
    """Open the file, make the schema if it is empty, and use a write-ahead log.

    After a kill, no committed transaction is lost; after a power failure, the newest may be.

    ``timeout`` is in seconds, for other processes that have locked the file. If ``exclusive``, no
    other process can use the file until the connection is closed. ``prepare`` is called in the
    transaction that makes a missing schema. Raises FileError if the file can't be used.
    """
    with file_errors():
        connection = sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            if exclusive:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            if prepare is not None or _is_empty(connection, file_format):
                with transaction(connection):
                    # Another process may have made the schema in the meantime.
                    if _is_empty(connection, file_format):
                        for statement in file_format.schema:
                            connection.execute(statement)
                        connection.execute(f"PRAGMA application_id = {file_format.application_id}")
                        connection.execute(f"PRAGMA user_version = {file_format.version}")
                    if prepare is not None:
                        prepare(connection)
            _enable_wal(connection, timeout)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the ``with`` block in a transaction; roll back after an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_empty(connection: sqlite3.Connection, file_format: FileFormat) -> bool:
    """Return whether the file is empty. Raises FileError if its format is not ``file_format``."""
    identifier, version, tables = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if (identifier, version, tables) == (0, 0, 0):
        return True
    if (identifier, version) != (file_format.application_id, file_format.version):
        raise OtherFormatError("of another program, or of another version of scrapy-rep")
    return False


def _enable_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Use a write-ahead log of limited size, without a flush to the disk after each commit."""
    end = monotonic() + timeout
    while True:  # SQLite's own timeout doesn't cover this statement
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if monotonic() >= end:
                raise
        sleep(_LOCK_INTERVAL)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
