"""The priority queue that keeps requests until it is known what robots.txt says of them."""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from contextlib import suppress
from enum import Enum
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.pqueues import DownloaderAwarePriorityQueue, _path_safe

from scrapy_rep.gate import FROM_KEY, FROM_QUEUE, origin_governing
from scrapy_rep.middleware import RobotsTxtMiddleware
from scrapy_rep.protocol.origin import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.pqueues import QueueProtocol, ScrapyPriorityQueue

    from scrapy_rep.protocol.origin import Origin

_MAX_FILE_NAME: Final = 255
_FILES_PER_LANE: Final = 4
"""Part of the files that a process may open that is taken up by the lanes that are open: each has
two or more of them."""
_STALE: Final = 16

_Turn = tuple[int, bool, int]


class _Place(Enum):
    """Where a slot is looked for."""

    NOWHERE = 0
    """Nothing of it could leave."""
    NEW = 1
    """It may be busy."""
    ROUND = 2
    """It was idle when it was last looked at."""


class _Lane:
    """The requests of one origin in one download slot, or those of a slot that have no origin."""

    __slots__ = ("key", "origin", "owner", "prios", "queue", "size", "slot", "turn", "waits")

    def __init__(
        self, owner: RobotsAwarePriorityQueue, key: str, slot: _Slot, origin: Origin | None
    ) -> None:
        self.owner = owner
        self.key = key
        self.slot = slot
        self.origin = origin
        self.queue: ScrapyPriorityQueue | None = None
        self.prios: Iterable[int] = ()
        """Priorities in its files while it is closed."""
        self.size = 0
        self.waits = False
        """Whether the gate has it."""
        self.turn: _Turn | None = None
        """Its place in the slot's heap."""

    def head(self) -> Request:
        """Return the request that would leave next."""
        queue = self.owner.open_lane(self)
        try:
            return _peek(queue)
        except (NotImplementedError, AttributeError, LookupError):
            # A downstream queue without peek().
            request = queue.pop()
            if request is None:
                raise LookupError(f"an empty queue of {self.key}") from None
            queue.push(request)
            return request

    def wake(self) -> None:
        """Look at this lane again."""
        self.owner.woken.append(self)


