"""The priority queue of Scrapy's scheduler, which keeps requests until they may leave."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface

from scrapy_rep.scheduler.disk import Disk
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.kinds import kind_of, unfit
from scrapy_rep.scheduler.origin_queues import Lane, Memory, Slot, UnreadableError
from scrapy_rep.scheduler.scrapy_jobdir import OURS, Mover, keep_scrapys_queue_out, read_state
from scrapy_rep.scheduler.slot_order import Rotation
from scrapy_rep.scheduler.source import Source, note_source
from scrapy_rep.scheduler.trouble import tell, tell_unreadable
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.scrapy_internals import nudge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.pqueues import QueueProtocol

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.scheduler.origin_queues import Requests
    from scrapy_rep.utils.clock import Timer

logger = logging.getLogger(__name__)

_PAUSES: Final = (1, 2, 4, 8, 16, 32)
"""Seconds to the next try to read a lane that can't be read; after the last one it is left."""


class RobotsAwarePriorityQueue:
    """Keeps requests of an origin until its robots.txt is known, and while it is unreachable.

    Otherwise requests come in the order of Scrapy's DownloaderAwarePriorityQueue: first those of
    the slots with the least downloads, slot after slot by name where these have equally many.
    Within a slot, the requests of each origin have a queue of their own, a lane; where the next
    ones of two lanes have the same priority, it is the lane's turn that was not served for longest.

    Without RobotsTxtMiddleware (``ROBOTSTXT_OBEY = False``) nothing is kept back.
    """

    @classmethod
    def from_crawler(
        cls,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        startprios: dict[str, Iterable[int]] | list[Any] | None = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
    ) -> RobotsAwarePriorityQueue | DownloaderAwarePriorityQueue:
        """Return the queue; Scrapy's own one where ours doesn't fit the crawl.

        Raises SettingsError where JOBDIR can't be used.
        """
        why_not = unfit(crawler, downstream_queue_cls, start_queue_cls)
        if why_not is None:
            return cls(
                crawler, downstream_queue_cls, key, startprios, start_queue_cls=start_queue_cls
            )
        if not key:  # else it has been said of the queue in memory
            logger.warning(
                "%s: Scrapy's own priority queue is used, which holds no requests back",
                why_not,
                extra={"spider": crawler.spider},
            )
        return DownloaderAwarePriorityQueue.from_crawler(
            crawler,
            downstream_queue_cls,
            key,
            startprios,  # type: ignore[arg-type] # which it checks
            start_queue_cls=start_queue_cls,
        )

    def __init__(  # noqa: PLR0913 - as Scrapy calls it
        self,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        startprios: dict[str, Iterable[int]] | list[Any] | None = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if crawler.settings.getint("CONCURRENT_REQUESTS_PER_IP"):
            raise ValueError(f"{type(self)} does not support CONCURRENT_REQUESTS_PER_IP")
        scrapys = read_state(startprios)
        self.woken: deque[Lane] = deque()
        self.slots: dict[str, Slot] = {}
        """The download slots that have lanes, by name."""
        self._crawler = crawler
        self._clock = clock or Clock()
        self._downloader_interface = DownloaderInterface(crawler)
        self._has_start = start_queue_cls is not None
        self._gate = Gate.of(crawler)
        if self._gate is not None:
            self._gate.in_use = True
        self._lanes: dict[tuple[str, Origin | None], Lane] = {}
        self._size = 0
        self._turns = 0
        self._rotation = Rotation(self.slots, self._active)
        self._failed: dict[Lane, Timer] = {}
        """Lanes that can't be read just now."""
        kind = kind_of(downstream_queue_cls)
        self._order, self._start_order = kind.order, kind_of(start_queue_cls).order
        self._requests: Requests
        self._disk: Disk | None = None
        self._mover: Mover | None = None
        if not key:
            self._requests = Memory()
            return
        self._requests = self._disk = Disk(crawler, key, scrapys, marshals=kind.marshals)
        keep_scrapys_queue_out(key)
        for name, origin, size in self._disk.lanes():
            lane = self._lane(name, origin)
            self._disk.look(lane)
            self._resize(lane, size)
            self._place(lane)
        classes = downstream_queue_cls, start_queue_cls
        self._mover = Mover(crawler, self._disk, self._push_moved, key, classes, self._clock)
        self._mover.move()

    # What the scheduler calls.

    def push(self, request: Request) -> None:
        """Keep ``request``.

        :raises ValueError: it can't be written to disk, and is to be kept in memory.
        """
        start = self._is_start(request)
        self._push(request, start, self._start_order if start else self._order)

    def _push_moved(self, request: Request) -> None:
        # They come in their order, and before them whatever is pushed if the newest is first.
        self._push(request, self._is_start(request), 1)

    def _is_start(self, request: Request) -> bool:
        return self._has_start and bool(request.meta.get("is_start_request", False))

    def _push(self, request: Request, start: bool, order: int) -> None:
        lane = self._lane(self._downloader_interface.get_slot_key(request), self._origin(request))
        try:
            self._requests.add(lane, -request.priority, start, order, request)
        except BaseException:
            self._resize(lane, lane.size)
            raise
        self._resize(lane, lane.size + 1)
        self._place(lane)
        if self._gate is not None:
            self._gate.idle.came()

    def pop(self) -> Request | None:
        """Return the next request that may leave, or None."""
        if self._disk is not None:
            self._disk.forget_ended()
        while (lane := self._select()) is not None:
            try:
                request = self._take(lane)
            except Exception as error:  # noqa: BLE001 - told
                tell(self._crawler, error, "The requests of %s can't be read", lane.slot.name)
                self._put_aside(lane)
                continue
            if request is None:
                continue
            if self._gate is not None:
                if lane.origin is None and self._origin(request) is not None:
                    # It waits on disk since a crawl that had an override for it.
                    self.push(request)
                    continue
                note_source(request, Source.OVERDUE if lane.overdue else Source.QUEUE)
                self._gate.idle.went()
            return request
        return None

    def close(self) -> dict[str, list[int]] | list[Any]:
        """Close the file; return what tells the next crawl of it."""
        for timer in self._failed.values():
            timer.cancel()
        self._failed.clear()
        self._lanes.clear()
        self.slots.clear()
        self.woken.clear()
        self._size = 0
        if self._mover is not None:
            self._mover.stop()
        return OURS if self._disk is not None and self._disk.close() else {}

    def __len__(self) -> int:
        return self._size + (self._mover is not None and self._mover.is_at_work)

    def __contains__(self, slot: str) -> bool:
        return slot in self.slots

    # Lanes.

    def head(self, lane: Lane) -> Request:
        """Return the request of ``lane`` that would leave next.

        :raises LookupError: there is none that can be read.
        """
        while lane.size:
            try:
                return self._requests.read(lane)
            except UnreadableError:  # noqa: PERF203 - seldom more than one
                self._take(lane)
        raise LookupError("none of the requests could be read")

    def _origin(self, request: Request) -> Origin | None:
        if self._gate is None:
            return None
        try:
            return self._gate.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - told
            # The middleware meets the same error, and drops the request for it.
            tell(self._crawler, error, "Error while asking what governs %s", request)
            return None

    def _lane(self, name: str, origin: Origin | None) -> Lane:
        lane = self._lanes.get((name, origin))
        if lane is None:
            slot = self.slots.get(name)
            if slot is None:
                slot = self.slots[name] = Slot(name)
            slot.lanes += 1
            lane = self._lanes[name, origin] = Lane(self, slot, origin)
        return lane

    def _resize(self, lane: Lane, size: int) -> None:
        """Remember that ``lane`` has so many requests; with none it is no more."""
        self._size += size - lane.size
        lane.size = size
        if size or self._lanes.pop((lane.slot.name, lane.origin), None) is None:
            return
        lane.turn = None
        lane.slot.lanes -= 1
        if not lane.slot.lanes:
            del self.slots[lane.slot.name]

    def _take(self, lane: Lane) -> Request | None:
        """Return the next request of ``lane``; None, and that is told, where it can't be read."""
        request = None
        try:
            request = self._requests.take(lane)
        except UnreadableError as error:
            tell_unreadable(self._crawler, str(error), error.__cause__)
        lane.failures = 0
        self._rotation.served(lane.slot)
        # What is next is on disk; if another process has been there, it is right.
        self._resize(lane, max(1, lane.size - 1) if lane.held else 0)
        if lane.size:
            self._place(lane, served=True)
        return request

    def _put_aside(self, lane: Lane) -> None:
        """Try ``lane`` again later; in the end leave it on disk, so that the crawl can end."""
        if lane.failures == len(_PAUSES):
            logger.error(
                "%d requests of %s are left in JOBDIR",
                lane.size,
                lane.slot.name,
                extra={"spider": self._crawler.spider},
            )
            self._resize(lane, 0)
            return
        lane.waits, lane.turn = True, None
        self._failed[lane] = self._clock.call_later(_PAUSES[lane.failures], self._try_again, lane)
        lane.failures += 1

    def _try_again(self, lane: Lane) -> None:
        del self._failed[lane]
        lane.wake()
        nudge(self._crawler)

    # Whose turn it is.

    def _place(self, lane: Lane, *, served: bool = False) -> None:
        """Give ``lane`` the turn that its next request has, after a change of it."""
        if lane.waits:
            return
        priority, start = lane.held[0][:2]
        if lane.turn is None or served or (priority, start) != lane.turn[:2]:
            self._turns += 1
            lane.slot.enter(lane, (priority, start, self._turns))
        self._rotation.add(lane.slot)

    def _select(self) -> Lane | None:
        """Return the lane that the next request is to be taken from."""
        while self.woken:
            woken = self.woken.popleft()
            if woken.waits and woken.size:
                woken.waits = False
                self._place(woken)
        passed_over = []
        try:
            for slot in self._rotation.turns():
                if self._is_full(slot):
                    passed_over.append(slot)
                    continue
                lane = self._ready_lane(slot)
                if lane is not None:
                    self._rotation.add(slot)
                    return lane
            return None
        finally:
            for slot in passed_over:
                self._rotation.add(slot)
            if self._gate is not None:
                self._gate.ask()

    def _active(self, name: str) -> int:
        slot = self._downloader_interface.downloader.slots.get(name)
        return 0 if slot is None else len(slot.active)

    def _is_full(self, slot: Slot) -> bool:
        try:
            return self._gate is not None and self._gate.is_full(slot.name)
        except Exception as error:  # noqa: BLE001 - told
            tell(self._crawler, error, "Error while asking whether %s has enough to do", slot.name)
            return False

    def _ready_lane(self, slot: Slot) -> Lane | None:
        """Return the lane of ``slot`` that is next, of those whose requests may leave."""
        while (lane := slot.next()) is not None:
            lane.waits = True
            if self._opens(lane):
                lane.waits = False
                return lane
            lane.turn = None
        return None

    def _opens(self, lane: Lane) -> bool:
        if self._gate is None or lane.origin is None:
            return True
        try:
            return self._gate.opens(lane.origin, lane)
        except Exception as error:  # noqa: BLE001 - told
            # The middleware decides by itself, and drops what it can't decide about.
            tell(self._crawler, error, "Error while asking whether %s is open", lane.origin)
            return True
