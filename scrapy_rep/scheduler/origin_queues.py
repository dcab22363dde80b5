"""The requests of the queue: a lane for each origin in each download slot, in memory or on disk."""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from contextlib import suppress
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.pqueues import _path_safe

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler.slot_order import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.pqueues import ScrapyPriorityQueue

    from scrapy_rep.protocol.origin import Origin

_MAX_FILE_NAME: Final = 255
_FILES_PER_LANE: Final = 4
"""Part of the files that a process may open that is taken up by the lanes that are open: each has
two or more of them."""
_TAKEN_AGAIN: Final = 100
"""How many requests of a lane may come again after a kill."""
_STALE: Final = 16

Turn = tuple[int, bool, int]
"""Priority, whether it is a start request's, and since when; the least one is next."""


class Lane:
    """The requests of one origin in one download slot, or those of a slot that have no origin."""

    __slots__ = (
        "key",
        "origin",
        "owner",
        "prios",
        "queue",
        "size",
        "slot",
        "taken",
        "turn",
        "waits",
    )

    def __init__(self, owner: Lanes, key: str, slot: Slot, origin: Origin | None) -> None:
        self.owner = owner
        self.key = key
        self.slot = slot
        self.origin = origin
        self.queue: ScrapyPriorityQueue | None = None
        self.prios: Iterable[int] = ()
        """Priorities in its files while it is closed."""
        self.size = 0
        self.taken = 0
        """How many requests were taken of it since its files were opened."""
        self.waits = False
        """Whether the gate has it."""
        self.turn: Turn | None = None
        """Its place in the slot's heap."""

    def head(self) -> Request:
        """Return the request that would leave next."""
        return head(self.owner.open(self))

    def wake(self) -> None:
        """Look at this lane again."""
        self.owner.woken.append(self)


