"""The requests of a crawl with a JOBDIR.

Popping a request doesn't delete its row in the file: the row stays until the engine has finished
the request and its callback. If the crawl is killed, the next one repeats the requests that were in
progress, so none is lost. The numbers of popped and finished rows are kept in memory, and these
rows are left out. Rows that can't be read are marked as unreadable, and tried again by the next
crawl.
"""

from __future__ import annotations

import marshal
import math
import pickle
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.lanes import Lane
from scrapy_rep.scheduler.request_file import BEFORE_ALL, LEAST, Key, LaneName, RequestFile
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.scrapy_internals import requests_in_progress
from scrapy_rep.utils.text import printable_request, without_credentials

logger: Final = LimitedLogger(__name__)

_RETRY_DELAY: Final = 1.0
"""Seconds after a first failure to delete rows until the next try; doubled after each failure."""
_RETRY_DELAY_MAX: Final = 64.0
_PICKLE: Final = b"\x80"
"""First byte of a pickle; a dict written by marshal never begins with it."""


class UnreadableError(Exception):
    """A request can't be read, for instance because the spider lacks its callback.

    The message names the request.
    """


class RequestsOnDisk:
    """The requests of all lanes, on disk.

    If ``marshals`` is true, they are written with marshal, else with pickle. Raises SettingsError
    as ``RequestFile`` does. Methods that read raise sqlite3.Error if the file can't be read.
    """

    def __init__(self, crawler: Crawler, folder: str, state: Any, *, marshals: bool) -> None:
        spider = crawler.spider
        name = "" if spider is None else spider.name
        self._file = RequestFile(folder, state, name)
        if self._file.spider != name:
            logger.warning(
                "JOBDIR has the requests of the spider %a, and this is %a: those whose callbacks "
                "it lacks can't be read. Use a JOBDIR for each spider",
                self._file.spider,
                name,
                extra={"spider": spider},
            )
        self._extra = {"spider": crawler.spider}
        self._crawler = crawler
        self._dumps = marshal.dumps if marshals else partial(pickle.dumps, protocol=4)
        self._in_progress: dict[int, Request] = {}
        """Popped requests that the engine has not finished, by row number."""
        self._ended: set[int] = set()
        """Row numbers of finished requests, to be deleted."""
        self._popped: dict[int, LaneName] = {}
        """The lanes of all popped rows, by number: of those above, and of unreadable requests that
        could not be marked as unreadable."""
        self._delete_at = -math.inf
        self._retry_delay = _RETRY_DELAY
        self._has_write_failed = False
        self._has_logged_removal = False
        self._is_closed = False
        self._has_logged_late = False
        self.number_of_requests = self._file.number_of_requests

    # As in ``RequestFile``, but without popped requests: the number may be 0.

    def lane_sizes(self, after: str | None, lanes: int) -> list[tuple[str, str, int]]:
        return self._without_popped(self._file.lane_sizes(after, lanes))

    def lane_sizes_of(self, slot: str) -> list[tuple[str, str, int]]:
        return self._without_popped(self._file.lane_sizes_of(slot))

    def _without_popped(self, rows: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        popped = Counter(self._popped.values())
        return [(slot, origin, max(0, size - popped[slot, origin])) for slot, origin, size in rows]

    def set_next_key(self, lane: Lane, after: Key = BEFORE_ALL) -> None:
        """Set ``lane.heap`` to the sort key of the first request after the key ``after``.

        The heap is empty if there is none.
        """
        lane.heap = self._file.keys(_name_of(lane), after, 1, self._popped)

    # Requests are added.

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
                extra=self._extra,
            )
        raise ValueError("the scheduler is closed")

    def add(self, lane: Lane, priority: int, start: bool, order: int, request: Request) -> None:
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
    ) -> Key:
        """Write ``request``; return its sort key.

        :raises ValueError: if it can't be written; Scrapy's scheduler then keeps it in memory.
        """
        # SQLite stores integers of 64 bits only, and Scrapy's Request accepts only an integer.
        if not (isinstance(priority, int) and LEAST < priority < -LEAST):
            raise ValueError(f"its priority is {-priority}, and no integer of 64 bits")
        try:
            data = self._dumps(request.to_dict(spider=self._crawler.spider))
        except Exception as error:
            raise ValueError(str(error)) from error
        key = priority, start, (self._file.number + 1) * order
        with self._log_write_errors("Requests are kept in memory until they can be written"):
            self._file.insert((slot, _text_of(origin)), key, data)
            return key
        raise ValueError("the requests can't be written to JOBDIR")

    # Requests are read, and leave.

    def read(self, lane: Lane) -> Request:
        """Return the next request without removing it. Raises UnreadableError."""
        return self._decode(self._data(lane.heap[0]))

    def read_first(self, lane: Lane, limit: int) -> list[Request]:
        """Return the next requests that can be read, at most ``limit``, without removing them."""
        requests = []
        for key in self._file.keys(_name_of(lane), BEFORE_ALL, limit, self._popped):
            with suppress(UnreadableError):
                requests.append(self._decode(self._data(key)))
        return requests

    def pop(self, lane: Lane) -> Request:
        """Return the next request of ``lane``; its row stays until the engine has finished it.

        Raises UnreadableError if the request can't be read. It is popped all the same; the next
        crawl tries to read it again.
        """
        key = lane.heap[0]
        data = self._data(key)
        self.set_next_key(lane, key)
        number = abs(key[2])
        self._popped[number] = _name_of(lane)
        try:
            request = self._decode(data)
        except UnreadableError:
            with self._log_write_errors("What can't be read isn't marked"):
                self._file.mark_unreadable(number)
                del self._popped[number]
            raise
        self._in_progress[number] = request
        return request

    def _data(self, key: Key) -> bytes:
        return self._file.data(abs(key[2]))

    def _decode(self, data: bytes) -> Request:
        what = "its data is damaged"
        try:
            values = (pickle.loads if data.startswith(_PICKLE) else marshal.loads)(data)
            what = f"<{values['method']} {without_credentials(values['url'])}>"
            return request_from_dict(values, spider=self._crawler.spider)
        except Exception as error:
            raise UnreadableError(what) from error

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
        self._delete_at = now + self._retry_delay
        self._retry_delay = min(_RETRY_DELAY_MAX, 2 * self._retry_delay)
        with self._log_write_errors("A request that was downloaded may come again"):
            self._file.delete(self._ended)
            for number in self._ended:
                del self._popped[number]
            self._ended.clear()
            self._delete_at, self._retry_delay = -math.inf, _RETRY_DELAY

    # The file.

    def log_if_removed(self) -> None:
        """Log, only once, if the file was removed or replaced.

        The crawl goes on with the open file, but the next crawl will not find its requests.
        """
        if not self._has_logged_removal and self._file.was_removed():
            self._has_logged_removal = True
            logger.error(
                "%s was removed or replaced: the requests that are left when the crawl ends are "
                "lost",
                self._file.path,
                extra=self._extra,
            )

    def close(self) -> bool:
        """Delete finished rows and close the file; return whether any rows are left."""
        self._is_closed = True
        with closing(self._file):
            with suppress(sqlite3.Error):
                self.delete_finished()
                if self._file.was_removed() and (left := self._file.count_all()):
                    logger.error(
                        "Requests lost, because %s was removed or replaced: %d",
                        self._file.path,
                        left,
                        extra=self._extra,
                    )
                return not self._file.is_empty()
            return True

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
                    extra=self._extra,
                )
        else:
            self._has_write_failed = False


def _name_of(lane: Lane) -> LaneName:
    return lane.slot.name, _text_of(lane.origin)


def _text_of(origin: Origin | None) -> str:
    return "" if origin is None else str(origin)
