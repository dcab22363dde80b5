"""What Scrapy's own priority queue left in a JOBDIR, moved to ours."""

from __future__ import annotations

import logging
import shutil
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep import stats
from scrapy_rep.scheduler.trouble import tell
from scrapy_rep.utils.scrapy_internals import nudge

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.scheduler.disk import Disk
    from scrapy_rep.utils.clock import Clock, Timer

logger = logging.getLogger(__name__)

_SECONDS: Final = 0.02
"""For how long requests are moved before the event loop has its turn."""
_COPY: Final = "being-moved"


class Mover:
    """Moves the requests slot by slot, through Scrapy's own classes, while the crawl goes on.

    They are read from a copy of the slot's files, as reading changes these, and a crawl may be
    killed: what has been moved is written down with the requests, and the files of a slot are
    removed when all of it is there.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - all that it depends on
        self,
        crawler: Crawler,
        disk: Disk,
        push: Callable[[Request], None],
        folder: str,
        state: dict[str, Iterable[int]],
        classes: tuple[type[Any], type[Any] | None],
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._disk = disk
        self._push = push
        self._folder = folder
        self._copy = Path(folder, _COPY)
        self._state = dict(state)
        self._classes = classes
        self._moved = 0
        self._steps = self._move_all()
        self._timer: Timer | None = None
        self._clock = clock

    @property
    def left(self) -> int:
        """How many requests there are at least that have not been moved."""
        return len(self._state) if self._timer is not None else 0

    def move(self) -> None:
        """Move a part of them now, and all others when the event loop comes to it."""
        self._timer = None
        until = self._clock.monotonic() + _SECONDS
        for _ in self._steps:
            if self._clock.monotonic() >= until:
                self._timer = self._clock.call_later(0, self._go_on)
                return
        logger.info(
            "%d requests were moved that Scrapy's priority queue left in JOBDIR",
            self._moved,
            extra={"spider": self._crawler.spider},
        )

    def stop(self) -> dict[str, list[int]]:
        """Move no more; return what is still where it was, as Scrapy's queue has it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._steps.close()
        return {slot: list(prios) for slot, prios in self._state.items()}

    def _go_on(self) -> None:
        self.move()
        nudge(self._crawler)

    def _move_all(self) -> Generator[None]:
        for slot, prios in list(self._state.items()):
            try:
                yield from self._move(slot, prios)
            except Exception as error:  # noqa: BLE001, PERF203 - told
                tell(
                    self._crawler,
                    error,
                    "The requests of %s can't be moved; they stay where they are",
                    slot,
                )
            else:
                del self._state[slot]
        shutil.rmtree(self._copy, ignore_errors=True)

    def _move(self, slot: str, prios: Iterable[int]) -> Iterator[None]:
        original = Path(self._queue_in(self._folder, {}).pqfactory(slot).key)
        copy = Path(self._queue_in(str(self._copy), {}).pqfactory(slot).key)
        shutil.rmtree(self._copy, ignore_errors=True)
        if original.exists():
            shutil.copytree(original, copy)
            left = self._queue_in(str(self._copy), {slot: prios})
            try:
                yield from self._move_from(left, slot)
            finally:
                left.close()
            shutil.rmtree(original)
        self._disk.has_moved(slot, 0)

    def _move_from(self, left: DownloaderAwarePriorityQueue, slot: str) -> Iterator[None]:
        before = self._disk.moved(slot)
        for number in count(1):
            size = len(left)
            if not size:
                return
            request = None
            try:
                request = left.pop()
            except Exception as error:
                if len(left) == size:
                    raise  # not of one request
                if number > before:
                    stats.count(self._crawler, stats.QUEUE_UNREADABLE)
                    tell(self._crawler, error, "A request of %s can't be read", slot)
            if number > before:
                if request is not None:
                    self._push(request)
                    self._moved += 1
                self._disk.has_moved(slot, number)
            yield

    def _queue_in(
        self, folder: str, state: dict[str, Iterable[int]]
    ) -> DownloaderAwarePriorityQueue:
        cls, start_cls = self._classes
        return DownloaderAwarePriorityQueue(
            self._crawler, cls, folder, state, start_queue_cls=start_cls
        )
