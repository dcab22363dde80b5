"""Moves the requests that Scrapy's priority queue has left in a JOBDIR to ``Disk``."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.scheduler.disk import Disk
from scrapy_rep.scheduler.errors import log_error, log_unreadable
from scrapy_rep.utils.clock import Clock, Timer
from scrapy_rep.utils.scrapy_internals import wake_engine
from scrapy_rep.utils.text import counted

logger: Final = logging.getLogger(__name__)

OURS: Final[list[str | int]] = ["scrapy_rep.RobotsAwarePriorityQueue", 0]
"""The state that RobotsAwarePriorityQueue leaves in JOBDIR. Scrapy's queues reject it.

DownloaderAwarePriorityQueue accepts no list, and ScrapyPriorityQueue only a list of numbers.
"""
_STATE: Final = "active.json"
"""The file from which Scrapy's scheduler reads the state of its queue."""
_SECONDS: Final = 0.02
"""Seconds for which requests are moved before the event loop runs again."""
_COPY: Final = "being-moved"
"""The folder with a copy of the files of the slot that is being moved."""


def scrapys_state(state: Any) -> dict[str, Iterable[int]]:
    """Return the state that DownloaderAwarePriorityQueue has left; empty if there is none.

    ``state`` is what the scheduler has read. Raises SettingsError if another queue has written it.
    """
    if not state or state == OURS:
        return {}
    if not isinstance(state, dict):
        raise SettingsError(
            f"JOBDIR has the requests of another, incompatible priority queue: {state!a:.100}. "
            "Set SCHEDULER_PRIORITY_QUEUE to the class that has written them, or JOBDIR to a new "
            "directory"
        )
    return state


def reject_scrapys_queue(folder: str) -> None:
    """Make Scrapy's queue reject ``folder`` from now on, even if the crawl is killed.

    Raises SettingsError if the folder can't be written.
    """
    new = Path(folder, f"{_STATE}.new")
    try:
        new.write_text(json.dumps(OURS), encoding="utf-8")
        new.replace(Path(folder, _STATE))
    except OSError as error:
        raise SettingsError(f"JOBDIR can't be written: {error}") from error


class Mover:
    """Moves the requests of Scrapy's queue, one download slot after the other, during the crawl.

    The requests are read with Scrapy's classes, which delete requests when they read them. So that
    none is lost if the crawl is killed, they read a copy of the files of a slot. The number of
    moved requests is stored in the file of ``Disk``, and the files of a slot are removed when all
    its requests are moved.
    """

    def __init__(
        self,
        crawler: Crawler,
        disk: Disk,
        push: Callable[..., None],
        folder: str,
        classes: tuple[type[Any], type[Any] | None],
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._disk = disk
        self._push = push
        self._folder = folder
        self._copy = str(Path(folder, _COPY))
        cls, start_cls = classes
        self._queue_in = partial(
            DownloaderAwarePriorityQueue, crawler, cls, start_queue_cls=start_cls
        )
        self._clock = clock
        self._moved = 0
        self._steps = self._move_all()
        self._timer: Timer | None = None

    @property
    def is_moving(self) -> bool:
        """Whether there may be requests left to move."""
        return self._timer is not None

    def move(self) -> None:
        """Move some requests now, and the remaining ones in later steps of the event loop."""
        self._timer = None
        until = self._clock.monotonic() + _SECONDS
        for _ in self._steps:
            if self._clock.monotonic() >= until:
                self._timer = self._clock.call_later(0, self._move_some_and_wake)
                return

    def stop(self) -> None:
        """Stop; the next crawl moves the remaining requests."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._steps.close()

    def _move_some_and_wake(self) -> None:
        self.move()
        wake_engine(self._crawler)

    def _move_all(self) -> Generator[None]:
        for slot, priorities, moved in self._disk.slots_to_move:
            try:
                yield from self._move_slot(slot, json.loads(priorities), moved)
            except Exception as error:  # noqa: BLE001, PERF203 - logged
                log_error(
                    self._crawler,
                    error,
                    "The requests of %s can't be moved; they stay where they are",
                    slot,
                )
        shutil.rmtree(self._copy, ignore_errors=True)
        if self._moved:
            logger.info(
                "Moved %s that Scrapy's priority queue had left in JOBDIR",
                counted(self._moved, "request"),
                extra={"spider": self._crawler.spider},
            )

    def _move_slot(self, slot: str, priorities: list[int], moved: int) -> Iterator[None]:
        original = Path(self._queue_in(self._folder, {}).pqfactory(slot).key)
        if original.exists():
            shutil.rmtree(self._copy, ignore_errors=True)
            shutil.copytree(original, Path(self._copy, original.name))
            left = self._queue_in(self._copy, {slot: priorities})
            try:
                yield from self._move_queue(left, slot, moved)
            finally:
                left.close()
            shutil.rmtree(original)
        self._disk.finish_move(slot)

    def _move_queue(
        self, left: DownloaderAwarePriorityQueue, slot: str, moved: int
    ) -> Iterator[None]:
        for number in count(1):
            size = len(left)
            if not size:
                return
            request = None
            try:
                request = left.pop()
            except Exception as error:
                if len(left) == size:
                    raise  # no request was removed: the next pop would raise the same error
                if number > moved:
                    log_unreadable(self._crawler, f"one of {slot}", error)
            if number > moved:
                if request is not None:
                    self._push(request, moved=True)
                    self._moved += 1
                self._disk.set_moved_count(slot, number)
            yield
