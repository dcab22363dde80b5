"""The requests of a crawl with JOBDIR: an SQLite file that has a row for each.

Only the table ``requests`` is in the file. The lanes are counted again, in memory, when the file is
opened: a row for each, so that a job with a million hosts is resumed in seconds.

Popping a request doesn't delete its row: the row stays until the engine has finished the request
and its callback. If the crawl is killed, the next one repeats the requests that were in progress,
so none is lost. Rows that can't be read are marked, and tried again by the next crawl.
"""

from __future__ import annotations

import json
import math
import pickle
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from operator import index
from pathlib import Path
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from scrapy_rep import stats
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.scheduler.jobdir_state import STATE, folder_of, other_queue, read_state, write_state
from scrapy_rep.scheduler.request_heaps import Lane, Rank
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import add_part, take_part
from scrapy_rep.utils.scrapy_internals import requests_in_progress
from scrapy_rep.utils.sqlite import (
    DamagedFileError,
    FileError,
    FileFormat,
    LockedFileError,
    OtherFormatError,
    file_errors,
    open_file,
    transaction,
)
from scrapy_rep.utils.text import without_credentials

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
FORMAT: Final = FileFormat(0x52455002, 3, _SCHEMA)
_ADVICE: Final = {
    LockedFileError: "Another crawl is using this JOBDIR",
    OtherFormatError: "Finish its crawl with that version, or set JOBDIR to a new directory",
    DamagedFileError: "Restore a copy of it, or set JOBDIR to a new directory",
    FileError: "Set JOBDIR to a new directory that can be written",
}
"""What to do if the file can't be used, by the class of the error."""
_AT_OPENING: Final = (
    "UPDATE requests SET unreadable = 0 WHERE unreadable",
    "CREATE TEMP TABLE popped (number INTEGER PRIMARY KEY)",
    """CREATE TEMP TABLE lanes
       (number INTEGER PRIMARY KEY, slot, origin, size INTEGER, priority INTEGER,
        start INTEGER, served INTEGER DEFAULT 0, until REAL, asked INTEGER)""",
    """INSERT INTO lanes (slot, origin, size, priority, start)
       SELECT slot, origin, count(*), min(priority), start FROM requests
       WHERE NOT unreadable GROUP BY slot, origin""",
    "CREATE INDEX temp.by_name ON lanes (origin, slot)",
    "CREATE INDEX temp.ready ON lanes (slot, priority, start, served) WHERE until IS NULL",
    "CREATE INDEX temp.waits ON lanes (until) WHERE until IS NOT NULL",
    "CREATE INDEX temp.unknown ON lanes (asked) WHERE asked IS NOT NULL",
)
"""Statements that count the requests of lanes. Rows of ``popped`` are left out of ``requests``; a
lane that is not ready waits ``until`` a time; one that is unknown was ``asked`` about."""
_INSERT: Final = "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, 0, ?)"
_ADD: Final = """UPDATE lanes SET size = size + 1, priority = min(priority, ?3),
    start = CASE WHEN ?3 < priority THEN ?4 WHEN ?3 = priority THEN min(start, ?4) ELSE start END
    WHERE slot = ?1 AND origin = ?2"""
_NEW: Final = """INSERT INTO lanes (slot, origin, size, priority, start, served)
    VALUES (?, ?, 1, ?, ?, ?)"""
_WHERE: Final = "NOT unreadable AND number NOT IN popped AND slot = ?1 AND origin = ?2"
_ORDER: Final = "ORDER BY priority, start, position LIMIT"
_NEXT: Final = f"SELECT number, request FROM requests WHERE {_WHERE} {_ORDER} 1"
_REMOVE: Final = f"""UPDATE lanes SET size = size - 1, served = ?4, (priority, start) =
    (SELECT priority, start FROM requests WHERE {_WHERE} {_ORDER} 1) WHERE number = ?3"""
_READY: Final = "FROM lanes WHERE until IS NULL AND slot"
_AFTER: Final = f"SELECT min(slot) {_READY} >"
_FIRST: Final = "ORDER BY priority, start, served LIMIT 1"
_IDLE: Final = f"""WITH RECURSIVE slots(name) AS  -- in their order, until one is not busy
        ({_AFTER} ? UNION ALL SELECT ({_AFTER} name) FROM slots WHERE name IS NOT NULL)
    SELECT number, slot, origin {_READY} = (SELECT name FROM slots
        WHERE name NOT IN (SELECT value FROM json_each(?)) LIMIT 1) {_FIRST}"""
