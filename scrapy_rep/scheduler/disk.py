"""The requests of a crawl with a JOBDIR, in one SQLite file.

Each row is a request. Popping a request doesn't delete its row: the row stays until the engine has
finished the request and its callback. If the crawl is killed, the next one repeats the requests
that were in progress, so none is lost. The numbers of popped and finished rows are kept in memory,
and queries leave these rows out. Rows that can't be read are marked as unreadable, and tried again
by the next crawl.
"""

from __future__ import annotations

import json
import logging
import marshal
import math
import pickle
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
from scrapy.utils.request import request_from_dict

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.origin_queues import Lane
from scrapy_rep.utils.scrapy_internals import requests_in_progress
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
from scrapy_rep.utils.text import printable_request, without_credentials

logger: Final = logging.getLogger(__name__)

FILE: Final = "requests.sqlite"
STATE: Final[list[str | int]] = ["scrapy_rep.RobotsAwarePriorityQueue", 0]
"""What Scrapy's scheduler stores as the state of the queue, in JOBDIR. Scrapy's queues reject it.

DownloaderAwarePriorityQueue accepts no list, and ScrapyPriorityQueue only a list of numbers.
"""
_STATE_FILE: Final = "active.json"
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
_INSERT: Final = "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, 0, ?)"
_NEXT: Final = """SELECT priority, start, position FROM requests
    WHERE NOT unreadable AND slot = ? AND origin = ? AND (priority, start, position) > (?, ?, ?)
    ORDER BY priority, start, position"""
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
_SIZES: Final = "SELECT * FROM lanes WHERE slot {} ? ORDER BY slot, origin LIMIT ?"
_BEFORE_TEXT: Final = 0
"""A number, which SQLite sorts before all text, also before the empty one."""
_LEAST: Final = -(1 << 63)
"""The least integer of SQLite."""
_BEFORE_ALL: Final = (_LEAST, 0, _LEAST)
"""A sort key that comes before the keys of all requests."""
_RETRY_DELAY: Final = 1.0
"""Seconds after a first failure to delete rows until the next try; doubled after each failure."""
_RETRY_DELAY_MAX: Final = 64.0
_PICKLE: Final = b"\x80"
"""First byte of a pickle; a dict written by marshal never begins with it."""


class UnreadableError(Exception):
    """A request can't be read, for instance because the spider lacks its callback.

    The message names the request.
    """


