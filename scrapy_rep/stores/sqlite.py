"""The store in an SQLite file, which all processes of a machine may share.

The file has a row for each record and lease. It has a write-ahead log, so that reads don't
wait for writes. Each process has one thread that reads and one that writes. Calls that arrive while
the writing thread is busy are run in its next transaction, because a transaction costs more than a
call. Old records are deleted after a transaction, every few minutes or after many writes. If a
process is killed, only its current transaction is lost.
"""

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from scrapy_rep.protocol.record import Record, RecordError, max_encoded_size
from scrapy_rep.stores.base import PAUSE, Lease, RecordAndLease, StoreError
from scrapy_rep.stores.sqlite_file import Connection, DatabaseFile
from scrapy_rep.utils.concurrency import Job, Workers, deliver_results
from scrapy_rep.utils.sqlite import transaction

# A lease is valid for its seconds after the time at which it was taken, and for as many seconds
# before that time: a clock may be set back, and two processes may read the clock in one order and
# write in the other.
_LEASE_IS_VALID: Final = """
typeof(leases.holder) = 'text' AND typeof(leases.taken) = 'real'
AND typeof(leases.seconds) = 'real' AND abs(:now - leases.taken) < leases.seconds
"""
# Data above the limit, which Record.decode refuses, is not loaded into memory.
# The holder is cast to a blob: if it were a text that is not valid UTF-8, reading the row would
# fail.
_GET: Final = f"""
SELECT (SELECT data FROM records
        WHERE origin = :origin AND typeof(data) = 'blob' AND length(data) <= :limit),
       CAST(holder AS BLOB), taken + seconds - :now
FROM (SELECT 1) LEFT JOIN leases ON origin = :origin AND {_LEASE_IS_VALID}
"""  # noqa: S608 - a constant
_GET_ALL: Final = f"""
SELECT records.origin, data, CAST(holder AS BLOB), taken + seconds - :now
FROM records LEFT JOIN leases ON leases.origin = records.origin AND {_LEASE_IS_VALID}
WHERE records.origin IN (%s) AND typeof(data) = 'blob' AND length(data) <= :limit
"""  # noqa: S608 - a constant
_PAUSES: Final = f"""
SELECT CAST(origin AS BLOB), taken + seconds - :now FROM leases
WHERE holder = '{PAUSE}' AND {_LEASE_IS_VALID}
"""  # noqa: S608 - a constant
_CLAIM: Final = f"""
INSERT INTO leases (origin, holder, taken, seconds)
SELECT :origin, :holder, :now, :seconds
WHERE NOT :if_absent OR NOT EXISTS (SELECT 1 FROM records WHERE origin = :origin)
ON CONFLICT (origin) DO UPDATE
SET holder = excluded.holder, taken = excluded.taken, seconds = CASE
    WHEN :force AND {_LEASE_IS_VALID}
    THEN max(excluded.seconds, leases.taken + leases.seconds - excluded.taken)
    ELSE excluded.seconds
END
WHERE :force OR NOT ({_LEASE_IS_VALID}) OR leases.holder = excluded.holder
"""  # noqa: S608 - a constant
_PUT: Final = """
INSERT INTO records (origin, written, data) VALUES (?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET written = excluded.written, data = excluded.data
"""
_RELEASE: Final = "DELETE FROM leases WHERE origin = ? AND holder = ?"
_PAGE_OF_ORIGINS: Final = """
SELECT CAST(origin AS BLOB) FROM records
WHERE origin > CAST(? AS TEXT) AND typeof(origin) = 'text' ORDER BY origin LIMIT ?
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
"""Seconds between two prunings (deletions of old records), each of which follows a transaction."""
_PRUNE_AFTER: Final = 2_000
"""Number of written records after which the next pruning doesn't wait for _PRUNE_EVERY."""
_PRUNE_ROWS: Final = 2_000
"""Maximum number of records deleted in a transaction, so that other processes don't wait long."""
_PAGE: Final = 1_000
_KEYS: Final = 500
"""Maximum number of records that one statement reads."""
_FREE_PAGES: Final = 2_000
"""Maximum number of free pages returned to the file system after a pruning."""