_BUSY: Final = f"""SELECT number, slot, origin FROM json_each(?) CROSS JOIN lanes
    ON number = (SELECT number {_READY} = value {_FIRST}) LIMIT 1"""
_UNKNOWN: Final = """SELECT number, slot, origin FROM lanes WHERE asked IS NOT NULL
    ORDER BY asked LIMIT 1"""
_MAX_PRIORITY: Final = 2**63 - 1
_BEFORE_TEXT: Final = -math.inf
"""SQLite sorts all numbers before text."""


class RequestTable:
    """The requests in the file, with the methods of ``RequestHeaps`` that a priority queue calls.

    They raise sqlite3.Error or ValueError if the file can't be read. Other errors of writing than
    those of ``push`` are logged.
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
    def of(cls, crawler: Crawler, folder: str, state: Any) -> RequestTable:
        """Return the table that was opened early, or open it."""
        return take_part(crawler, cls) or cls(crawler, folder, state)

    def __init__(self, crawler: Crawler, folder: str, state: Any) -> None:
        """``state`` is what Scrapy's scheduler has read from ``folder``.

        Raises SettingsError if the file can't be used.
        """
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._path = Path(folder, _NAME)
        try:
            with file_errors():
                if state and not (self._path.exists() and self._path.stat().st_size):
                    raise DamagedFileError("empty, though JOBDIR has requests")
                self._connection = open_file(
                    self._path, FORMAT, exclusive=True, prepare=self._prepare
                )
                write_state(Path(folder))
        except FileError as error:
            raise SettingsError(
                f"{self._path} is {error}, and is not changed. {_ADVICE[type(error)]}"
            ) from None
        self._run = self._connection.execute
        self._served = 0
        self._in_progress: dict[int, Request] = {}
        """Popped requests that the engine has not finished, by row number."""
        self._ended: list[tuple[int]] = []
        """Row numbers of finished requests, to be deleted."""
        self._has_write_failed = False

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA temp_store = MEMORY")
        for statement in _AT_OPENING:
            connection.execute(statement)
        newest = connection.execute("SELECT max(number) FROM requests").fetchone()[0]
        self._number: int = newest or 0
        sizes = "SELECT ifnull(sum(size), 0), count(*) FROM lanes"
        self.size, self.lanes = connection.execute(sizes).fetchone()

    def close(self) -> list[str | int] | dict[str, list[int]]:
        with closing(self._connection), suppress(sqlite3.Error):
            self.delete_finished()
            (left,) = self._run("SELECT EXISTS (SELECT * FROM requests)").fetchone()
            return STATE if left else {}
        return STATE

    @contextmanager
    def _log_write_errors(self, consequence: str) -> Iterator[None]:
        """Suppress an error of SQLite in the ``with`` block; log only the first in a row."""
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

    # Requests.

    def push(self, slot: str, origin: Origin | None, rank: Rank, request: Request) -> None:
        priority, start, order = rank
        number, name = self._number + 1, _text_of(origin)
        try:
            # Scrapy's priorities are integers; SQLite stores those of 64 bits.
            priority = max(-_MAX_PRIORITY, min(index(priority), _MAX_PRIORITY))
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
            with self._log_write_errors("Requests are kept in memory until they can be written"):
                self._run(_INSERT, (number, slot, name, priority, start, number * order, data))
                self._number = number
        except Exception as error:
            raise ValueError(str(error)) from error
        if self._number != number:
            raise ValueError("the requests can't be written to JOBDIR")
        self.size += 1
        if not self._run(_ADD, (slot, name, priority, start)).rowcount:
            self.lanes += 1
            self._run(_NEW, (slot, name, priority, start, self._next_served()))

    def _next_served(self) -> int:
        self._served += 1
        return self._served

    def pop(self, lane: Lane) -> Request | None:
        number, request = self._read(lane)
        if request is not None:
            self._in_progress[number] = request
            self._leave_out(lane, number)
        return request

    def first(self, lane: Lane) -> Request | None:
        return self._read(lane)[1]

    def _read(self, lane: Lane) -> tuple[int, Request | None]:
        """Return the number and the request of the next row of ``lane`` that can be read.

        The rows before it are marked.
        """
        name = lane.slot, _text_of(lane.origin)
        while (row := self._run(_NEXT, name).fetchone()) is not None:
            number, data = row
            what = "its data is damaged"
            try:
                values = pickle.loads(data)  # noqa: S301 - as Scrapy's queues do
                what = f"<{values['method']} {without_credentials(values['url'])}>"
                return number, request_from_dict(values, spider=self._crawler.spider)
            except Exception as error:  # noqa: BLE001 - logged
                why = str(error)  # without a traceback, as there may be many of them
            self._logger.error("Unable to read request: %s - reason: %s", what, why)
            stats.count(self._crawler, stats.QUEUE_UNREADABLE)
            stats.count(self._crawler, stats.QUEUE_ERRORS)
            with self._log_write_errors("What can't be read isn't marked"):
                self._run("UPDATE requests SET unreadable = 1 WHERE number = ?", (number,))
            self._leave_out(lane, number)
        if self.size_of(lane):
            raise sqlite3.DatabaseError(f"requests of {lane.slot} are missing")
        return 0, None

    def _leave_out(self, lane: Lane, number: int) -> None:
        self._run("INSERT INTO popped VALUES (?)", (number,))
        name = lane.slot, _text_of(lane.origin)
        self._run(_REMOVE, (*name, lane.number, self._next_served()))
        self.size -= 1
        empty = "DELETE FROM lanes WHERE number = ? AND size = 0"
        self.lanes -= self._run(empty, (lane.number,)).rowcount

    def delete_finished(self) -> None:
        there = requests_in_progress(self._crawler)
        for number, request in [*self._in_progress.items()]:
            if request not in there:
                del self._in_progress[number]
                self._ended.append((number,))
        if not self._ended:
            return
        with self._log_write_errors("A request that was downloaded may come again"):
            with transaction(self._connection):
                self._connection.executemany("DELETE FROM requests WHERE number = ?", self._ended)
                self._connection.executemany("DELETE FROM popped WHERE number = ?", self._ended)
            self._ended.clear()

    # Lanes.

    def idle_lane(self, last: str, busy: Collection[str]) -> Lane | None:
        names = json.dumps([*busy])
        return self._lane(_IDLE, last, names) or self._lane(_IDLE, _BEFORE_TEXT, names)

    def busy_lane(self, slots: Sequence[str]) -> Lane | None:
        return self._lane(_BUSY, json.dumps([*slots])) if slots else None

    def _lane(self, query: str, *values: object) -> Lane | None:
        row = self._run(query, values).fetchone()
        return None if row is None else _as_lane(row)

    def lanes_of(self, origin: Origin) -> Sequence[Lane]:
        query = "SELECT number, slot, origin FROM lanes WHERE origin = ?"
        return [_as_lane(row) for row in self._run(query, (str(origin),))]

    def size_of(self, lane: Lane) -> int:
        row = self._run("SELECT size FROM lanes WHERE number = ?", (lane.number,)).fetchone()
        return 0 if row is None else row[0]

    def set_waiting(self, lane: Lane, until: float) -> None:
        self._run("UPDATE lanes SET until = ? WHERE number = ?", (until, lane.number))

    def set_unknown(self, lane: Lane) -> None:
        query = "UPDATE lanes SET until = ?, asked = ? WHERE number = ?"
        self._run(query, (math.inf, self._next_served(), lane.number))

    def next_unknown(self) -> Lane | None:
        lane = self._lane(_UNKNOWN)
        if lane is not None:
            self._run("UPDATE lanes SET asked = NULL WHERE number = ?", (lane.number,))
        return lane

    def wake(self, origin: Origin) -> bool:
        query = """UPDATE lanes SET until = NULL, asked = NULL
            WHERE origin = ? AND until IS NOT NULL"""
        return self._run(query, (str(origin),)).rowcount > 0

    def wake_due(self, now: float) -> float:
        self._run("UPDATE lanes SET until = NULL WHERE until <= ?", (now,))
        row = self._run("SELECT min(until) FROM lanes WHERE until IS NOT NULL").fetchone()
        return math.inf if row[0] is None else row[0]

    def waiting(self) -> Iterator[tuple[Lane, int]]:
        query = "SELECT number, slot, origin, size FROM lanes WHERE until IS NOT NULL"
        for row in self._run(query).fetchall():
            yield _as_lane(row[:3]), row[3]


def _text_of(origin: Origin | None) -> str:
    return "" if origin is None else str(origin)


def _as_lane(row: tuple[int, Any, Any]) -> Lane:
    number, slot, name = row
    return Lane(str(slot), origin_of(str(name)) if name else None, number)
