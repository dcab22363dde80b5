"""The SQLite file of the store: its format, its connections, and what becomes of a damaged one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from scrapy_rep.stores.base import PAUSE, StoreError
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.sqlite import (
    DamagedFileError,
    FileError,
    FileFormat,
    ForeignFileError,
    Identity,
    OtherVersionError,
    file_errors,
    identity_of,
    open_file,
)

try:
    import fcntl
except ImportError:  # Windows: no lock is needed, as a file that is open can't be deleted there
    fcntl = None  # type: ignore[assignment]


T = TypeVar("T")

_SCHEMA: Final = (
    """CREATE TABLE records
       (origin TEXT PRIMARY KEY NOT NULL, written REAL NOT NULL, data BLOB NOT NULL)""",
    "CREATE INDEX records_written ON records (written)",
    """CREATE TABLE leases
       (origin TEXT PRIMARY KEY NOT NULL, holder TEXT NOT NULL, taken REAL NOT NULL,
        seconds REAL NOT NULL) WITHOUT ROWID""",
    # Of the other leases there are many, and they are not searched.
    f"CREATE INDEX leases_of_pauses ON leases (origin) WHERE holder = '{PAUSE}'",
)
FORMAT: Final = FileFormat(0x52455001, 4, _SCHEMA, auto_vacuum="INCREMENTAL")
_HEADER: Final = b"SQLite format 3\0"
_ID_AT: Final = 68
"""Where the application id is in the header of a file, in four bytes."""


class Connection:
    """A connection to the file, which is opened at first use, and after an error or ``close``."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = None
        # Held while the connection is used, because another thread may close it.
        self._lock = Lock()

    def run(self, func: Callable[[sqlite3.Connection], T]) -> T:
        """Call ``func`` with the connection and return its result.

        If the file is damaged, it is deleted, and ``func`` is called again with a new one. Raises
        StoreError if that fails too, and after any other error of SQLite.
        """
        with self._lock:
            try:
                try:
                    return self._call(func)
                except DamagedFileError as error:
                    was_open = self._connection is not None
                    self._disconnect()
                    with file_errors():
                        self._file.delete_damaged(self._identity, error, was_open=was_open)
                    return self._call(func)
            except FileError as error:
                self._disconnect()
                advice = (
                    "; set REP_STORE to another file"
                    if isinstance(error, (DamagedFileError, ForeignFileError, OtherVersionError))
                    else ""
                )
                raise StoreError(f"{error}{advice}") from error

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _call(self, func: Callable[[sqlite3.Connection], T]) -> T:
        """Call ``func`` with the connection, a new one for a new file. Raises FileError."""
        with file_errors():
            if self._connection is not None and self._file.identity() != self._identity:
                self._disconnect()  # the file was removed, or deleted by another process
            if self._connection is None:
                self._identity = self._file.create()
                self._connection = self._file.open()
            return func(self._connection)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


_CREATING: Final = Lock()
"""Held while the file is created and closed: a connection opened before would lose its locks."""


class DatabaseFile:
    """The SQLite file of a store, for all its connections; a damaged one is deleted, once."""

    def __init__(self, path: Path, timeout: float, *, deletes_damaged: bool = True) -> None:
        self._path = path
        self._timeout = timeout
        self._deletes_damaged = deletes_damaged
        self._logger = LimitedLogger(__name__)

    def identity(self) -> Identity:
        return identity_of(self._path)

    def create(self) -> Identity:
        """Create the file and its directory, unless they exist; return device and inode."""
        if not self._path.parent.is_dir():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._logger.info("Made the directory of REP_STORE: %s", self._path.parent)
        # An existing file must not be opened here: if a process closes a file, POSIX releases all
        # locks of the process on this file, also those of its open connections.
        with _CREATING:
            if self.identity() is None:
                with suppress(FileExistsError):
                    self._path.open("xb").close()
            return self.identity()

    def open(self) -> sqlite3.Connection:
        """Return a connection to the file. Raises FileError if that fails."""
        if Path(f"{self._path}-wal").exists():
            self._reject_foreign()
        return open_file(self._path, FORMAT, timeout=self._timeout)

    def _reject_foreign(self) -> None:
        """Raise FileError if the file is of another program.

        If it was moved over a file of ours, SQLite would write our write-ahead log to it.
        """
        # Immutable: the write-ahead log isn't used. Without SQLite, closing the file would release
        # the locks of open connections.
        url = f"{self._path.absolute().as_uri()}?immutable=1"
        try:
            with closing(sqlite3.connect(url, uri=True)) as connection:
                connection.execute("BEGIN")
                (identifier,) = connection.execute("PRAGMA application_id").fetchone()
                if identifier == FORMAT.application_id:
                    return
                (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            if "not a database" not in str(error):  # another process may be making the file
                return
            raise ForeignFileError(f"damaged, or of another program ({error})") from error
        if identifier or tables:
            raise ForeignFileError("of another program")

    def delete_damaged(self, identity: Identity, why: DamagedFileError, *, was_open: bool) -> None:
        """Delete the file, unless another process has done so, and log ``why``.

        ``identity`` is that of the damaged file. ``was_open`` is true if it could be opened before.
        Raises ``why`` if the file may be of another program, or if this store must not delete it:
        if a second file is damaged, the disk is broken.
        """
        if self.identity() != identity:
            return
        if not self._deletes_damaged or not self._is_ours(was_open=was_open):
            raise why
        # No other process may delete the file at the same time. The system releases the lock if the
        # process is killed.
        with Path(f"{self._path}.lock").open("ab") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            if self.identity() != identity:
                return
            # The write-ahead log is deleted first: SQLite would use it for a new file.
            for suffix in ("-wal", "-shm", ""):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        self._deletes_damaged = False
        self._logger.warning("%s is %s: it was deleted, and a new file is made", self._path, why)

    def _is_ours(self, *, was_open: bool) -> bool:
        """Return whether the header has our application id; if it is destroyed, ``was_open``."""
        with self._path.open("rb") as file:
            header = file.read(_ID_AT + 4)
        if header.startswith(_HEADER):
            return int.from_bytes(header[_ID_AT:], "big") == FORMAT.application_id
        return was_open
