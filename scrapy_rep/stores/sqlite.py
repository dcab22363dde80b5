"""The store in an SQLite file, which all processes of a machine may share.

The file has a row for each record and lease. It has a write-ahead log, so that reads don't wait for
writes. Old records are deleted after a transaction, every few minutes or after many writes. A file
that is damaged, or of another program, is refused and stays as it is.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time
from typing import ClassVar, Final, TypeVar

from scrapy_rep.protocol.record import MAX_ENCODED_SIZE
from scrapy_rep.stores.base import (
    PAUSE,
    WORKER,
    Change,
    Claim,
    Found,
    Lease,
    Put,
    Stored,
    StoreError,
)
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.sqlite import (
    DamagedFileError,
    FileError,
    FileFormat,
    OtherFormatError,
    file_errors,
    open_file,
    transaction,
)

T = TypeVar("T")

FORMAT: Final = FileFormat(
    0x52455001,
    5,
    (
        """CREATE TABLE records (origin TEXT PRIMARY KEY NOT NULL, written REAL NOT NULL,
           state BLOB NOT NULL, body BLOB NOT NULL)""",
        "CREATE INDEX records_written ON records (written)",
        """CREATE TABLE leases (origin TEXT PRIMARY KEY NOT NULL, holder TEXT NOT NULL,
           taken REAL NOT NULL, seconds REAL NOT NULL) WITHOUT ROWID""",
        # Of the other leases there are many, and they are not searched.
        f"CREATE INDEX leases_of_pauses ON leases (origin) WHERE holder = '{PAUSE}'",
    ),
)
# A lease is valid for its seconds after the time at which it was taken, and for as many seconds
# before that time: a clock may be set back.
_VALID: Final = "abs(:now - taken) < seconds"
# What is above the limit, which Record.decode refuses, is not loaded into memory.
_RECORD: Final = """
SELECT state, body FROM records WHERE origin = :key
AND typeof(state) = 'blob' AND typeof(body) = 'blob' AND length(state) + length(body) <= :limit
"""
_WORKERS: Final = f"""
SELECT count(*) FROM leases WHERE origin >= '{WORKER}' AND origin < '{WORKER}~' AND {_VALID}
"""
_PAUSES: Final = f"""
SELECT origin, taken + seconds - :now FROM leases WHERE holder = '{PAUSE}' AND {_VALID}
"""
# A record from the future was written with a wrong clock, and gives way.
_PUT: Final = """
INSERT INTO records (origin, written, state, body) VALUES (:key, :at, :state, ifnull(:body, x''))
ON CONFLICT (origin) DO UPDATE SET written = excluded.written, state = excluded.state,
    body = CASE WHEN :body IS NULL THEN body ELSE excluded.body END
WHERE excluded.written >= records.written OR records.written > :now
"""
_CLAIM: Final = f"""
INSERT INTO leases (origin, holder, taken, seconds) VALUES (:key, :holder, :now, :seconds)
ON CONFLICT (origin) DO UPDATE SET holder = excluded.holder, taken = excluded.taken,
    seconds = CASE WHEN :force AND {_VALID} THEN max(excluded.seconds, taken + seconds - :now)
              ELSE excluded.seconds END
WHERE :force OR NOT ({_VALID}) OR leases.holder = excluded.holder
"""
_LEASE: Final = (
    f"SELECT holder, taken + seconds - :now FROM leases WHERE origin = :key AND {_VALID}"
)
_RELEASE: Final = "DELETE FROM leases WHERE origin = :key AND holder = :holder"
_USED_BYTES: Final = """
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_DROP_LEASES: Final = f"DELETE FROM leases WHERE NOT ({_VALID})"
_DROP_OLD: Final = """
DELETE FROM records WHERE rowid IN
(SELECT rowid FROM records WHERE written < ? OR written > ? LIMIT ?)
"""
# The oldest records, with the bytes of those that are older still.
_DROP_OLDEST: Final = """
DELETE FROM records WHERE rowid IN (SELECT rowid FROM (
    SELECT rowid, sum(size) OVER (ORDER BY written, rowid) - size AS older FROM (
        SELECT rowid, written, length(state) + length(body) AS size FROM records
        ORDER BY written, rowid LIMIT :most)) WHERE older < :bytes)
"""

_PRUNE_EVERY: Final = 300.0
"""Seconds between two prunings (deletions of old records), each of which follows a transaction."""
_PRUNED: Final = 2_000
"""Number of written records after which the next pruning doesn't wait for _PRUNE_EVERY, and of
records that a pruning deletes at most, so that other processes don't wait long."""


