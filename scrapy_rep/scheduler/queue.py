"""The priority queue of Scrapy's scheduler, which keeps requests until they may leave."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.pqueues import DownloaderAwarePriorityQueue, ScrapyPriorityQueue, _path_safe

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.crash_recovery import durable, salvage
from scrapy_rep.scheduler.gate import Gate
from scrapy_rep.scheduler.origin_queues import Lanes, head, key_of, peek
from scrapy_rep.scheduler.slot_order import Rotation
from scrapy_rep.scheduler.source import Source, note_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.pqueues import QueueProtocol

    from scrapy_rep.scheduler.origin_queues import Lane, Slot

logger = logging.getLogger(__name__)


class RobotsAwarePriorityQueue(DownloaderAwarePriorityQueue):
    """Keeps requests of an origin until its robots.txt is known, and while it is unreachable.

    Otherwise requests come in the order of Scrapy's DownloaderAwarePriorityQueue: first those of
    the slots with the least downloads, slot after slot by name where these have equally many.
    Within a slot, the requests of each origin have a queue of their own, a lane; where the next
    ones of two lanes have the same priority, it is the lane's turn that was not served for longest.

    Either queue opens what the other left on disk.

    Without RobotsTxtMiddleware (``ROBOTSTXT_OBEY = False``) nothing is kept back.
    """

    def __init__(
        self,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        slot_startprios: dict[str, Iterable[int]] | None = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
    ) -> None:
        is_state = isinstance(slot_startprios, dict)
        if key:
            downstream_queue_cls = durable(downstream_queue_cls)
            start_queue_cls = None if start_queue_cls is None else durable(start_queue_cls)
        super().__init__(
            crawler,
            downstream_queue_cls,
            key,
            None if is_state else slot_startprios,
            start_queue_cls=start_queue_cls,
        )
        self._gate = Gate.of(crawler)
        if self._gate is not None:
            self._gate.in_use = True
        self._turns = 0
        self._begin()
        self._resume(slot_startprios if slot_startprios and is_state else {})

    def _resume(self, state: dict[str, Iterable[int]]) -> None:
        """Keep what is on disk, whether or not the crawl before could close it."""
        found: dict[str, list[int]] = {}
        if self.key:
            found = salvage(Path(self.key), self.downstream_queue_cls, self._start_queue_cls)
        for lane_key, prios in state.items():
            if _path_safe(lane_key) not in found:
                self._restore(lane_key, prios)
        closed = len(self)
        keys = {_path_safe(lane_key): lane_key for lane_key in state}
        for name, prios in found.items():
            if name in keys:
                self._restore(keys[name], prios)
            elif prios:
                self._adopt(name, prios)
        if len(self) > closed:
            logger.info(
                "%d requests were found in queues that were not closed, as after a kill; some of "
                "them may come a second time",
                len(self) - closed,
                extra={"spider": self.crawler.spider},
            )

    def _begin(self) -> None:
        self._lanes = Lanes(self.pqfactory, self.key)
        self._rotation = Rotation(self._lanes.slots, self._active)

    def _restore(
        self, key: str, prios: Iterable[int], queue: ScrapyPriorityQueue | None = None
    ) -> None:
        self._place(self._lanes.restore(key, prios, queue))

    def _adopt(self, name: str, prios: list[int]) -> None:
        """Make a lane of directory ``name``, which the state doesn't tell of."""
        queue = ScrapyPriorityQueue(
            self.crawler,
            self.downstream_queue_cls,
            f"{self.key}/{name}",
            prios,
            start_queue_cls=self._start_queue_cls,
        )
        try:
            request = head(queue)
            keys = [self._downloader_interface.get_slot_key(request)]
            with suppress(ValueError):
                keys.append(key_of(keys[0], origin_of(request.url)))
            key = next(key for key in keys if _path_safe(key) == name)
        except Exception:
            logger.exception("A queue that was not closed is left as it is: %s", queue.key)
            queue.close()
        else:
            self._restore(key, prios, queue)

    # What the scheduler calls.

    def push(self, request: Request) -> None:
        """Keep ``request``."""
        slot = self._downloader_interface.get_slot_key(request)
        origin = None if self._gate is None else self._gate.origin_governing(request)
        lane = self._lanes.lane(slot, origin)
        added = 0
        try:
            self._lanes.open(lane).push(request)
            added = 1
        finally:
            self._lanes.resize(lane, lane.size + added)
        self._place(lane)

    def pop(self) -> Request | None:
        """Return the next request that may leave, or None."""
        lane = self._select()
        if lane is None:
            return None
        self._rotation.served(lane.slot)
        request = self._take(lane)
        if request is not None and self._gate is not None:
            note_source(request, Source.QUEUE)
        return request

    def peek(self) -> Request | None:
        """Return what pop() would return, and leave it where it is.

        :raises NotImplementedError: the downstream queue has no peek().
        """
        lane = self._select()
        return None if lane is None else peek(self._lanes.open(lane))

    def close(self) -> dict[str, list[int]]:
        """Close all files; return what the next crawl needs to open them again."""
        state = self._lanes.close()
        self._begin()
        return state

    def __len__(self) -> int:
        return self._lanes.size

    def __contains__(self, slot: str) -> bool:
        return slot in self._lanes.slots

    # Whose turn it is.

    def _take(self, lane: Lane) -> Request | None:
        queue = self._lanes.open(lane)
        try:
            return queue.pop()
        finally:
            self._lanes.resize(lane, len(queue))
            self._place(lane, served=True)
            self._lanes.note_taken(lane)

    def _place(self, lane: Lane, *, served: bool = False) -> None:
        """Give ``lane`` the turn that its next request has, after a change of its queue."""
        queue = lane.queue
        if queue is None or lane.waits:
            return
        priority = queue.curprio or 0
        # At the same priority, ScrapyPriorityQueue has start requests after the others.
        turn = priority, priority not in queue.queues, self._turns
        if lane.turn is None or served or turn[:2] != lane.turn[:2]:
            self._turns += 1
            lane.slot.enter(lane, turn)
        self._rotation.add(lane.slot)

    def _select(self) -> Lane | None:
        """Return the lane that the next request is to be taken from."""
        woken = self._lanes.woken
        while woken:
            lane = woken.popleft()
            if lane.waits and lane.size:
                lane.waits = False
                self._lanes.open(lane)
                self._place(lane)
        full = []
        try:
            for slot in self._rotation.turns():
                if self._is_full(slot):
                    full.append(slot)
                    continue
                selected = self._ready_lane(slot)
                if selected is not None:
                    self._rotation.add(slot)
                    return selected
            return None
        finally:
            for slot in full:
                self._rotation.add(slot)
            if self._gate is not None:
                self._gate.ask()

    def _active(self, name: str) -> int:
        slot = self._downloader_interface.downloader.slots.get(name)
        return 0 if slot is None else len(slot.active)

    def _is_full(self, slot: Slot) -> bool:
        return self._gate is not None and self._gate.is_full(slot.name)

    def _ready_lane(self, slot: Slot) -> Lane | None:
        """Return the lane of ``slot`` that is next, of those whose requests may leave."""
        while (lane := slot.next()) is not None:
            if self._gate is None:
                return lane
            if lane.origin is None:
                if not self._sort_out(lane):
                    return lane
                continue
            lane.waits = True
            if self._gate.opens(lane.origin, lane):
                lane.waits = False
                return lane
            lane.turn = None
        return None

    def _sort_out(self, lane: Lane) -> bool:
        """Move the next request of a lane without an origin to where it is to wait, if it is to.

        What Scrapy's own queue left on disk is in such a lane.
        """
        assert self._gate is not None  # noqa: S101 - for the types
        try:
            request = peek(self._lanes.open(lane))
        except (NotImplementedError, AttributeError, LookupError):
            return False
        origin = self._gate.origin_governing(request)
        if origin is None or self._gate.is_open(origin):
            return False
        taken = self._take(lane)
        if taken is not None:
            self.push(taken)
        return True
