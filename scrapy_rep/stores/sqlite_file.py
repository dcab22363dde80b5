"""An SQLite file: made, opened, brought to the newest schema; renamed where it is none of ours."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from scrapy_rep.stores.base import StoreError
from scrapy_rep.utils.sqlite import (
    ForeignFileError,
    Identity,
    NewerFileError,
    begin_log,
    identity_of,
    version_of,
)

try:
    import fcntl
except ImportError:  # Windows, where an open file can't be renamed anyway
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

logger = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x52455001
"""What ``PRAGMA application_id`` says of a file of ours."""

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
)
"""What leads from each version of the schema to the next; ``PRAGMA user_version`` counts them."""
_COLUMNS: Final = ("origin, written, data FROM records", "holder FROM leases", "next FROM turns")
"""What a file of ours has, whatever its number says."""
_MAX_SET_ASIDE: Final = 3
"""Files that one process sets aside: more of them is a broken disk."""


class Connection:
    """One thread's connection, opened when it is needed and again after an error."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = None
        # Closing is another thread's business.
        self._lock = Lock()

    def run(self, func: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``func`` returns of the connection. Raises StoreError."""
        with self._lock:
            try:
                try:
                    return func(self._open())
                except (ForeignFileError, sqlite3.DatabaseError) as error:
                    # Corrupt, or no database at all: everything else is an OperationalError.
                    if type(error) not in {ForeignFileError, sqlite3.DatabaseError}:
                        raise
                    self._let_go()
                    self._file.set_aside(self._identity, str(error))
                    return func(self._open())
            except NewerFileError as error:
                self._let_go()
                raise StoreError(str(error)) from None
            except (ForeignFileError, sqlite3.Error, OSError) as error:
                self._let_go()
                raise StoreError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            self._let_go()

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._file.identity() != self._identity:
            self._let_go()  # removed, or set aside by another process
        if self._connection is None:
            self._identity = self._file.create()
            self._connection = self._file.connect()
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


_CREATING: Final = Lock()
"""So that no connection of this process comes between making a file and closing it."""


class DatabaseFile:
    """The file itself: what it has to be, and what happens to one that isn't."""

    def __init__(self, path: Path, timeout: float, *, sets_aside: bool = True) -> None:
        self._path = path
        self._timeout = timeout
        self._sets_aside = sets_aside
        self._set_aside = 0

    def identity(self) -> Identity:
        """Return what tells this file from another one of its name; None where there is none."""
        return identity_of(self._path)

    def create(self) -> Identity:
        """Make the file where there is none; return its identity."""
        if not self._path.parent.is_dir():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            logger.info("Made the directory of REP_STORE: %s", self._path.parent)
        # A file that is there is not to be opened here: closing it again would take away the locks
        # that other connections of this process have on it (POSIX advisory locks, SQLite's own).
        with _CREATING:
            if self.identity() is None:
                with suppress(FileExistsError):
                    self._path.open("xb").close()
            return self.identity()

    def connect(self) -> sqlite3.Connection:
        """Return a connection to the file, brought to the newest version of the schema."""
        connection = sqlite3.connect(
            self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def set_aside(self, identity: Identity, why: str) -> None:
        """Rename the file, unless another process has done so."""
        if not self._sets_aside:
            raise StoreError(why)
        if self._set_aside >= _MAX_SET_ASIDE:
            raise StoreError(f"the {self._set_aside} files before this one were bad too: {why}")
        with self._alone():
            if self.identity() != identity:
                return
            now = datetime.now(timezone.utc)
            aside = self._path.with_name(f"{self._path.name}.bad-{now:%Y%m%dT%H%M%S%f}")
            # The log first: with a new file it would be taken for that one's.
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
    def _alone(self) -> Iterator[None]:
        """Keep other processes from renaming the file at the same time."""
        with Path(f"{self._path}.lock").open("ab") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process, however that ends
            yield

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = version_of(connection, APPLICATION_ID, len(STEPS))
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded by an empty file alone
        if version < len(STEPS):
            with transaction(connection):
                # Another process may have been quicker.
                migrate(connection, version_of(connection, APPLICATION_ID, len(STEPS)))
        try:
            for columns in _COLUMNS:
                connection.execute(f"SELECT {columns} LIMIT 0")
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
            raise ForeignFileError(str(error)) from None
        begin_log(connection, self._timeout)


def migrate(connection: sqlite3.Connection, version: int, to: int = len(STEPS)) -> None:
    """Bring the schema from a version to a later one."""
    for step in STEPS[version:to]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {to}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Begin a transaction that writes; end it, or undo it where something is raised."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended it already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
