"""The file in JOBDIR that has all requests of a crawl: an SQLite database, with a row for each.

Popping a request doesn't delete its row in the file: the row stays until the engine has finished
the request and its callback. If the crawl is killed, the next one repeats the requests that were in
progress, so none is lost. The numbers of popped and finished rows are kept in memory, and these
rows are left out. Rows that can't be read are marked as unreadable, and tried again by the next
crawl.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.scheduler.jobdir import folder_of, other_queue, read_state, write_state
from scrapy_rep.scheduler.lanes import Rank
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import add_part, get_part, remove_part
from scrapy_rep.utils.scrapy_internals import requests_in_progress
from scrapy_rep.utils.sqlite import (
    DamagedFileError,
    FileError,
    FileFormat,
    ForeignFileError,
    LockedFileError,
    OtherVersionError,
    file_errors,
    identity_of,
    open_file,
    transaction,
)

_NAME: Final = "requests.sqlite"
_SCHEMA: Final = (
    """CREATE TABLE requests
       (number INTEGER PRIMARY KEY, slot TEXT NOT NULL, origin TEXT NOT NULL,
        priority INTEGER NOT NULL, start INTEGER NOT NULL, position INTEGER NOT NULL,
        unreadable INTEGER NOT NULL DEFAULT 0, request BLOB NOT NULL)""",
    """CREATE INDEX by_rank ON requests (slot, origin, priority, start, position)
       WHERE NOT unreadable""",
    "CREATE INDEX unreadable ON requests (number) WHERE unreadable",
)
_COLUMNS: Final = [
    *("number", "slot", "origin", "priority", "start", "position", "unreadable", "request")
]
FORMAT: Final = FileFormat(0x52455002, 3, _SCHEMA)
_ADVICE: Final = {
    LockedFileError: "Another crawl is using this JOBDIR",
    ForeignFileError: "Set JOBDIR to a new directory",
    OtherVersionError: "Finish its crawl with that version, or set JOBDIR to a new directory",
    DamagedFileError: "Restore a copy of it, or set JOBDIR to a new directory",
    FileError: "JOBDIR must be a directory that can be written",
}
"""What to do if the file can't be used, by the class of the error."""
_AT_OPENING: Final = (
    "UPDATE requests SET unreadable = 0 WHERE unreadable",
    """CREATE TEMP TABLE lanes (slot, origin, size, PRIMARY KEY (slot, origin)) WITHOUT ROWID""",
    """INSERT INTO lanes SELECT CAST(slot AS TEXT), CAST(origin AS TEXT), count(*) FROM requests
       WHERE NOT unreadable GROUP BY slot, origin
       ON CONFLICT DO UPDATE SET size = size + excluded.size""",
    """CREATE TEMP TRIGGER added AFTER INSERT ON main.requests BEGIN
       INSERT INTO lanes VALUES (new.slot, new.origin, 1)
       ON CONFLICT DO UPDATE SET size = size + 1; END""",
    """CREATE TEMP TRIGGER deleted AFTER DELETE ON main.requests BEGIN
       UPDATE lanes SET size = size - 1 WHERE slot = old.slot AND origin = old.origin; END""",
    """CREATE TEMP TRIGGER marked AFTER UPDATE OF unreadable ON main.requests BEGIN
       UPDATE lanes SET size = size - 1 WHERE slot = old.slot AND origin = old.origin; END""",
    """CREATE TEMP TRIGGER emptied AFTER UPDATE ON lanes WHEN new.size < 1 BEGIN
       DELETE FROM lanes WHERE slot = new.slot AND origin = new.origin; END""",
)
"""Statements that mark all requests as readable, and count those of each lane in a table.

To count them each time that a lane is loaded would take longer the more requests it has. The table
is not part of the file. In a damaged index, a slot may not be text, and the requests of a lane may
not follow each other."""
_INSERT: Final = "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, 0, ?)"
_NEXT: Final = """SELECT priority, start, position FROM requests
    WHERE NOT unreadable AND slot = ? AND origin = ? AND (priority, start, position) > (?, ?, ?)
    ORDER BY priority, start, position"""
_OF_SPIDER: Final = (
    "CREATE TABLE IF NOT EXISTS spider (name TEXT NOT NULL)",
    "DELETE FROM spider WHERE NOT EXISTS (SELECT * FROM requests)",
    "INSERT INTO spider SELECT ? WHERE NOT EXISTS (SELECT * FROM spider)",
)
"""Statements that store the name of the spider, unless the file has requests of another one."""
_SIZES: Final = """SELECT * FROM lanes WHERE slot > ?1 AND slot <= ifnull(
    (SELECT slot FROM lanes WHERE slot > ?1 ORDER BY slot LIMIT 1 OFFSET ?2 - 1), x'')
    ORDER BY slot, origin"""