class _Connection:
    """A connection to the file, which is opened at first use, and after an error or ``close``."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self.opened: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def run(self, func: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of ``func``, called with the connection. Raises StoreError."""
        try:
            with file_errors():
                if self.opened is not None and _identity_of(self._path) != self._identity:
                    self.close()  # the file was removed, or replaced by another
                if self.opened is None:
                    self.opened = self._open()
                    self._identity = _identity_of(self._path)
                return func(self.opened)
        except FileError as error:
            self.close()
            advice = {
                DamagedFileError: "; delete it, or set REP_STORE to another file",
                OtherFormatError: "; set REP_STORE to another file",
            }.get(type(error), "")
            raise StoreError(f"it is {error}{advice}") from error

    def _open(self) -> sqlite3.Connection:
        if not self._path.parent.is_dir():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            LimitedLogger(__name__).info("Made the directory of REP_STORE: %s", self._path.parent)
        return open_file(self._path, FORMAT, timeout=self._timeout)

    def close(self) -> None:
        connection, self.opened = self.opened, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


@dataclass(eq=False, repr=False)
class SQLiteStore:
    """A store in an SQLite file.

    One thread at a time may call ``peek``, one ``read`` and ``pauses_left``, and one all the rest.
    """

    path: Path
    max_age: float
    """Seconds after which records are deleted."""
    max_bytes: int
    """While the file uses more bytes, the oldest records are deleted."""
    timeout: float
    """Seconds to wait for other processes."""
    clock: Callable[[], float] = time
    """Returns the seconds since the epoch."""
    is_shared: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._peeking = _Connection(self.path, 0.0)
        self._reading = _Connection(self.path, self.timeout)
        self._writing = _Connection(self.path, self.timeout)
        self._written = 0
        self._prune_at = 0.0

    def peek(self, keys: Sequence[str]) -> Found | None:
        # The file is made, and waited for, in a thread.
        if not any(each.opened for each in (self._peeking, self._reading, self._writing)):
            return None
        with suppress(StoreError):
            return self._peeking.run(lambda connection: self._read(keys, connection))
        return None

    def read(self, keys: Sequence[str]) -> Found:
        return self._reading.run(lambda connection: self._read(keys, connection))

    def _read(self, keys: Sequence[str], connection: sqlite3.Connection) -> Found:
        records = {
            key: Stored(*row)
            for key in keys
            for row in connection.execute(_RECORD, {"key": key, "limit": MAX_ENCODED_SIZE})
        }
        (workers,) = connection.execute(_WORKERS, {"now": self.clock()}).fetchone()
        return Found(records, workers)

    def write(self, changes: Sequence[Change]) -> list[Lease | None]:
        leases = self._writing.run(lambda connection: self._write(changes, connection))
        if self._written >= _PRUNED or monotonic() >= self._prune_at:
            with suppress(StoreError):  # a pruning that fails is repeated later
                self._writing.run(self._prune)
        return leases

    def _write(
        self, changes: Sequence[Change], connection: sqlite3.Connection
    ) -> list[Lease | None]:
        with transaction(connection):
            return [self._change(change, connection) for change in changes]

    def _change(self, change: Change, connection: sqlite3.Connection) -> Lease | None:
        values = {**change._asdict(), "now": self.clock()}
        if isinstance(change, Claim):
            connection.execute(_CLAIM, values)
            lease = connection.execute(_LEASE, values).fetchone()
            return None if lease is None else Lease(*lease)
        is_put = isinstance(change, Put)
        self._written += is_put
        connection.execute(_PUT if is_put else _RELEASE, values)
        return None

    def pauses_left(self) -> Mapping[str, float]:
        now = {"now": self.clock()}
        return self._reading.run(lambda connection: dict(connection.execute(_PAUSES, now)))

    def keys(self) -> Iterator[str]:
        query = "SELECT origin FROM records ORDER BY origin"
        for (key,) in self._writing.run(lambda connection: connection.execute(query).fetchall()):
            yield str(key)

    def delete(self, key: str) -> bool:
        drop = "DELETE FROM records WHERE origin = ?"
        return self._writing.run(lambda connection: connection.execute(drop, (key,)).rowcount > 0)

    def close(self) -> None:
        for connection in (self._peeking, self._reading, self._writing):
            connection.close()

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Delete ended leases and records that are too old; if the file is too large, the oldest.

        Of each kind at most _PRUNED records: if there are more, the next write deletes them.
        """
        self._written = 0
        with transaction(connection):
            now = self.clock()  # read only now: BEGIN may have waited for other processes
            connection.execute(_DROP_LEASES, {"now": now})
            # Records from far in the future are deleted, too: they were written with a wrong clock.
            ages = now - self.max_age, now + self.max_age, _PRUNED
            pruned = connection.execute(_DROP_OLD, ages).rowcount
            (used,) = connection.execute(_USED_BYTES).fetchone()
            if used > self.max_bytes:
                values = {"most": _PRUNED, "bytes": used - self.max_bytes}
                pruned += connection.execute(_DROP_OLDEST, values).rowcount
        self._prune_at = monotonic() + (0.0 if pruned >= _PRUNED else _PRUNE_EVERY)


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file; None if there is no file. Raises OSError."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
