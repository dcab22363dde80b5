"""The file in JOBDIR that has all requests of a crawl: an SQLite database, with a row for each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.utils.sqlite import (
    DamagedFileError,
    FileError,
    FileFormat,
    ForeignFileError,
    LockedFileError,
    OtherVersionError,
    identity_of,
    open_file,
    transaction,
)

_NAME: Final = "requests.sqlite"
STATE: Final[list[str | int]] = ["scrapy_rep.RobotsAwarePriorityQueue", 0]
"""What Scrapy's scheduler stores as the state of the queue, in JOBDIR. Scrapy's queues reject it.

DownloaderAwarePriorityQueue accepts no list, and ScrapyPriorityQueue only a list of numbers.
"""
_STATE_NAME: Final = "active.json"
"""The file from which Scrapy's scheduler reads this state."""
_SCHEMA: Final = (
    """CREATE TABLE requests
       (number INTEGER PRIMARY KEY, slot TEXT NOT NULL, origin TEXT NOT NULL,
        priority INTEGER NOT NULL, start INTEGER NOT NULL, position INTEGER NOT NULL,
        unreadable INTEGER NOT NULL DEFAULT 0, request BLOB NOT NULL)""",
    """CREATE INDEX by_rank ON requests (slot, origin, priority, start, position)
       WHERE NOT unreadable""",
    "CREATE INDEX unreadable ON requests (number) WHERE unreadable",
)
FORMAT: Final = FileFormat(0x52455002, 3, [_SCHEMA])
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
_SIZES: Final = "SELECT * FROM lanes WHERE slot {} ? ORDER BY slot, origin LIMIT ?"
_BEFORE_TEXT: Final = 0
"""A number, which SQLite sorts before all text, also before the empty one."""

LEAST: Final = -(1 << 63)
"""The least integer of SQLite."""
BEFORE_ALL: Final = (LEAST, 0, LEAST)
"""A sort key that comes before the keys of all requests."""
LaneName = tuple[str, str]
"""Slot and origin. The origin is empty if no robots.txt governs the requests."""
Key = tuple[Any, ...]
"""A sort key: negated priority, whether it is a start request, position."""


class RequestFile:
    """The rows of the file. All methods raise sqlite3.Error if it can't be read or written.

    The position of a row is its number, or its negated number. A row can be marked as unreadable;
    this ends when the file is opened again.
    """

    def __init__(self, folder: str, state: Any, spider: str) -> None:
        """``state`` is what Scrapy's scheduler has read from ``folder``, ``spider`` a name.

        Raises SettingsError if the file can't be used, or if another queue has written the state.
        """
        self._folder = Path(folder)
        self.spider: str = spider
        """The name of the spider whose requests these are."""
        self.path: Path = self._folder / _NAME
        _reject_state_of_another_queue(folder, state)
        try:
            self._connection = open_file(self.path, FORMAT, exclusive=True, prepare=self._prepare)
        except FileError as error:
            raise SettingsError(
                f"{self.path} is {error}, and is not changed. {_ADVICE[type(error)]}"
            ) from error
        # Damaged text must not raise an error. It is read as other text, which names no lane.
        self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        self._run = self._connection.execute
        self._identity = identity_of(self.path)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for statement in _AT_OPENING:
            connection.execute(statement)
        for statement in _OF_SPIDER:
            connection.execute(statement, (self.spider,) if "?" in statement else ())
        self.spider = connection.execute("SELECT name FROM spider").fetchone()[0]
        newest = connection.execute("SELECT max(number) FROM requests").fetchone()[0]
        self.number: int = newest or 0
        """The number of the newest row."""
        # From now on Scrapy's queues reject the folder, even if the crawl is killed.
        new = self._folder / f"{_STATE_NAME}.new"
        new.write_text(json.dumps(STATE), encoding="utf-8")
        new.replace(self._folder / _STATE_NAME)

    def number_of_requests(self) -> int:
        """Return the number of requests not marked as unreadable."""
        return int(self._run("SELECT total(size) FROM lanes").fetchone()[0])

    def lane_sizes(self, after: str | None, lanes: int) -> list[tuple[str, str, int]]:
        """Return slot, origin and number of requests of each lane in the next slots, sorted.

        The slots are those after the slot ``after``, or the first if it is None. Fewer lanes than
        ``lanes`` are returned only if no more are left; more are returned if the last slot has
        more, as slots are never split.
        """
        slot = _BEFORE_TEXT if after is None else after
        rows = self._run(_SIZES.format(">"), (slot, lanes)).fetchall()
        if len(rows) == lanes:
            last = rows[-1][0]
            rows = [row for row in rows if row[0] != last] + self.lane_sizes_of(last)
        return rows

    def lane_sizes_of(self, slot: str) -> list[tuple[str, str, int]]:
        return self._run(_SIZES.format("="), (slot, -1)).fetchall()

    def keys(self, lane: LaneName, after: Key, limit: int, without: Container[int]) -> list[Key]:
        """Return the keys of the next requests after the key ``after``, at most ``limit``.

        Rows whose numbers are in ``without`` are left out, and those with damaged keys.
        """

        def is_usable(key: Key) -> bool:
            return {*map(type, key)} == {int} and abs(key[2]) not in without

        # Python 3.10 doesn't close the file while a cursor is open.
        with closing(self._run(_NEXT, (*lane, *after))) as rows:
            return [*islice(filter(is_usable, rows), limit)]

    def insert(self, lane: LaneName, key: Key, data: bytes) -> None:
        self._run(_INSERT, (self.number + 1, *lane, *key, data))
        self.number += 1

    def data(self, number: int) -> bytes:
        """Return the request of a row, as it was written; empty if there is no such row."""
        row = self._run("SELECT request FROM requests WHERE number = ?", (number,)).fetchone()
        return b"" if row is None else row[0]

    def mark_unreadable(self, number: int) -> None:
        self._run("UPDATE requests SET unreadable = 1 WHERE number = ?", (number,))

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete rows: all of them, or none after an error."""
        with transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM requests WHERE number = ?", ((number,) for number in numbers)
            )

    def was_removed(self) -> bool:
        """Return whether the file was removed or replaced; what is written to it is then lost."""
        try:
            return identity_of(self.path) != self._identity
        except OSError:  # the file system fails, so the file may still be there
            return False

    def count_all(self) -> int:
        return int(self._run("SELECT count(*) FROM requests").fetchone()[0])

    def is_empty(self) -> bool:
        return not self._run("SELECT EXISTS (SELECT 1 FROM requests)").fetchone()[0]

    def close(self) -> None:
        self._connection.close()


def _reject_state_of_another_queue(folder: str, state: Any) -> None:
    if not state or state == STATE:
        return
    theirs = "DownloaderAwarePriorityQueue" if isinstance(state, dict) else "ScrapyPriorityQueue"
    raise SettingsError(
        f"{folder} has the requests of another priority queue, and is not changed. Finish that "
        f"crawl with SCHEDULER_PRIORITY_QUEUE = 'scrapy.pqueues.{theirs}', or set JOBDIR to a new "
        "directory"
    )