class _Slot:
    """The lanes of one download slot, and which of them is next."""

    __slots__ = ("lanes", "name", "place", "turns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lanes = 0
        self.place = _Place.NOWHERE
        self.turns: list[tuple[_Turn, _Lane]] = []
        """A heap; only those pairs count whose turn is the lane's."""

    def next(self) -> _Lane | None:
        """Return the lane whose turn it is."""
        while self.turns:
            turn, lane = self.turns[0]
            if turn is lane.turn:
                return lane
            heappop(self.turns)
        return None

    def enter(self, lane: _Lane, turn: _Turn) -> None:
        """Let it be the turn of ``lane`` when ``turn`` says."""
        lane.turn = turn
        if len(self.turns) > 2 * self.lanes + _STALE:
            self.turns = [(lane.turn, lane) for turn, lane in self.turns if turn is lane.turn]
            heapify(self.turns)
        heappush(self.turns, (turn, lane))


class RobotsAwarePriorityQueue(DownloaderAwarePriorityQueue):
    """Keeps requests of an origin until its robots.txt is known, and while it is unreachable.

    Otherwise requests come in the order of Scrapy's DownloaderAwarePriorityQueue: first those of
    the slots with the least downloads, slot after slot by name where these have equally many.
    Within a slot, the requests of each origin have a queue of their own, a lane; where the next
    ones of two lanes have the same priority, it is the lane's turn that was not served for longest.

    On disk each lane is beside the slots in Scrapy's own layout, under the origin for a name, so
    that either queue opens what the other left. Lanes above a number are closed and opened again
    when they are needed, as each takes two or more open files.

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
        super().__init__(
            crawler,
            downstream_queue_cls,
            key,
            None if is_state else slot_startprios,
            start_queue_cls=start_queue_cls,
        )
        middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
        self._gate = None if middleware is None else middleware.gate
        if self._gate is not None:
            self._gate.in_use = True
        self.woken: deque[_Lane] = deque()
        """Lanes that the gate is done with."""
        self._last = ""
        self._turns = 0
        self._size = 0
        self._lanes: dict[str, _Lane] = {}
        self._slots: dict[str, _Slot] = {}
        # Slots in which something may be found are in one of three places. Which of them are idle
        # is found out one by one, in the order of their names.
        self._this_round: list[str] = []
        self._next_round: list[str] = []
        self._new: set[str] = set()
        self._open: OrderedDict[_Lane, None] = OrderedDict()
        self._max_open = max(8, _max_files() // _FILES_PER_LANE)
        if slot_startprios and is_state:
            for name, prios in slot_startprios.items():
                self._restore(name, prios)

    def _restore(self, key: str, prios: Iterable[int]) -> None:
        slot, origin = _slot_and_origin(key)
        lane = self._make_lane(key, slot, origin if self._gate is not None else None)
        lane.prios = prios
        self.open_lane(lane)
        self._update(lane)

    # What the scheduler calls.

    def push(self, request: Request) -> None:
        """Keep ``request``."""
        slot = self._downloader_interface.get_slot_key(request)
        origin = None if self._gate is None else origin_governing(request)
        key = slot if origin is None else _key(slot, origin)
        lane = self._lanes.get(key)
        if lane is None:
            if self.key and len(_path_safe(key)) > _MAX_FILE_NAME:
                # What Scrapy's scheduler takes for: keep it in memory.
                raise ValueError(f"the host name is too long for a file name: {key!r}")
            if self.key:
                _clear(Path(self.key, _path_safe(key)))
            lane = self._make_lane(key, slot, origin)
        try:
            self.open_lane(lane).push(request)
        finally:
            self._update(lane)

    def pop(self) -> Request | None:
        """Return the next request that may leave, or None."""
        lane = self._select()
        if lane is None:
            return None
        self._last = lane.slot.name
        request = self._take(lane)
        if request is not None and lane.origin is not None:
            request.meta[FROM_KEY] = FROM_QUEUE
        return request

    def peek(self) -> Request | None:
        """Return what pop() would return, and leave it where it is.

        :raises NotImplementedError: the downstream queue has no peek().
        """
        lane = self._select()
        return None if lane is None else _peek(self.open_lane(lane))

    def close(self) -> dict[str, list[int]]:
        """Close all files; return what the next crawl needs to open them again."""
        state = {}
        for key, lane in self._lanes.items():
            if lane.queue is not None:
                lane.prios = lane.queue.close()
            state[key] = list(lane.prios)
        self._lanes.clear()
        self._slots.clear()
        self._open.clear()
        self._this_round, self._next_round, self._new = [], [], set()
        self._size = 0
        return state

    def __len__(self) -> int:
        return self._size

    def __contains__(self, slot: str) -> bool:
        return slot in self._slots

    # Lanes.

    def _make_lane(self, key: str, name: str, origin: Origin | None) -> _Lane:
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = _Slot(name)
        slot.lanes += 1
        lane = self._lanes[key] = _Lane(self, key, slot, origin)
        return lane

    def open_lane(self, lane: _Lane) -> ScrapyPriorityQueue:
        """Return the queue of ``lane``; another one's files may be closed for it."""
        if lane.queue is None:
            lane.queue = self.pqfactory(lane.key, lane.prios)
        if self.key:
            self._open[lane] = None
            self._open.move_to_end(lane)
            while len(self._open) > self._max_open:
                other, _ = self._open.popitem(last=False)
                if other.queue is not None:
                    other.prios, other.queue = other.queue.close(), None
        return lane.queue

    def _take(self, lane: _Lane) -> Request | None:
        try:
            return self.open_lane(lane).pop()
        finally:
            self._update(lane, served=True)

    def _update(self, lane: _Lane, *, served: bool = False) -> None:
        """See to it that ``lane`` is where it belongs, after a change of its queue."""
        queue = lane.queue
        assert queue is not None  # noqa: S101 - for the types: it was just opened
        size = len(queue)
        self._size += size - lane.size
        lane.size = size
        if not size:
            self._remove(lane, queue)
            return
        if lane.waits:
            return
        priority = queue.curprio or 0
        # At the same priority, ScrapyPriorityQueue has start requests after the others.
        turn = priority, priority not in queue.queues, self._turns
        if lane.turn is None or served or turn[:2] != lane.turn[:2]:
            self._turns += 1
            lane.slot.enter(lane, turn)
        self._find_place(lane.slot)

    def _remove(self, lane: _Lane, queue: ScrapyPriorityQueue) -> None:
        del self._lanes[lane.key]
        self._open.pop(lane, None)
        queue.close()
        lane.queue = lane.turn = None
        if self.key:
            # As Scrapy does from 2.17 on.
            with suppress(OSError):
                Path(self.key, _path_safe(lane.key)).rmdir()
        lane.slot.lanes -= 1
        if not lane.slot.lanes and self._slots.get(lane.slot.name) is lane.slot:
            del self._slots[lane.slot.name]

    # Slots.

    def _find_place(self, slot: _Slot) -> None:
        if slot.place is _Place.NOWHERE:
            slot.place = _Place.NEW
            self._new.add(slot.name)

    def _select(self) -> _Lane | None:
        """Return the lane that the next request is to be taken from."""
        while self.woken:
            lane = self.woken.popleft()
            if lane.waits and lane.key in self._lanes:
                lane.waits = False
                self.open_lane(lane)
                self._update(lane)
        try:
            return self._select_idle() or self._select_busy()
        finally:
            if self._gate is not None:
                self._gate.ask()

    def _select_idle(self) -> _Lane | None:
        for name in [name for name in self._new if not self._active(name)]:
            self._new.discard(name)
            slot = self._slots.get(name)
            if slot is not None:
                slot.place = _Place.ROUND
                heappush(self._this_round if name > self._last else self._next_round, name)
        full = []
        lane = None
        while lane is None and (self._this_round or self._next_round):
            if not self._this_round:
                self._this_round, self._next_round = self._next_round, self._this_round
                self._last = ""
            slot = self._slots.get(heappop(self._this_round))
            if slot is None or slot.place is not _Place.ROUND:
                continue
            slot.place = _Place.NOWHERE
            if self._is_full(slot):
                full.append(slot)
                continue
            if self._active(slot.name):
                self._find_place(slot)
                continue
            lane = self._ready_lane(slot)
            if lane is not None:
                self._find_place(slot)
        for slot in full:
            self._find_place(slot)
        return lane

    def _select_busy(self) -> _Lane | None:
        # Slots that something was taken from, or put into, since they were idle: not more than
        # there are downloads, as the others have been found to be idle before.
        busy = sorted((self._active(name), name <= self._last, name) for name in self._new)
        for _, _, name in busy:
            slot = self._slots.get(name)
            if slot is None:
                self._new.discard(name)
                continue
            if self._is_full(slot):
                continue
            lane = self._ready_lane(slot)
            if lane is not None:
                return lane
            slot.place = _Place.NOWHERE
            self._new.discard(name)
        return None

    def _active(self, name: str) -> int:
        slot = self._downloader_interface.downloader.slots.get(name)
        return 0 if slot is None else len(slot.active)

    def _is_full(self, slot: _Slot) -> bool:
        return self._gate is not None and self._gate.is_full(slot.name)

    def _ready_lane(self, slot: _Slot) -> _Lane | None:
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

    def _sort_out(self, lane: _Lane) -> bool:
        """Move the next request of a lane without an origin to where it is to wait, if it is to.

        What Scrapy's own queue left on disk is in such a lane.
        """
        assert self._gate is not None  # noqa: S101 - for the types
        try:
            request = _peek(self.open_lane(lane))
        except (NotImplementedError, AttributeError, LookupError):
            return False
        origin = origin_governing(request)
        if origin is None or self._gate.is_open(origin):
            return False
        taken = self._take(lane)
        if taken is not None:
            self.push(taken)
        return True


def _peek(queue: ScrapyPriorityQueue) -> Request:
    """Return what ``queue.pop()`` would return: peek() has start requests first, pop() last."""
    queue._update_curprio()  # noqa: SLF001 - pop() leaves it behind; peek() fails then
    downstream = None if queue.curprio is None else queue.queues.get(queue.curprio)
    request: Request | None = downstream.peek() if downstream else queue.peek()  # type: ignore[attr-defined]
    if request is None:
        raise LookupError(f"an empty queue: {queue.key}")
    return request


def _key(slot: str, origin: Origin) -> str:
    return str(origin) if slot == origin.host else f"{origin} {slot}"


def _slot_and_origin(key: str) -> tuple[str, Origin | None]:
    """Return what a key of the queue's state stands for: Scrapy's own are the names of slots."""
    text, _, slot = key.partition(" ")
    try:
        origin = origin_of(text)
    except ValueError:
        return key, None
    if str(origin) != text:
        return key, None
    return slot or origin.host, origin


def _clear(folder: Path) -> None:
    """Remove what a crawl that was killed left in the files of a lane that begins anew.

    A FifoDiskQueue writes only when it is closed how much of its files is still to come. Without
    that it begins at the start of what was left, and ends as many requests too early: the old ones
    stand in the way of the new.
    """
    if not folder.is_dir():
        return
    for downstream in folder.iterdir():
        if downstream.is_dir() and not (downstream / "info.json").exists():
            for chunk in downstream.glob("q*"):
                chunk.unlink()


def _max_files() -> int:
    if sys.platform == "win32":
        return 512
    import resource  # noqa: PLC0415 - not there on Windows

    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 65_536)