@dataclass(frozen=True, eq=False)
class _ClaimIfAbsent:
    """Marks a claim that is only made without a record of ``key``: see ``_end_needless_claims``."""

    key: str
    claim: Callable[[sqlite3.Connection], RecordAndLease]

    def __call__(self, connection: sqlite3.Connection) -> RecordAndLease:
        return self.claim(connection)


class SQLiteStore:
    """A store in the SQLite file ``path``.

    A record whose text has more than ``max_size`` bytes is not returned. Records older than
    ``max_age`` seconds are deleted, and the oldest ones while the file uses more than ``max_bytes``
    bytes. ``timeout`` is the seconds to wait for other processes that write; ``clock`` returns the
    seconds since the epoch. If ``deletes_damaged``, a damaged file is replaced by a new one, once.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_size: int,
        max_age: float,
        max_bytes: int,
        timeout: float,
        clock: Callable[[], float],
        deletes_damaged: bool = True,
    ) -> None:
        self._file = DatabaseFile(path, timeout, deletes_damaged=deletes_damaged)
        self._max_size = max_size
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._clock = clock
        self._reading = Connection(self._file)
        self._writing = Connection(self._file)
        self._reader = Workers("robots.txt-reader", batch=50)
        self._writer = Workers("robots.txt-writer", batch=1_000, run=self._write)
        self._written = 0
        self._prune_at = 0.0

    async def get(self, key: str) -> RecordAndLease:
        return await self._reader.call(
            lambda: self._reading.run(lambda connection: self._record_and_lease(connection, key))
        )

    async def claim(
        self, key: str, holder: str, seconds: float, *, force: bool = False, if_absent: bool = False
    ) -> RecordAndLease:
        def claim(connection: sqlite3.Connection) -> RecordAndLease:
            values = {"origin": key, "holder": holder, "now": self._clock(), "seconds": seconds}
            claimed = connection.execute(_CLAIM, {**values, "force": force, "if_absent": if_absent})
            if if_absent and not force and claimed.rowcount > 0:
                return RecordAndLease(None, Lease(holder, seconds))
            return self._record_and_lease(connection, key)

        func: Callable[..., RecordAndLease] = _ClaimIfAbsent(key, claim) if if_absent else claim
        return await self._writer.call(func)

    async def pauses_left(self) -> Mapping[str, float]:
        def read(connection: sqlite3.Connection) -> dict[str, float]:
            rows = connection.execute(_PAUSES, {"now": self._clock()})
            return {key.decode("utf-8", "replace"): left for key, left in rows}

        return await self._reader.call(lambda: self._reading.run(read))

    async def put(self, record: Record, holder: str | None = None) -> None:
        def put(connection: sqlite3.Connection) -> None:
            self._written += 1
            connection.execute(_PUT, (str(record.origin), self._clock(), record.encode()))
            if holder is not None:
                connection.execute(_RELEASE, (str(record.origin), holder))

        await self._writer.call(put)

    async def release(self, key: str, holder: str) -> None:
        def release(connection: sqlite3.Connection) -> None:
            connection.execute(_RELEASE, (key, holder))

        await self._writer.call(release)

    async def scan_keys(self) -> AsyncIterator[str]:
        def page(after: bytes, connection: sqlite3.Connection) -> list[bytes]:
            return [row[0] for row in connection.execute(_PAGE_OF_ORIGINS, (after, _PAGE))]

        last = b""
        while True:
            found = await self._reader.call(partial(self._reading.run, partial(page, last)))
            for last in found:
                yield last.decode("utf-8", "replace")
            if len(found) < _PAGE:
                return

    async def discard(self, key: str) -> bool:
        def discard(connection: sqlite3.Connection) -> bool:
            return connection.execute(_DROP, (key,)).rowcount > 0

        return await self._writer.call(discard)

    async def prune(self) -> int:
        pruned = 0
        while True:
            step = await self._reader.call(lambda: self._writing.run(self._prune))
            pruned += step
            if step < _PRUNE_ROWS:
                return pruned

    async def close(self) -> None:
        await self._writer.stop()
        await self._reader.call(self._close)
        await self._reader.stop()

    def _close(self) -> None:
        self._reading.close()
        self._writing.close()

    def _record_and_lease(self, connection: sqlite3.Connection, key: str) -> RecordAndLease:
        values = {"origin": key, "now": self._clock(), "limit": max_encoded_size(self._max_size)}
        return self._decode(key, *connection.execute(_GET, values).fetchone())

    def _decode(
        self, key: str, data: bytes | None, holder: bytes | None, left: float
    ) -> RecordAndLease:
        """Return the values of a row; without the record if it can't be decoded."""
        record = None
        if data is not None:
            with suppress(RecordError):
                record = Record.decode(data, key, max_size=self._max_size)
        lease = None if holder is None else Lease(holder.decode("utf-8", "replace"), left)
        return RecordAndLease(record, lease)

    def _write(self, jobs: list[Job]) -> None:
        """Run jobs in one transaction: all succeed or fail together; deliver results and errors.

        Before that, the claims that need no lease, as there is a record, get it as their result.
        Afterwards old records are deleted, if the last pruning was long ago or many were written.
        """
        try:
            jobs = self._end_needless_claims(jobs)
            if jobs:
                self._writing.run(lambda connection: self._transact(connection, jobs))
        except Exception as error:  # noqa: BLE001 - raised where each job is awaited
            for job in jobs:
                job.error = error
        deliver_results(jobs)
        if self._written >= _PRUNE_AFTER or monotonic() >= self._prune_at:
            # The results of the jobs are delivered already. A pruning that fails is repeated later.
            with suppress(StoreError):
                self._writing.run(self._prune)

    def _end_needless_claims(self, jobs: list[Job]) -> list[Job]:
        """End the claims that are made only without a record, if there is one; return the rest."""
        # They only read for this, and so don't wait for other processes that write.
        claims = {job: job.func.key for job in jobs if isinstance(job.func, _ClaimIfAbsent)}
        keys = list(set(claims.values()))
        found: dict[str, RecordAndLease] = {}
        for first in range(0, len(keys), _KEYS):
            found |= self._writing.run(partial(self._known, keys=keys[first : first + _KEYS]))
        ended = {job: found[key] for job, key in claims.items() if key in found}
        for job, result in ended.items():
            job.result = result
        deliver_results(list(ended))
        return [job for job in jobs if job not in ended]

    def _known(self, connection: sqlite3.Connection, keys: list[str]) -> dict[str, RecordAndLease]:
        """Return the records of ``keys`` that can be read, and their leases; not leases alone.

        One statement reads all: in each, this thread waits for the others of the process.
        """
        names = {f"key{number}": key for number, key in enumerate(keys)}
        values = {"now": self._clock(), "limit": max_encoded_size(self._max_size), **names}
        rows = connection.execute(_GET_ALL % ", ".join(f":{name}" for name in names), values)
        found = {key: self._decode(key, *row) for key, *row in rows}
        return {key: each for key, each in found.items() if each.record is not None}

    @staticmethod
    def _transact(connection: sqlite3.Connection, jobs: list[Job]) -> None:
        with transaction(connection):
            for job in jobs:
                job.result = job.func(connection)

    def _prune(self, connection: sqlite3.Connection) -> int:
        """Delete records that are too old; if the file is too large, also the oldest records.

        Also delete ended leases. It begins transactions of its own. Return the number of deleted
        records: if it is _PRUNE_ROWS or more, there may be further records to delete.
        """
        self._written = 0
        self._prune_at = monotonic() + _PRUNE_EVERY
        with transaction(connection):
            now = self._clock()  # read only now: BEGIN may have waited for other processes
            connection.execute(_DROP_LEASES, {"now": now})
            # Records from far in the future are deleted, too: they were written with a wrong clock.
            ages = now - self._max_age, now + self._max_age, _PRUNE_ROWS
            pruned = connection.execute(_DROP_OLD, ages).rowcount
        if self._used_bytes(connection) > self._max_bytes:
            with transaction(connection):
                pruned += connection.execute(_DROP_OLDEST, (_PRUNE_ROWS,)).rowcount
        if pruned >= _PRUNE_ROWS:
            self._prune_at = 0.0
        # Not ``execute``: it would stop after the first freed page, which it returns as a row.
        connection.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
        return int(pruned)

    @staticmethod
    def _used_bytes(connection: sqlite3.Connection) -> int:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