class Disk:
    """The requests of all lanes, on disk.

    If ``marshals`` is true, they are written with marshal, else with pickle, as the class in
    SCHEDULER_DISK_QUEUE does. ``state`` is what the scheduler has read from JOBDIR. Raises
    SettingsError if JOBDIR can't be used.
    """

    def __init__(self, crawler: Crawler, folder: str, state: Any, *, marshals: bool) -> None:
        _reject_state_of_another_queue(folder, state)
        self._crawler = crawler
        self._dumps = marshal.dumps if marshals else partial(pickle.dumps, protocol=4)
        self._in_progress: dict[int, Request] = {}
        """Popped requests that the engine has not finished, by row number."""
        self._ended: set[int] = set()
        """Row numbers of finished requests, to be deleted."""
        self._popped: dict[int, tuple[str, str]] = {}
        """Slot and origin of all popped rows, by number: of those above, and of unreadable requests
        that could not be marked as unreadable."""
        self._delete_at = -math.inf
        self._retry_delay = _RETRY_DELAY
        self._has_write_failed = False
        self._folder = Path(folder)
        path = self._folder / FILE
        try:
            self._connection = open_file(path, FORMAT, exclusive=True, prepare=self._prepare)
        except FileError as error:
            raise SettingsError(
                f"{path} is {error}, and is not changed. {_ADVICE[type(error)]}"
            ) from error
        # Damaged text must not raise an error. It is read as other text, which names no lane.
        self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        self._run = self._connection.execute
        self._path, self._identity = path, identity_of(path)
        self._has_logged_loss = False
        self._is_closed = False
        self._has_logged_late = False

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for statement in _AT_OPENING:
            connection.execute(statement)
        newest = connection.execute("SELECT max(number) FROM requests").fetchone()[0]
        self._number: int = newest or 0
        _write_state(self._folder)

    def reject_if_closed(self, request: Request) -> None:
        """Raise ValueError if the file is closed, and log ``request`` if it is the first."""
        if not self._is_closed:
            return
        if not self._has_logged_late:
            self._has_logged_late = True
            logger.warning(
                "%s came after the scheduler was closed, and is not stored in JOBDIR. Further such "
                "requests are not logged",
                printable_request(request),
                extra={"spider": self._crawler.spider},
            )
        raise ValueError("the scheduler is closed")

    def number_of_requests(self) -> int:
        """Return the number of requests not marked as unreadable."""
        return int(self._run("SELECT total(size) FROM lanes").fetchone()[0])

    def lane_sizes(self, after: str | None, lanes: int) -> list[tuple[str, str, int]]:
        """Return slot, origin and number of requests of each lane in the next slots, sorted.

        Popped requests are not counted; the number may be 0. The slots are those after the slot
        ``after``, or the first if it is None. Fewer lanes than ``lanes`` are returned only if no
        more are left; more are returned if the last slot has more, as slots are never split. Raises
        sqlite3.Error if the file can't be read.
        """
        rows = self._lane_sizes(">", _BEFORE_TEXT if after is None else after, lanes)
        if len(rows) == lanes:
            last = rows[-1][0]
            while rows and rows[-1][0] == last:
                rows.pop()
            rows += self.lane_sizes_of(last)
        return rows

    def lane_sizes_of(self, slot: str) -> list[tuple[str, str, int]]:
        """Return slot, origin and number of requests of each lane of ``slot``.

        As in ``lane_sizes``, the number may be 0. Raises sqlite3.Error if the file can't be read.
        """
        return self._lane_sizes("=", slot, -1)

    def _lane_sizes(self, operator: str, slot: str | int, lanes: int) -> list[tuple[str, str, int]]:
        popped = Counter(self._popped.values())
        return [
            (name, origin, max(0, size - popped[name, origin]))
            for name, origin, size in self._run(_SIZES.format(operator), (slot, lanes))
        ]

    def set_next_key(self, lane: Lane, after: tuple[Any, ...] = _BEFORE_ALL) -> None:
        """Set ``lane.heap`` to the sort key of the first request after the key ``after``.

        The heap is empty if there is none. Raises sqlite3.Error if the file can't be read.
        """
        lane.heap = self._keys(lane, after, 1)

    def _keys(self, lane: Lane, after: tuple[Any, ...], limit: int) -> list[tuple[Any, ...]]:
        """Return the sort keys of the next requests after the key ``after``, at most ``limit``.

        Damaged keys are left out.
        """
        # Python 3.10 doesn't close the file while a cursor is open.
        with closing(self._run(_NEXT, (*_key_of(lane), *after))) as rows:
            return [*islice(filter(self._is_next, rows), limit)]

    def _is_next(self, key: tuple[Any, ...]) -> bool:
        """Return whether the request with this sort key may be popped."""
        return {*map(type, key)} == {int} and abs(key[2]) not in self._popped

    def add(self, lane: Lane, priority: int, start: bool, order: int, request: Request) -> None:
        """Write ``request`` to ``lane``. Raises ValueError as ``write`` does."""
        key = self.write(lane.slot.name, lane.origin, priority, start, order, request)
        # A lane with requests but no key could not be read yet; set_next_key() sets its key later.
        if key < lane.heap[0] if lane.heap else not lane.size:
            lane.heap = [key]

    def write(
        self,
        slot: str,
        origin: Origin | None,
        priority: int,
        start: bool,
        order: int,
        request: Request,
    ) -> tuple[int, bool, int]:
        """Write ``request``; return its sort key: priority, start request, position.

        :raises ValueError: if it can't be written; Scrapy's scheduler then keeps it in memory.
        """
        # SQLite stores integers of 64 bits only, and Scrapy's Request accepts only an integer.
        if not (isinstance(priority, int) and _LEAST < priority < -_LEAST):
            raise ValueError(f"its priority is {-priority}, and no integer of 64 bits")
        try:
            data = self._dumps(request.to_dict(spider=self._crawler.spider))
        except Exception as error:
            raise ValueError(str(error)) from error
        number = self._number + 1
        key = priority, start, number * order
        with self._log_write_errors("Requests are kept in memory until they can be written"):
            self._run(_INSERT, (number, slot, "" if origin is None else str(origin), *key, data))
            self._number = number
            return key
        raise ValueError("the requests can't be written to JOBDIR")

    def read(self, lane: Lane) -> Request:
        """Return the next request of ``lane`` without removing it.

        Raises UnreadableError if the request can't be read, and sqlite3.Error if the file can't.
        """
        return self._decode(self._read_row(lane.heap[0]))

    def read_first(self, lane: Lane, limit: int) -> list[Request]:
        """Return the next requests of ``lane``, at most ``limit``, without unreadable ones.

        The requests are not removed. Raises sqlite3.Error if the file can't be read.
        """
        requests = []
        for key in self._keys(lane, _BEFORE_ALL, limit):
            with suppress(UnreadableError):
                requests.append(self._decode(self._read_row(key)))
        return requests

    def pop(self, lane: Lane) -> Request:
        """Return the next request of ``lane``; its row stays until the engine has finished it.

        Raises UnreadableError if the request can't be read, and sqlite3.Error if the file can't.
        An unreadable request is popped, too; the next crawl tries to read it again.
        """
        key = lane.heap[0]
        data = self._read_row(key)
        self.set_next_key(lane, key)
        number = abs(key[2])
        self._popped[number] = _key_of(lane)
        try:
            request = self._decode(data)
        except UnreadableError:
            with self._log_write_errors("What can't be read isn't marked"):
                self._run("UPDATE requests SET unreadable = 1 WHERE number = ?", (number,))
                del self._popped[number]
            raise
        self._in_progress[number] = request
        return request

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
        self._delete_at, self._retry_delay = (
            now + self._retry_delay,
            min(_RETRY_DELAY_MAX, 2 * self._retry_delay),
        )
        with self._log_write_errors("A request that was downloaded may come again"):
            with transaction(self._connection):
                self._connection.executemany(
                    "DELETE FROM requests WHERE number = ?", ((number,) for number in self._ended)
                )
            for number in self._ended:
                del self._popped[number]
            self._ended.clear()
            self._delete_at, self._retry_delay = -math.inf, _RETRY_DELAY

    def log_if_removed(self) -> None:
        """Log, only once, if the file was removed or replaced.

        The crawl goes on with the open file, but the next crawl will not find its requests.
        """
        if not self._has_logged_loss and self._was_removed():
            self._has_logged_loss = True
            logger.error(
                "%s was removed or replaced: the requests that are left when the crawl ends are "
                "lost",
                self._path,
                extra={"spider": self._crawler.spider},
            )

    def _was_removed(self) -> bool:
        try:
            return identity_of(self._path) != self._identity
        except OSError:  # the file system fails, so the file may still be there
            return False

    def _log_lost_requests(self) -> None:
        # The file is checked first, as counting reads all rows.
        if self._was_removed() and (
            left := self._run("SELECT count(*) FROM requests").fetchone()[0]
        ):
            logger.error(
                "Requests lost, because %s was removed or replaced: %d",
                self._path,
                left,
                extra={"spider": self._crawler.spider},
            )

    def close(self) -> bool:
        """Delete finished rows and close the file; return whether requests are left on disk."""
        self._is_closed = True
        is_left = True  # if the file can't be read
        with closing(self._connection), suppress(sqlite3.Error):
            self.delete_finished()
            self._log_lost_requests()
            (is_left,) = self._run("SELECT EXISTS (SELECT 1 FROM requests)").fetchone()
        return bool(is_left)

    # Rows.

    def _read_row(self, key: tuple[Any, ...]) -> bytes:
        number = abs(key[2])
        row = self._run("SELECT request FROM requests WHERE number = ?", (number,)).fetchone()
        return b"" if row is None else row[0]

    def _decode(self, data: bytes) -> Request:
        what = "its data is damaged"
        try:
            values = (pickle.loads if data.startswith(_PICKLE) else marshal.loads)(data)
            what = f"<{values['method']} {without_credentials(values['url'])}>"
            return request_from_dict(values, spider=self._crawler.spider)
        except Exception as error:
            raise UnreadableError(what) from error

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
                logger.error(  # noqa: TRY400 - it is told what to do about it
                    "The requests can't be written to JOBDIR: %s. %s",
                    str(error).rstrip("."),
                    consequence,
                    extra={"spider": self._crawler.spider},
                )
        else:
            self._has_write_failed = False


def _key_of(lane: Lane) -> tuple[str, str]:
    return lane.slot.name, "" if lane.origin is None else str(lane.origin)


def _reject_state_of_another_queue(folder: str, state: Any) -> None:
    if not state or state == STATE:
        return
    theirs = "DownloaderAwarePriorityQueue" if isinstance(state, dict) else "ScrapyPriorityQueue"
    raise SettingsError(
        f"{folder} has the requests of another priority queue, and is not changed. Finish that "
        f"crawl with SCHEDULER_PRIORITY_QUEUE = 'scrapy.pqueues.{theirs}', or set JOBDIR to a new "
        "directory"
    )


def _write_state(folder: Path) -> None:
    """Let Scrapy's queues reject ``folder`` from now on, even if the crawl is killed."""
    new = folder / f"{_STATE_FILE}.new"
    new.write_text(json.dumps(STATE), encoding="utf-8")
    new.replace(folder / _STATE_FILE)
