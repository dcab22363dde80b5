"""What a crawl that was killed left of its queues on disk, made whole again.

queuelib writes down what its files hold only when it closes them. After a kill, a FifoDiskQueue has
all requests that were put into it and not which of them were taken; a LifoDiskQueue has exactly
those that were not taken; and neither is named in the scheduler's state. Here the files themselves
are counted, so that nothing of what they have is lost. A request may come twice because of that.
"""

from __future__ import annotations

import json
import logging
import os
import struct
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING, Any, Final

from queuelib.queue import FifoDiskQueue, LifoDiskQueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy import Request

logger = logging.getLogger(__name__)

_STATE: Final = "active.json"
"""What Scrapy's scheduler writes last when it closes, in the directory of its queues."""
_SIZE: Final = struct.Struct(">L")
"""How queuelib writes the number of bytes of a record, and the number of records."""
_TORN: Final = 1 << 20
"""Bytes at the end of a file that may be part of a record that was never written whole."""


def durable(queue_class: type[Any]) -> type[Any]:
    """Return ``queue_class``, made to have in its file, whole and at once, what was put into it.

    A LifoDiskQueue keeps the last KiB in memory, and writes them where its peek() has left the
    file, over the end of the record before (queuelib to 1.10, mended by its pull request 92).
    """
    if not issubclass(queue_class, LifoDiskQueue):
        return queue_class

    class Durable(queue_class):  # type: ignore[misc] # a base known at run time only
        def push(self, request: Request) -> None:
            self.f.seek(0, os.SEEK_END)
            super().push(request)
            self.f.flush()

    return Durable


def salvage(
    folder: Path, queue_class: type[Any], start_class: type[Any] | None
) -> dict[str, list[int]]:
    """Mend the queues in ``folder`` that were in use later than the state beside them tells.

    Return the priorities that they have, by the names of the directories of their slots.
    """
    try:
        saved = (folder / _STATE).stat().st_mtime_ns
    except OSError:
        saved = 0
    found = {}
    for slot in _directories(folder):
        if _last_use(slot) <= saved:
            continue
        prios = set()
        for path in slot.iterdir():
            name = path.name.removesuffix("s")
            cls = queue_class if name == path.name else start_class
            try:
                prio = int(name)
            except ValueError:
                continue
            if cls is not None and _mend(path, cls):
                prios.add(prio)
        found[slot.name] = sorted(prios)
    return found


def _directories(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else iter(())


def _last_use(slot: Path) -> int:
    # Directories too: a file that was read to its end is removed.
    return max(path.stat().st_mtime_ns for path in (slot, *slot.rglob("*")))


def _mend(path: Path, queue_class: type[Any]) -> bool:
    """Return whether the queue at ``path`` has something."""
    if issubclass(queue_class, FifoDiskQueue):
        return path.is_dir() and _mend_fifo(path)
    if issubclass(queue_class, LifoDiskQueue):
        return path.is_file() and _mend_lifo(path)
    return True  # a database, for instance: it knows


def _mend_fifo(path: Path) -> bool:
    """Write into its info.json what the chunks of a FifoDiskQueue have."""
    info_file = path / "info.json"
    info: dict[str, Any] = {"chunksize": 100_000, "tail": [0, 0, 0]}
    with suppress(OSError, ValueError):
        info |= json.loads(info_file.read_text())
    chunks = sorted(int(chunk.name[1:]) for chunk in path.glob("q[0-9]*"))
    if not chunks:
        return False
    number, taken, offset = info["tail"]
    if number not in chunks or offset > _chunk(path, number).stat().st_size:
        # That chunk has been taken from, to its end, since this was written down.
        number, taken, offset = info["tail"] = [chunks[0], 0, 0]
    size = 0
    while True:
        count, end = _count_forth(_chunk(path, number), offset)
        size += count
        if number + 1 not in chunks:
            break
        number, taken, offset = number + 1, 0, 0
    if not size:
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        return False
    if end < _chunk(path, number).stat().st_size:
        os.truncate(_chunk(path, number), end)
    at_end = taken + count == info["chunksize"]
    info |= {"size": size, "head": [number + 1, 0] if at_end else [number, taken + count]}
    info_file.write_text(json.dumps(info))
    return True


def _chunk(path: Path, number: int) -> Path:
    return path / f"q{number:05d}"


def _count_forth(chunk: Path, offset: int) -> tuple[int, int]:
    """Return how many records there are from ``offset`` on, and where the last one ends."""
    count = 0
    with _content(chunk) as content:
        while offset + _SIZE.size <= len(content):
            following = offset + _SIZE.size + _SIZE.unpack_from(content, offset)[0]
            if following > len(content):
                break
            count, offset = count + 1, following
    return count, offset


def _mend_lifo(path: Path) -> bool:
    """Write at the start of the file of a LifoDiskQueue how many requests it has."""
    with _content(path) as content:
        size = len(content)
        ends = range(size, max(_SIZE.size, size - _TORN), -1)
        count, end = next(((n, end) for end in ends if (n := _count_back(content, end))), (0, 0))
    if count:
        with path.open("rb+") as file:
            file.write(_SIZE.pack(count))
            file.truncate(end)
    elif size > _SIZE.size:
        aside = path.rename(f"{path}.broken")
        logger.error("Nothing could be made of a queue that was not closed, it is now %s", aside)
    else:
        path.unlink()
    return count > 0


def _count_back(content: mmap | bytes, end: int) -> int:
    """Return how many records there are before ``end``, 0 where they don't fit in."""
    count = 0
    while end > _SIZE.size:
        end -= _SIZE.size
        end -= _SIZE.unpack_from(content, end)[0]
        count += 1
    return count if end == _SIZE.size else 0


@contextmanager
def _content(path: Path) -> Iterator[mmap | bytes]:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""  # which mmap doesn't take
            return
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            yield content