"""SQLite sorts all text before blobs, and after numbers."""
_BEFORE_TEXT: Final = 0
_INTERVAL: Final = 5
"""Seconds between two checks that the file still exists, and between two tries to delete rows. The
engine pops at least every five seconds, too, so no timer is needed."""

LEAST: Final = -(1 << 63)
"""The least integer of SQLite."""
BEFORE_ALL: Final = (LEAST, 0, LEAST)
"""A sort key that comes before the keys of all requests."""
LaneName = tuple[str, str]
"""Slot and origin. The origin is empty if no robots.txt governs the requests."""
LaneSize = tuple[str, str, int]
"""Slot, origin, and number of requests."""
Key = tuple[Any, ...]
"""A sort key: negated priority, whether it is a start request, position."""


class RequestFile:
    """The rows of the file. Methods that read raise sqlite3.Error if it can't be read.

    ``insert`` raises ValueError if it can't be written; other errors of writing are logged.
    The position of a row is its number, or its negated number. A popped row stays in the file until
    its request is finished. Methods that read leave out rows that were popped or marked as
    unreadable; the mark is in the file, and is removed when it is opened again.
    """

    @classmethod
    def open_early(cls, crawler: Crawler) -> None:
        """Open the file of an earlier crawl in JOBDIR, if there is one, before the spider opens.

        Raises SettingsError if it can't be used.
        """
        folder = folder_of(crawler.settings)
        if folder is None or other_queue(crawler.settings) is not None:
            return
        state = read_state(folder)
        if state or (folder / _NAME).exists():
            add_part(crawler, cls(crawler, str(folder), state))

    @classmethod
    def of(cls, crawler: Crawler, folder: str, state: Any) -> RequestFile:
        """Return the file that was opened early, or open it."""
        found = get_part(crawler, cls)
        remove_part(crawler, cls)
        return found or cls(crawler, folder, state)

    def __init__(self, crawler: Crawler, folder: str, state: Any) -> None:
        """``state`` is what Scrapy's scheduler has read from ``folder``.

        Raises SettingsError if the file can't be used.
        """
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._folder = Path(folder)
        self._path = self._folder / _NAME
        try:
            with file_errors():
                if state and not (self._path.exists() and self._path.stat().st_size):
                    raise DamagedFileError("empty, though JOBDIR has requests")
                self._connection = open_file(
                    self._path, FORMAT, exclusive=True, prepare=self._prepare
                )
                write_state(self._folder)
        except FileError as error:
            raise SettingsError(
                f"{self._path} is {error}, and is not changed. {_ADVICE[type(error)]}"
            ) from None
        # Damaged text must not raise an error. It is read as other text, which names no lane.
        self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        self._run = self._connection.execute
        self._identity = identity_of(self._path)
        self._in_progress: dict[int, Request] = {}
        """Popped requests that the engine has not finished, by row number."""
        self._ended: set[int] = set()
        """Row numbers of finished requests, to be deleted."""
        self._popped: dict[int, LaneName] = {}
        """The lanes of all popped rows, by number: of those above, and of unreadable requests that
        could not be marked as unreadable."""
        self._delete_at = -math.inf
        self._check_at = -math.inf
        self._has_write_failed = False

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check the columns, count the requests of lanes, and store or read the spider's name."""
        columns = connection.execute("SELECT name FROM pragma_table_info('requests')").fetchall()
        if [name for (name,) in columns] != _COLUMNS:
            raise DamagedFileError("damaged (its table has other columns)")
        for statement in _AT_OPENING:
            connection.execute(statement)
        spider = self._crawler.spider
        name = "" if spider is None else spider.name
        for statement in _OF_SPIDER:
            connection.execute(statement, (name,) if "?" in statement else ())
        (theirs,) = connection.execute("SELECT name FROM spider").fetchone()
        if theirs != name:
            self._logger.warning(
                "JOBDIR has the requests of the spider %a, and this is %a: those whose callbacks "
                "it lacks can't be read. Use a JOBDIR for each spider",
                theirs,
                name,
            )
        newest = connection.execute("SELECT max(number) FROM requests").fetchone()[0]
        self._number: int = newest or 0
        """The number of the newest row."""
        size = connection.execute("SELECT total(size) FROM lanes").fetchone()[0]
        self.requests_at_opening: int = int(size)

    # Rows are read and written.

    def lane_sizes(self, after: str | None, lanes: int) -> list[LaneSize]:
        """Return the lanes of the next slots, sorted by slot and origin.

        The slots are those after the slot ``after``, or the first if it is None. Fewer lanes than
        ``lanes`` are returned only if no more are left; more are returned if the last slot has
        more, as slots are never split. A lane whose requests were all popped has the size 0.
        """
        slot = _BEFORE_TEXT if after is None else after
        return self._without_popped(self._run(_SIZES, (slot, lanes)).fetchall())

    def lane_sizes_of(self, slot: str) -> list[LaneSize]:
        rows = self._run("SELECT * FROM lanes WHERE slot = ? ORDER BY origin", (slot,))
        return self._without_popped(rows.fetchall())

    def _without_popped(self, rows: list[LaneSize]) -> list[LaneSize]:
        popped = Counter(self._popped.values())
        return [(slot, origin, max(0, size - popped[slot, origin])) for slot, origin, size in rows]

    def keys(self, lane: LaneName, limit: int, after: Key = BEFORE_ALL) -> list[Key]:
        """Return the first ``limit`` usable keys after ``after``: neither popped nor damaged."""

        def is_usable(key: Key) -> bool:
            return {*map(type, key)} == {int} and abs(key[2]) not in self._popped

        # Python 3.10 doesn't close the file while a cursor is open.
        with closing(self._run(_NEXT, (*lane, *after))) as rows:
            return [*islice(filter(is_usable, rows), limit)]

    def data(self, key: Key) -> bytes:
        """Return the request of a row, as it was written; empty if there is no such row."""
        query = "SELECT request FROM requests WHERE number = ?"
        row = self._run(query, (abs(key[2]),)).fetchone()
        return b"" if row is None else row[0]

    def insert(self, lane: LaneName, rank: Rank, data: bytes) -> Key:
        """Write a row; return its key. ``rank`` is as in ``Lanes.push``. Raises ValueError."""
        number = self._number + 1
        key = *rank[:2], number * rank[2]
        with self._log_write_errors("Requests are kept in memory until they can be written"):
            self._run(_INSERT, (number, *lane, *key, data))
            self._number = number
            return key
        raise ValueError("the requests can't be written to JOBDIR")

    @contextmanager
    def _log_write_errors(self, consequence: str) -> Iterator[None]:
        """Suppress an error of SQLite in the ``with`` block; log only the first in a row.

        ``consequence`` is what follows from the error, for the log line.
        """
        try:
            yield
        except sqlite3.Error as error:
            if not self._has_write_failed:
                self._has_write_failed = True
                self._logger.error(  # noqa: TRY400 - it is told what to do about it
                    "The requests can't be written to JOBDIR: %s. %s",
                    str(error).rstrip("."),
                    consequence,
                )
        else:
            self._has_write_failed = False

    # Rows are popped, and deleted.

    def pop(self, lane: LaneName, key: Key, request: Request | None) -> None:
        """Leave out a row from now on; its ``request`` leaves, or is None if it can't be read."""
        number = abs(key[2])
        self._popped[number] = lane
        if request is not None:
            self._in_progress[number] = request
            return
        with self._log_write_errors("What can't be read isn't marked"):
            self._run("UPDATE requests SET unreadable = 1 WHERE number = ?", (number,))
            del self._popped[number]

    def delete_finished(self, now: float = math.inf) -> None:
        """Delete the rows of requests that the engine has finished.

        After an error, this is tried again only after a delay. ``now`` is the time of the monotonic
        clock; the default is after any delay.
        """
        there = requests_in_progress(self._crawler)
        for number in [
            number for number, request in self._in_progress.items() if request not in there
        ]:
            del self._in_progress[number]
            self._ended.add(number)
        if not self._ended or now < self._delete_at:
            return
        self._delete_at = now + _INTERVAL
        with self._log_write_errors("A request that was downloaded may come again"):
            with transaction(self._connection):
                self._connection.executemany(
                    "DELETE FROM requests WHERE number = ?", ((number,) for number in self._ended)
                )
            for number in self._ended:
                del self._popped[number]
            self._ended.clear()
            self._delete_at = -math.inf

    # The file.

    def log_if_removed(self, now: float) -> None:
        """Log once if the file was removed or replaced. The crawl goes on with the open file."""
        if now < self._check_at:
            return
        self._check_at = now + _INTERVAL
        if self._was_removed():
            self._check_at = math.inf
            self._logger.error(
                "%s was removed or replaced: the requests that are left when the crawl ends are "
                "lost",
                self._path,
            )

    def _was_removed(self) -> bool:
        try:
            return identity_of(self._path) != self._identity
        except OSError:  # the file system fails, so the file may still be there
            return False

    def close(self) -> bool:
        """Delete finished rows, and close the file; return whether rows are left, or may be.

        If the file was removed, the number of requests that are lost is logged.
        """
        with closing(self._connection):
            with suppress(sqlite3.Error):
                self.delete_finished()
                (is_any,) = self._run("SELECT EXISTS (SELECT 1 FROM requests)").fetchone()
                if is_any and self._was_removed():
                    self._logger.error(
                        "Requests lost, because %s was removed or replaced: %d",
                        self._path,
                        *self._run("SELECT count(*) FROM requests").fetchone(),
                    )
                return bool(is_any)
            return True
