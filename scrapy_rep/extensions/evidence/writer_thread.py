"""The thread that writes lines of evidence.

The crawl never waits for the thread. If the disk is too slow, lines are lost, and counted.
"""

import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from time import time
from typing import Final

from scrapy_rep.extensions.cited_file import iso_time
from scrapy_rep.extensions.evidence.parts import Line, Parts
from scrapy_rep.utils.concurrency import in_thread
from scrapy_rep.utils.log import LimitedLogger

_MAX_LINES: Final = 10_000
"""Maximum number of lines that wait to be written; further lines are lost."""
_MAX_BYTES: Final = 64 * 1024**2
"""Maximum total size in bytes of the robots.txt texts of the lines that wait to be written."""
_BATCH: Final = 1_000


class WriterThread:
    """A queue of lines, and the thread that writes them until ``stop``.

    Of errors only the first is logged, and each part that is removed.
    """

    def __init__(self, parts: Parts, path: Path) -> None:
        self._parts = parts
        self._logger = LimitedLogger(__name__)
        self._path = path
        self._queue: SimpleQueue[Line | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._bytes_put = 0
        self._bytes_done = 0
        self._crowded_out = 0
        self._failed = 0
        self._lost_recorded = 0
        self._has_logged = False
        self.written: int = 0

    @property
    def lost(self) -> int:
        """Number of lines that could not be queued or written."""
        return self._crowded_out + self._failed

    def put(self, line: Line) -> None:
        """Add a line to the queue, without waiting. If the queue is full, the line is lost."""
        nbytes = line.nbytes
        waiting = self._bytes_put - self._bytes_done
        if self._queue.qsize() >= _MAX_LINES or (waiting and waiting + nbytes > _MAX_BYTES):
            self._crowded_out += 1
            _drop_text(line)
            self._log_first_failure(OSError("the disk is slower than the crawl"))
            return
        self._bytes_put += nbytes
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="Evidence", daemon=True)
            self._thread.start()
        self._queue.put(line)

    async def stop(self) -> None:
        """Wait until all queued lines are written, the file is closed, and the thread has ended."""
        if self._thread is not None:
            self._queue.put(None)
            await in_thread(self._thread.join)

    def _work(self) -> None:
        """Write batches of lines until ``stop``, then close the parts. Runs in the thread."""
        is_last = False
        while not is_last:
            batch = [self._queue.get()]
            with suppress(Empty):
                while batch[-1] is not None and len(batch) < _BATCH:
                    batch.append(self._queue.get_nowait())
            is_last = batch[-1] is None
            if lines := [line for line in batch if line is not None]:
                self._write(lines)
        self._count_removed()
        self._parts.close()

    def _count_removed(self) -> None:
        """Count the lines of the open part as lost if it was removed or replaced, and log that."""
        if lines := self._parts.close_if_removed():
            self._failed += lines
            self.written -= lines
            self._logger.error(
                "Evidence lost, because %s was removed or replaced: %d lines",
                self._parts.part,
                lines,
            )

    def _write(self, lines: list[Line]) -> None:
        """Write ``lines``, first how many were lost since the last call. No error is raised."""
        self._count_removed()
        nbytes = sum(line.nbytes for line in lines)
        lost = self.lost - self._lost_recorded
        values = {"kind": "lost", "time": iso_time(time()), "lines": lost}
        to_write = [Line(values), *lines] if lost else lines
        try:
            self._parts.write(to_write)
        except Exception as error:  # noqa: BLE001 - logged and counted
            self._failed += len(lines)
            self._log_first_failure(error)
        else:
            self.written += len(to_write)
            self._lost_recorded += lost
        for line in lines:
            _drop_text(line)
        self._bytes_done += nbytes

    def _log_first_failure(self, error: Exception) -> None:
        if not self._has_logged:
            self._has_logged = True
            self._logger.error(
                "Evidence can't be written, the crawl continues: %s: %s",
                self._path,
                getattr(error, "strerror", None) or error,
                exc_info=None if isinstance(error, OSError) else error,
            )


def _drop_text(line: Line) -> None:
    """Remove the text of a line from memory. The values of its file, with the hash, are kept."""
    if line.new_file is not None and line.new_file.as_json:
        line.new_file.body = None
