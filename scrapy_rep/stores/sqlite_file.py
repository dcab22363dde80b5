"""The SQLite file of the store: creates, opens and migrates it, and renames a damaged one."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from scrapy_rep.stores.base import PAUSE, StoreError
from scrapy_rep.utils.sqlite import (
    ForeignFileError,
    Identity,
    OtherVersionError,
    enable_wal,
    identity_of,
    version_of,
)

try:
    import fcntl
except ImportError:  # Windows: no lock is needed, as a file that is open can't be renamed there
    fcntl = None  # type: ignore[assignment]


T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x52455001
"""``PRAGMA application_id`` of the file, which marks it as a file of scrapy-rep."""

STEPS: Final = (
    (
        """CREATE TABLE records
           (origin TEXT PRIMARY KEY NOT NULL, written REAL NOT NULL, data BLOB NOT NULL)""",
        "CREATE INDEX records_written ON records (written)",
    ),
    (
        """CREATE TABLE leases
           (origin TEXT PRIMARY KEY NOT NULL, holder TEXT NOT NULL, taken REAL NOT NULL,
            seconds REAL NOT NULL) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE turns
           (origin TEXT PRIMARY KEY NOT NULL, made INTEGER NOT NULL, next INTEGER NOT NULL)
           WITHOUT ROWID""",
    ),
    (
        "DROP TABLE turns",
        # Of the other leases there are many, and they are not searched.
        f"CREATE INDEX leases_of_pauses ON leases (origin) WHERE holder = '{PAUSE}'",
    ),
)
"""The migrations. Each is a list of statements that changes the schema to its next version
(``PRAGMA user_version``)."""
_COLUMNS: Final = ("origin, written, data FROM records", "holder FROM leases")
"""Columns that the migrated file must have. A file without them is of another program."""
_MAX_SET_ASIDE: Final = 3
"""Maximum number of damaged files that a store renames. If there are more, the disk is broken."""


class Connection:
    """A connection to the file. It is opened when it is first used, and again after an error."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = None
        # Held while the connection is used, because another thread may close it.
        self._lock = Lock()

    def run(self, func: Callable[[sqlite3.Connection], T]) -> T:
        """Call ``func`` with the connection and return its result.

        A damaged file, and one of another program, is renamed, and ``func`` is called again with a
        new file. Raises StoreError if that fails too, and after any other error of SQLite.
        """
        with self._lock:
            try:
                try:
                    return func(self._open())
                except (ForeignFileError, sqlite3.DatabaseError) as error:
                    # SQLite's error for a damaged file is DatabaseError itself. Its subclasses,
                    # such as OperationalError, are for other errors.
                    if type(error) not in {ForeignFileError, sqlite3.DatabaseError}:
                        raise
                    self._disconnect()
                    self._file.rename_bad_file(self._identity, str(error))
                    return func(self._open())
            except OtherVersionError as error:
                self._disconnect()
                raise StoreError(f"{error}; set REP_STORE to another file") from None
            except (ForeignFileError, sqlite3.Error, OSError) as error:
                self._disconnect()
                raise StoreError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close the connection, if it is open."""
        with self._lock:
            self._disconnect()

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._file.identity() != self._identity:
            self._disconnect()  # the file was removed, or renamed by another process
        if self._connection is None:
            self._identity = self._file.create()
            self._connection = self._file.connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


_CREATING: Final = Lock()
"""Held while the file is created and closed: a connection opened before would lose its locks."""


class DatabaseFile:
    """The SQLite file of a store. All connections of the store share this object."""

    def __init__(self, path: Path, timeout: float, *, sets_aside: bool = True) -> None:
        self._path = path
        self._timeout = timeout
        self._sets_aside = sets_aside
        self._set_aside = 0

    def identity(self) -> Identity:
        """Return device and inode of the file; None if there is no file."""
        return identity_of(self._path)

    def create(self) -> Identity:
        """Create the file and its directory, unless they exist; return device and inode."""
        if not self._path.parent.is_dir():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            logger.info("Made the directory of REP_STORE: %s", self._path.parent)
        # An existing file must not be opened here: if a process closes a file, POSIX releases all
        # locks of the process on this file, also those of its open connections.
        with _CREATING:
            if self.identity() is None:
                with suppress(FileExistsError):
                    self._path.open("xb").close()
            return self.identity()

    def connect(self) -> sqlite3.Connection:
        """Return a connection to the file, after the file was migrated to the newest schema.

        Raises ForeignFileError, OtherVersionError or sqlite3.Error if the file can't be used.
        """
        connection = sqlite3.connect(
            self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def rename_bad_file(self, identity: Identity, why: str) -> None:
        """Rename the file, unless another process has done so, and log ``why``.

        ``identity`` is that of the bad file. Raises StoreError if this store doesn't rename files,
        or has renamed too many.
        """
        if not self._sets_aside:
            raise StoreError(why)
        if self._set_aside >= _MAX_SET_ASIDE:
            raise StoreError(f"the {self._set_aside} files before this one were bad too: {why}")
        with self._lock_renaming():
            if self.identity() != identity:
                return
            now = datetime.now(timezone.utc)
            aside = self._path.with_name(f"{self._path.name}.bad-{now:%Y%m%dT%H%M%S%f}")
            # The write-ahead log is renamed first: SQLite would use it for a new file of this name.
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").rename(f"{aside}{suffix}")
        self._set_aside += 1
        logger.warning(
            "%s can't be used (%s): renamed to %s, a new file is created",
            self._path,
            why,
            aside.name,
        )

    @contextmanager
    def _lock_renaming(self) -> Iterator[None]:
        """Hold a lock, so that no other process renames the file at the same time."""
        with Path(f"{self._path}.lock").open("ab") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)  # the system releases it if the process is killed
            yield

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = version_of(connection, APPLICATION_ID, len(STEPS))
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # must precede the first table
        if version < len(STEPS):
            with transaction(connection):
                # Another process may have migrated the file in the meantime.
                migrate(connection, version_of(connection, APPLICATION_ID, len(STEPS)))
        try:
            for columns in _COLUMNS:
                connection.execute(f"SELECT {columns} LIMIT 0")
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
            raise ForeignFileError(str(error)) from None
        enable_wal(connection, self._timeout)


def migrate(connection: sqlite3.Connection, version: int, to: int = len(STEPS)) -> None:
    """Migrate the schema from ``version`` to version ``to``."""
    for step in STEPS[version:to]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {to}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the body of the ``with`` statement in a write transaction; roll back after an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