class Slot:
    """The lanes of one download slot, and which of them is next."""

    __slots__ = ("lanes", "name", "position", "turns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lanes = 0
        self.position = Position.NOWHERE
        self.turns: list[tuple[Turn, Lane]] = []
        """A heap; only those pairs count whose turn is the lane's."""

    def next(self) -> Lane | None:
        """Return the lane whose turn it is."""
        while self.turns:
            turn, lane = self.turns[0]
            if turn is lane.turn:
                return lane
            heappop(self.turns)
        return None

    def enter(self, lane: Lane, turn: Turn) -> None:
        """Let it be the turn of ``lane`` when ``turn`` says."""
        lane.turn = turn
        if len(self.turns) > 2 * self.lanes + _STALE:
            self.turns = [(lane.turn, lane) for turn, lane in self.turns if turn is lane.turn]
            heapify(self.turns)
        heappush(self.turns, (turn, lane))


class Lanes:
    """All lanes of a queue.

    On disk each lane is beside the slots in Scrapy's own layout, under the origin for a name. Lanes
    above a number are closed and opened again when they are needed, as each takes two or more open
    files.
    """

    def __init__(
        self, make_queue: Callable[[str, Iterable[int]], ScrapyPriorityQueue], folder: str
    ) -> None:
        self._make_queue = make_queue
        self._folder = folder
        """Where they are on disk; empty: in memory."""
        self.slots: dict[str, Slot] = {}
        """The download slots that have lanes, by name."""
        self.size = 0
        """How many requests there are."""
        self.woken: deque[Lane] = deque()
        """Lanes that the gate is done with."""
        self._lanes: dict[tuple[str, Origin | None], Lane] = {}
        self._open: OrderedDict[Lane, None] = OrderedDict()
        self._max_open = max(8, _max_files() // _FILES_PER_LANE)

    def restore(
        self, key: str, prios: Iterable[int], queue: ScrapyPriorityQueue | None = None
    ) -> Lane:
        """Return the lane of a key that ``close()`` returned, open; ``queue`` if it is already."""
        name, origin = _slot_and_origin(key)
        lane = self._add(key, name, origin)
        lane.prios, lane.queue = prios, queue
        self.resize(lane, len(self.open(lane)))
        return lane

    def lane(self, name: str, origin: Origin | None) -> Lane:
        """Return the lane of an origin in slot ``name``.

        :raises ValueError: there can be none on disk. Scrapy's scheduler takes this for: keep it in
            memory.
        """
        lane = self._lanes.get((name, origin))
        if lane is None:
            key = name if origin is None else key_of(name, origin)
            if self._folder and len(_path_safe(key)) > _MAX_FILE_NAME:
                raise ValueError(f"the host name is too long for a file name: {key!r}")
            lane = self._add(key, name, origin)
        return lane

    def _add(self, key: str, name: str, origin: Origin | None) -> Lane:
        slot = self.slots.get(name)
        if slot is None:
            slot = self.slots[name] = Slot(name)
        slot.lanes += 1
        lane = self._lanes[name, origin] = Lane(self, key, slot, origin)
        return lane

    def open(self, lane: Lane) -> ScrapyPriorityQueue:
        """Return the queue of ``lane``; another one's files may be closed for it."""
        if lane.queue is None:
            lane.queue = self._make_queue(lane.key, lane.prios)
        if self._folder:
            self._open[lane] = None
            self._open.move_to_end(lane)
            while len(self._open) > self._max_open:
                self.shut(next(iter(self._open)))
        return lane.queue

    def shut(self, lane: Lane) -> None:
        """Close the files of ``lane`` until it is opened again."""
        self._open.pop(lane, None)
        if lane.queue is not None:
            lane.prios, lane.queue, lane.taken = lane.queue.close(), None, 0

    def note_taken(self, lane: Lane) -> None:
        """Count a request that was taken of ``lane``.

        What was taken of a first-in-first-out file is written down only when it is closed, and
        after a kill comes again.
        """
        lane.taken += 1
        if self._folder and lane.taken >= _TAKEN_AGAIN:
            self.shut(lane)

    def resize(self, lane: Lane, size: int) -> None:
        """Remember that ``lane`` has so many requests; with none it is no more."""
        self.size += size - lane.size
        lane.size = size
        if not size:
            self._remove(lane)

    def _remove(self, lane: Lane) -> None:
        del self._lanes[lane.slot.name, lane.origin]
        self.shut(lane)
        lane.turn = None
        if self._folder:
            # As Scrapy does from 2.17 on.
            with suppress(OSError):
                Path(self._folder, _path_safe(lane.key)).rmdir()
        lane.slot.lanes -= 1
        if not lane.slot.lanes and self.slots.get(lane.slot.name) is lane.slot:
            del self.slots[lane.slot.name]

    def close(self) -> dict[str, list[int]]:
        """Close all files; return what the next crawl needs to open them again."""
        state = {}
        for lane in self._lanes.values():
            self.shut(lane)
            state[lane.key] = list(lane.prios)
        self._lanes.clear()
        self.slots.clear()
        self.size = 0
        return state


def peek(queue: ScrapyPriorityQueue) -> Request:
    """Return what the next pop would; the own peek of ``queue`` has start requests first."""
    queue._update_curprio()  # noqa: SLF001 - pop() leaves it behind; peek() fails then
    downstream = None if queue.curprio is None else queue.queues.get(queue.curprio)
    # queuelib gives its queues no types.
    request: Request | None = downstream.peek() if downstream else queue.peek()  # type: ignore[attr-defined]
    if request is None:
        raise LookupError(f"an empty queue: {queue.key}")
    return request


def head(queue: ScrapyPriorityQueue) -> Request:
    """Return what the next pop would, of a downstream queue without a peek of its own, too."""
    try:
        return peek(queue)
    except (NotImplementedError, AttributeError, LookupError):
        request = queue.pop()
        if request is None:
            raise LookupError(f"an empty queue: {queue.key}") from None
        queue.push(request)
        return request


def key_of(slot: str, origin: Origin) -> str:
    """Return the key of a lane in the state and, as a path, on disk."""
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


def _max_files() -> int:
    if sys.platform == "win32":
        return 512
    import resource  # noqa: PLC0415 - not there on Windows

    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 65_536)
