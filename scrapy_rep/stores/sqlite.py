"""Records in an SQLite file, which outlives the crawl and serves every process of a machine."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.record import Record, RecordError, max_encoded
from scrapy_rep.stores.base import Held, StoreError, Turn
from scrapy_rep.stores.sqlite_file import Connection, DatabaseFile, transaction
from scrapy_rep.utils.concurrency import Workers, deliver

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from scrapy_rep.utils.concurrency import Job

# A lease holds for its seconds, and as long again before it was taken: clocks are set back, and two
# processes do not read them in the order in which they write.
_HOLDS: Final = """
typeof(leases.holder) = 'text' AND typeof(leases.taken) = 'real'
AND typeof(leases.seconds) = 'real' AND abs(:now - leases.taken) < leases.seconds
"""
# As blobs, because reading a text that is not UTF-8 would fail the whole statement.
_GET: Final = f"""
SELECT (SELECT data FROM records
        WHERE origin = :origin AND typeof(data) = 'blob' AND length(data) <= :limit),
       (SELECT CAST(holder AS BLOB) FROM leases WHERE origin = :origin AND {_HOLDS})
"""  # noqa: S608 - a constant
_CLAIM: Final = f"""
INSERT INTO leases (origin, holder, taken, seconds) VALUES (:origin, :holder, :now, :seconds)
ON CONFLICT (origin) DO UPDATE
SET holder = excluded.holder, taken = excluded.taken, seconds = excluded.seconds
WHERE NOT ({_HOLDS})
"""  # noqa: S608 - a constant
_PUT: Final = """
INSERT INTO records (origin, written, data) VALUES (?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET written = excluded.written, data = excluded.data
"""
_RELEASE: Final = "DELETE FROM leases WHERE origin = ? AND holder = ?"
# In microseconds of the monotonic clock, which all processes of a machine share and which is never
# set. It restarts with the machine: then the time left is counted from when the row was written.
_RESERVE: Final = """
INSERT INTO turns (origin, made, next) VALUES (:origin, :now, :now + :step)
ON CONFLICT (origin) DO UPDATE
SET made = :now, next = :now + :step + max(
    0, next - max(:now, made) - CASE WHEN next = :unused THEN :step ELSE 0 END
)
"""
_RESERVED: Final = "SELECT next FROM turns WHERE origin = ?"
_PAGE_OF_ORIGINS: Final = """
SELECT CAST(origin AS BLOB) FROM records
WHERE origin > CAST(? AS TEXT) AND typeof(origin) = 'text' ORDER BY origin LIMIT ?
"""
_DROP: Final = "DELETE FROM records WHERE origin = ?"
_DROP_LEASES: Final = "DELETE FROM leases WHERE abs(:now - taken) >= seconds"
_DROP_TURNS: Final = "DELETE FROM turns WHERE next <= :now"
_DROP_OLD: Final = """
DELETE FROM records WHERE rowid IN
(SELECT rowid FROM records WHERE written < ? OR written > ? LIMIT ?)
"""
_DROP_OLDEST: Final = """
DELETE FROM records WHERE rowid IN (SELECT rowid FROM records ORDER BY written LIMIT ?)
"""

_MICROSECONDS: Final = 1_000_000
_PRUNE_EVERY: Final = 300.0
"""Seconds between two runs of pruning."""
_PRUNE_AFTER: Final = 2_000
"""Number of written records between two runs of pruning."""
_PRUNE_ROWS: Final = 2_000
"""Largest number of records deleted in one transaction, so that writes don't wait long."""
_PAGE: Final = 1_000
"""Number of keys read at a time."""
_FREE_PAGES: Final = 2_000
"""Largest number of pages returned to the file system per run."""


class SQLiteStore:
    """An SQLite file with one row per record, lease and turn.

    One thread reads and one writes. The writes that arrive during a transaction are made together
    in the next one. If the process is killed, only the transaction under way is lost.
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
        set_aside: bool = True,
    ) -> None:
        self._file = DatabaseFile(path, timeout, sets_aside=set_aside)
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

    async def get(self, key: str) -> Held:
        """Return record and lease of ``key``."""
        return await self._reader.call(
            lambda: self._reading.run(lambda connection: self._held(connection, key))
        )

    async def claim(self, key: str, holder: str, seconds: float) -> Held:
        """Give ``holder`` the lease of ``key``, unless another holds it."""

        def claim(connection: sqlite3.Connection) -> Held:
            connection.execute(
                _CLAIM,
                {"origin": key, "holder": holder, "now": self._clock(), "seconds": seconds},
            )
            return self._held(connection, key)

        return await self._writer.call(claim)

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of the one before."""

        def put(connection: sqlite3.Connection) -> None:
            self._written += 1
            connection.execute(_PUT, (record.file.key, self._clock(), record.encode()))
            if holder is not None:
                connection.execute(_RELEASE, (record.file.key, holder))

        await self._writer.call(put)

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if it is that of ``holder``."""

        def release(connection: sqlite3.Connection) -> None:
            connection.execute(_RELEASE, (key, holder))

        await self._writer.call(release)

    async def reserve(self, key: str, seconds: float, unused: int | None = None) -> Turn:
        """Reserve the next free turn of ``key``."""
        asked, step = _now(), round(seconds * _MICROSECONDS)

        def reserve(connection: sqlite3.Connection) -> Turn:
            values = {"origin": key, "now": _now(), "step": step, "unused": unused}
            connection.execute(_RESERVE, values)
            ((mark,),) = connection.execute(_RESERVED, (key,))
            return Turn((mark - step - asked) / _MICROSECONDS, mark)

        return await self._writer.call(reserve)

    async def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, in their order."""

        def page(after: bytes, connection: sqlite3.Connection) -> list[bytes]:
            return [row[0] for row in connection.execute(_PAGE_OF_ORIGINS, (after, _PAGE))]

        last = b""
        while True:
            found = await self._reader.call(partial(self._reading.run, partial(page, last)))
            for last in found:
                yield last.decode("utf-8", "replace")
            if len(found) < _PAGE:
                return

    async def drop(self, key: str) -> bool:
        """Remove the record of ``key``; return whether there was one."""

        def drop(connection: sqlite3.Connection) -> bool:
            return connection.execute(_DROP, (key,)).rowcount > 0

        return await self._writer.call(drop)

    async def prune(self) -> int:
        """Remove the records that are too old or too many; return their number."""
        pruned = 0
        while True:
            step = await self._reader.call(lambda: self._writing.run(self._prune))
            pruned += step
            if step < _PRUNE_ROWS:
                return pruned

    async def close(self) -> None:
        """Finish all writes and close the file."""
        await self._writer.stop()
        await self._reader.call(self._close)
        await self._reader.stop()

    def _close(self) -> None:
        self._reading.close()
        self._writing.close()

    def _held(self, connection: sqlite3.Connection, key: str) -> Held:
        values = {"origin": key, "now": self._clock(), "limit": max_encoded(self._max_size)}
        data, holder = connection.execute(_GET, values).fetchone()
        record = None
        if data is not None:
            with suppress(RecordError):
                record = Record.decode(data, key, max_size=self._max_size)
        return Held(record, None if holder is None else holder.decode("utf-8", "replace"))

    def _write(self, jobs: list[Job]) -> None:
        """Run jobs in one transaction: all of them are done, or none."""
        try:
            self._writing.run(lambda connection: self._transact(connection, jobs))
        except Exception as error:  # noqa: BLE001 - raised where each is awaited
            for job in jobs:
                job.error = error
        deliver(jobs)
        if self._written >= _PRUNE_AFTER or monotonic() >= self._prune_at:
            # The jobs have their results; a later write prunes again.
            with suppress(StoreError):
                self._writing.run(self._prune)

    @staticmethod
    def _transact(connection: sqlite3.Connection, jobs: list[Job]) -> None:
        with transaction(connection):
            for job in jobs:
                job.result = job.func(connection)

    def _prune(self, connection: sqlite3.Connection) -> int:
        """Remove records that are too old, then the oldest ones above the limit, in a small step.

        Return their number; if it is _PRUNE_ROWS, there may be more.
        """
        self._written = 0
        self._prune_at = monotonic() + _PRUNE_EVERY
        with transaction(connection):
            now = self._clock()  # only now, as the transaction may have waited for others
            connection.execute(_DROP_LEASES, {"now": now})
            connection.execute(_DROP_TURNS, {"now": _now()})
            # Also those written in the future, by a wrong clock.
            ages = now - self._max_age, now + self._max_age, _PRUNE_ROWS
            pruned = connection.execute(_DROP_OLD, ages).rowcount
        if self._used(connection) > self._max_bytes:
            with transaction(connection):
                pruned += connection.execute(_DROP_OLDEST, (_PRUNE_ROWS,)).rowcount
        if pruned >= _PRUNE_ROWS:
            self._prune_at = 0.0
        # execute() would stop after one page, as each page is a row without columns.
        connection.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
        return int(pruned)

    @staticmethod
    def _used(connection: sqlite3.Connection) -> int:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


def _now() -> int:
    return round(monotonic() * _MICROSECONDS)
