"""Records in an SQLite file, which outlives the crawl and serves every process of a machine."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_rep.protocol.record import Record, RecordError, max_encoded
from scrapy_rep.stores.base import Held, StoreError
from scrapy_rep.utils.concurrency import Workers, deliver

try:
    import fcntl
except ImportError:  # Windows, where an open file can't be renamed anyway
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from scrapy_rep.utils.concurrency import Job

T = TypeVar("T")
_Identity = tuple[int, int] | None

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
)
"""What leads from each version of the schema to the next; ``PRAGMA user_version`` counts them."""

# A lease holds for its seconds, and as long again before it was taken: clocks are set back, and two
# processes do not read them in the order in which they write.
_GET: Final = """
SELECT (SELECT CASE WHEN length(data) <= :limit THEN data END FROM records WHERE origin = :origin),
       (SELECT holder FROM leases
        WHERE origin = :origin AND abs(:now - taken) < seconds)
"""
_CLAIM: Final = """
INSERT INTO leases (origin, holder, taken, seconds) VALUES (:origin, :holder, :now, :seconds)
ON CONFLICT (origin) DO UPDATE
SET holder = excluded.holder, taken = excluded.taken, seconds = excluded.seconds
WHERE abs(:now - taken) >= leases.seconds
"""
_PUT: Final = """
INSERT INTO records (origin, written, data) VALUES (?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET written = excluded.written, data = excluded.data
"""
_RELEASE: Final = "DELETE FROM leases WHERE origin = ? AND holder = ?"
_PAGE_OF_ORIGINS: Final = """
SELECT origin FROM records WHERE origin > ? AND typeof(origin) = 'text' ORDER BY origin LIMIT ?
"""
_DROP: Final = "DELETE FROM records WHERE origin = ?"
_DROP_LEASES: Final = "DELETE FROM leases WHERE abs(:now - taken) >= seconds"
_DROP_OLD: Final = """
DELETE FROM records WHERE rowid IN
(SELECT rowid FROM records WHERE written < ? OR written > ? LIMIT ?)
"""
_DROP_OLDEST: Final = """
DELETE FROM records WHERE rowid IN (SELECT rowid FROM records ORDER BY written LIMIT ?)
"""

_PRUNE_EVERY: Final = 300.0
"""Seconds between two looks for what is too old."""
_PRUNE_AFTER: Final = 2_000
"""Records written between two such looks."""
_PRUNE_ROWS: Final = 2_000
"""Records that go in one transaction, so that nobody waits long."""
_PAGE: Final = 1_000
"""Origins that are read at a time."""
_FREE_PAGES: Final = 2_000
"""Pages given back to the file system after that."""
_WAL_BYTES: Final = 4 * 1024 * 1024
"""Bytes that the write-ahead log is cut back to."""
_MAX_SET_ASIDE: Final = 3
"""Files that one process sets aside: more of them is a broken disk."""


class _BadFileError(Exception):
    """A file that is none of ours."""


def path_of(uri: str) -> Path:
    """Return the file that ``sqlite:///PATH`` names; relative: in the project's data directory."""
    path = uri.partition(":///")[2]
    try:
        return Path(data_path(path)).absolute()
    except (OSError, NotConfigured):  # no data directory, and none can be made
        return Path(".scrapy", path).absolute()


class SQLiteStore:
    """A file with a row per origin, in write-ahead mode.

    One thread reads and one writes: what was asked to be written while it was busy goes into its
    next transaction. A process that is killed loses what was under way and nothing else.
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        path: Path,
        *,
        max_size: int,
        max_age: float,
        max_bytes: int,
        timeout: float,
        clock: Callable[[], float],
        set_aside: bool = True,
    ) -> None:
        self._file = _File(path, timeout, sets_aside=set_aside)
        self._max_size = max_size
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._clock = clock
        self._reading = _Connection(self._file)
        self._writing = _Connection(self._file)
        self._reader = Workers("robots.txt-reader", batch=50)
        self._writer = Workers("robots.txt-writer", batch=1_000, run=self._write)
        self._written = 0
        self._prune_at = 0.0

    async def get(self, origin: str) -> Held:
        """Return what is held of ``origin``."""
        return await self._reader.call(
            lambda: self._reading.run(lambda connection: self._held(connection, origin))
        )

    async def claim(self, origin: str, holder: str, seconds: float) -> Held:
        """Give ``holder`` the lease of ``origin``, unless another holds it."""

        def claim(connection: sqlite3.Connection) -> Held:
            connection.execute(
                _CLAIM,
                {"origin": origin, "holder": holder, "now": self._clock(), "seconds": seconds},
            )
            return self._held(connection, origin)

        return await self._writer.call(claim)

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Keep ``record`` in place of what is held of its origin."""

        def put(connection: sqlite3.Connection) -> None:
            self._written += 1
            connection.execute(_PUT, (record.origin, self._clock(), record.encode()))
            if holder is not None:
                connection.execute(_RELEASE, (record.origin, holder))

        await self._writer.call(put)

    async def release(self, origin: str, holder: str) -> None:
        """End the lease of ``origin``, if it is that of ``holder``."""

        def release(connection: sqlite3.Connection) -> None:
            connection.execute(_RELEASE, (origin, holder))

        await self._writer.call(release)

    async def origins(self) -> AsyncIterator[str]:
        """Yield the origins of all records, in their order."""

        def page(after: str, connection: sqlite3.Connection) -> list[str]:
            return [row[0] for row in connection.execute(_PAGE_OF_ORIGINS, (after, _PAGE))]

        last = ""
        while True:
            found = await self._reader.call(partial(self._reading.run, partial(page, last)))
            for last in found:
                yield last
            if len(found) < _PAGE:
                return

    async def drop(self, origin: str) -> bool:
        """Let go of the record of ``origin``; return whether there was one."""

        def drop(connection: sqlite3.Connection) -> bool:
            return connection.execute(_DROP, (origin,)).rowcount > 0

        return await self._writer.call(drop)

    async def prune(self) -> int:
        """Let go of the records that are too old or too many; return how many these were."""
        pruned = 0
        while True:
            step = await self._reader.call(lambda: self._writing.run(self._prune))
            pruned += step
            if step < _PRUNE_ROWS:
                return pruned

    async def close(self) -> None:
        """Write what is still to be written, and close the file."""
        await self._writer.stop()
        await self._reader.call(self._close)
        await self._reader.stop()

    def _close(self) -> None:
        self._reading.close()
        self._writing.close()

    def _held(self, connection: sqlite3.Connection, origin: str) -> Held:
        values = {"origin": origin, "now": self._clock(), "limit": max_encoded(self._max_size)}
        data, holder = connection.execute(_GET, values).fetchone()
        record = None
        if isinstance(data, bytes):
            with suppress(RecordError):
                record = Record.decode(data, origin, max_size=self._max_size)
        return Held(record, holder if isinstance(holder, str) else None)

    def _write(self, jobs: list[Job]) -> None:
        """Run jobs in one transaction: all of them are done, or none."""
        try:
            self._writing.run(lambda connection: self._transact(connection, jobs))
        except Exception as error:  # noqa: BLE001 - raised where each is awaited
            for job in jobs:
                job.error = error
        deliver(jobs)
        if self._written >= _PRUNE_AFTER or monotonic() >= self._prune_at:
            # Whoever wrote has been answered; what can't be pruned now will be later.
            with suppress(StoreError):
                self._writing.run(self._prune)

    @staticmethod
    def _transact(connection: sqlite3.Connection, jobs: list[Job]) -> None:
        with _transaction(connection):
            for job in jobs:
                job.result = job.func(connection)

    def _prune(self, connection: sqlite3.Connection) -> int:
        """Take out what is too old, then the oldest of what is too much, in small steps.

        Return how many records that were: as many as a step may take where there may be more.
        """
        self._written = 0
        self._prune_at = monotonic() + _PRUNE_EVERY
        with _transaction(connection):
            now = self._clock()  # as late as here: a transaction waits for those of others
            connection.execute(_DROP_LEASES, {"now": now})
            # Written in the future: by a clock that was wrong.
            ages = now - self._max_age, now + self._max_age, _PRUNE_ROWS
            pruned = connection.execute(_DROP_OLD, ages).rowcount
        if self._used(connection) > self._max_bytes:
            with _transaction(connection):
                pruned += connection.execute(_DROP_OLDEST, (_PRUNE_ROWS,)).rowcount
        if pruned >= _PRUNE_ROWS:
            self._prune_at = 0.0
        # execute() would stop after the first page, which comes as a row without columns.
        connection.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
        return int(pruned)

    @staticmethod
    def _used(connection: sqlite3.Connection) -> int:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


class _Connection:
    """One thread's connection, opened when it is needed and again after an error."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._identity: _Identity = None
        # Closing is another thread's business.
        self._lock = Lock()

    def run(self, func: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``func`` returns of the connection. Raises StoreError."""
        with self._lock:
            try:
                try:
                    return func(self._open())
                except (_BadFileError, sqlite3.DatabaseError) as error:
                    # Corrupt, or no database at all: everything else is an OperationalError.
                    if type(error) not in {_BadFileError, sqlite3.DatabaseError}:
                        raise
                    self._let_go()
                    self._file.set_aside(self._identity, str(error))
                    return func(self._open())
            except (_BadFileError, sqlite3.Error, OSError) as error:
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


class _File:
    """The file itself: what it has to be, and what happens to one that isn't."""

    def __init__(self, path: Path, timeout: float, *, sets_aside: bool = True) -> None:
        self._path = path
        self._timeout = timeout
        self._sets_aside = sets_aside
        self._set_aside = 0

    def identity(self) -> _Identity:
        """Return what tells this file from another one of its name; None where there is none."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def create(self) -> _Identity:
        """Make the file where there is none; return its identity."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
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

    def set_aside(self, identity: _Identity, why: str) -> None:
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
            "%s can't be used (%s): it is now %s, and a new one is made in its place",
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
        version = self._version(connection)
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded by an empty file alone
        if version < len(STEPS):
            with _transaction(connection):
                # Another process may have been quicker.
                migrate(connection, self._version(connection))
        try:
            for columns in ("origin, written, data FROM records", "holder FROM leases"):
                connection.execute(f"SELECT {columns} LIMIT 0")
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
            raise _BadFileError(str(error)) from None
        self._begin_log(connection)
        # With a log that loses nothing when a process is killed, and the last seconds at most
        # when the machine is.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")

    def _begin_log(self, connection: sqlite3.Connection) -> None:
        end = monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError:  # noqa: PERF203 - once is usual
                # SQLite doesn't wait here by itself for others who open the file.
                if monotonic() >= end:
                    raise
                sleep(0.02)
            else:
                return

    @staticmethod
    def _version(connection: sqlite3.Connection) -> int:
        """Return the version of the schema, 0 of an empty file."""
        identifier, version, tables = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if identifier != APPLICATION_ID and (identifier, version, tables) != (0, 0, 0):
            raise _BadFileError("of another program")
        if version > len(STEPS):
            raise StoreError("written by a newer version of scrapy-rep")
        return int(version)


def migrate(connection: sqlite3.Connection, version: int, to: int = len(STEPS)) -> None:
    """Bring the schema from a version to a later one."""
    for step in STEPS[version:to]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {to}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended it already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
