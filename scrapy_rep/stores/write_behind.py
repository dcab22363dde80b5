"""Keeps a store for the crawls of a process: reads, writes behind, and goes on without the store.

What is put is in memory until it is written, many records together and in a thread. If the store
fails or hangs, records stay in memory, up to a limit, until it can be written again, and a worker
acts as if it had all leases. After a failed call the store is not called for a second; the time
doubles with each further failure, up to 30 seconds. Reading and writing are guarded separately, as
a file on a full disk can be read, but not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, repeat
from typing import Final, NamedTuple, TypeVar
from uuid import uuid4

from twisted.internet.defer import CancelledError

from scrapy_rep.stores.base import (
    WORKER,
    Change,
    Claim,
    Found,
    Lease,
    Put,
    Release,
    Store,
    Stored,
    StoreError,
)
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.concurrency import Background, Clock, Promise, Timer, Worker, within
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted

T = TypeVar("T")

_BEHIND: Final = 0.1
"""Seconds after which what was put is written."""
_HERE: Final = 120.0
"""Seconds for which a worker counts as there after it has said so."""
_SAY: Final = 5.0
"""Seconds between two times that it says so, as the store may have been emptied."""
_SETTLED: Final = 1.0
"""Seconds after which a worker that has said that it is there knows of all that came with it."""
_SLOW: Final = 0.25
"""Seconds of a read after which the event loop doesn't read for _SLOW_FOR seconds."""
_SLOW_FOR: Final = 60.0
_PAUSE: Final = 1.0
"""Seconds without a call of the store after a failure; doubled with each further failure."""
_PAUSE_MAX: Final = 30.0
_GRACE: Final = 0.5
"""Seconds by which the time limit of a call is longer than the store's own time limit. So the store
raises its own error first, whose message is clearer."""
_CLOSING: Final = 5.0
"""Time limit in seconds for the last writes of a crawl, and again for closing the store."""
_MAX_UNWRITTEN: Final = 64 * 1024**2
"""Bytes of records that are kept in memory while they can't be written."""


class Known(NamedTuple):
    """What is known of some records."""

    records: Mapping[str, Stored]
    has_others: bool
    """Whether another worker may use the store now, so that a fetch needs the lease of its file."""
    is_complete: bool = True
    """Whether the store could be read; if not, there are only records that are not written."""


class _Breaker:
    """Forbids calls for a pause after a failed one, which doubles with each further failure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.pause = 0.0
        """Seconds of the last pause; 0 if the last call has not failed."""
        self.until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether no call may be made now."""
        return self._clock() < self.until

    def fail(self) -> None:
        self.pause = min(_PAUSE_MAX, self.pause * 2) or _PAUSE
        self.until = self._clock() + self.pause

    def succeed(self) -> None:
        self.pause = self.until = 0.0


@dataclass(eq=False, repr=False)
class WriteBehind:
    """Calls a store. Its errors are logged, and not raised."""

    store: Store
    name: object = "memory://"
    """Its name in messages."""
    timeout: float = 0.0
    """The store's own time limit for a call, in seconds."""
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.users: set[Callable[[], None]] = set()
        """Of each crawl of this process that uses the store, what tells it that another comes."""
        self._limit = self.timeout + _GRACE
        self._logger = LimitedLogger(__name__)
        self._background = Background()
        self._reader = Worker("robots.txt-reader")
        self._writer = Worker("robots.txt-writer")
        self._reading = _Breaker(self.clock.monotonic)
        self._writing = _Breaker(self.clock.monotonic)
        self._is_broken = False
        """Whether it was logged that the store can't be used."""
        self._slow_until = 0.0
        self._unwritten: BoundedCache[str, Put] = BoundedCache(max_bytes=_MAX_UNWRITTEN)
        self._changes: list[tuple[Sequence[Change], Promise[list[Lease | None]] | None]] = []
        """Changes that are made with the next write, each with what awaits it, if anything does."""
        self._is_writing = False
        self._timer: Timer | None = None
        self._me = f"{WORKER}{uuid4().hex}"
        self._say_at = 0.0
        """When this worker says next that it is there."""
        self._here_since: float | None = None
        self._here_until = 0.0

    # Records.

    def peek(self, keys: Sequence[str]) -> Known | None:
        """Return what ``read`` would; None if that takes a thread."""
        if self._reading.is_open:
            return self._known(keys, None)
        now = self.clock.monotonic()
        if now < self._slow_until:
            return None
        was_sure = self._is_sure()
        found = self.store.peek(keys)
        if found is None:
            return None
        self._succeed(self._reading)
        if self.clock.monotonic() - now > _SLOW:
            self._slow_until = now + _SLOW_FOR
        return self._known(keys, found, was_sure=was_sure)

    async def read(self, keys: Sequence[str]) -> Known:
        """Return what the store has, and what is not written yet."""
        if (known := self.peek(keys)) is not None:
            return known
        was_sure = self._is_sure()
        found = await self._call(self._reader, self._reading, lambda: self.store.read(keys))
        return self._known(keys, found, was_sure=was_sure)

    def _known(self, keys: Sequence[str], found: Found | None, *, was_sure: bool = True) -> Known:
        is_complete = found is not None
        records, workers = found or Found({})
        if len(self._unwritten):
            records = dict(records)
            for key in keys:
                if (put := self._unwritten.get(key)) is not None:
                    body = records[key].body if put.body is None and key in records else put.body
                    records[key] = Stored(put.state, body or b"")
        has_others = len(self.users) > 1 or (is_complete and (not was_sure or workers > 1))
        return Known(records, has_others, is_complete)

    def put(self, *changes: Change) -> None:
        """Make changes in the background, before those that are asked for later.

        Records are written a little later, and are at once what ``peek`` and ``read`` return.
        """
        if not self.store.is_shared:
            self.store.write(changes)
            return
        for change in changes:
            if not isinstance(change, Put):
                self._changes.append(([change], None))
                continue
            waiting = self._unwritten.get(change.key)
            if change.body is None and waiting is not None:
                change = change._replace(body=waiting.body)  # noqa: PLW2901 - merged
            nbytes = len(change.key) + len(change.state) + len(change.body or b"")
            self._unwritten.put(change.key, change, nbytes)
        if self._changes:
            self._start_writing()
        else:
            self._write_later()

    # Leases.

    async def change(self, *changes: Change) -> list[Lease | None]:
        """Do as ``Store.write``, now; if the store fails, return None for each change."""
        if not self.store.is_shared:
            return self.store.write(changes)
        done: Promise[list[Lease | None]] = Promise()
        self._changes.append((changes, done))
        self._start_writing()
        return await done

    async def claim(self, key: str, holder: str, seconds: float) -> Lease | None:
        """Claim a lease; return the lease afterwards, which another holder may have, or None."""
        return (await self.change(Claim(key, holder, seconds)))[0]

    async def pauses_left(self) -> Mapping[str, float]:
        """Return what the store has; nothing if it fails."""
        if not self.store.is_shared:
            return self.store.pauses_left()
        if self._changes:
            await self.change()  # after what was put before
        self._say_here()
        return await self._call(self._reader, self._reading, self.store.pauses_left) or {}

    async def close(self) -> None:
        """Write what is still in memory, within a few seconds, and close the store."""
        if not self.store.is_shared:
            self.store.close()
            return
        self._writing.until = 0.0  # the pause might last longer than the crawl
        if self._say_at:
            self._changes.append(([Release(self._me, self._me)], None))
        self._start_writing()
        with suppress(TimeoutError):
            await within(_CLOSING, self._background.finish())
        self._forget_here()
        if self.users:  # another crawl has come meanwhile
            return
        if lost := len(self._unwritten):
            line = "%s: %s of robots.txt could not be stored"
            self._logger.warning(line, self.name, counted(lost, "record"))
        try:
            await within(_CLOSING, self._reader.stop())
            await within(_CLOSING, self._writer.call(self.store.close))
            await within(_CLOSING, self._writer.stop())
        except Exception as error:  # noqa: BLE001 - an error must not disturb the end of the crawl
            self._warn(error)
        self._cancel_timer()
        self._unwritten.clear()

    def _is_sure(self) -> bool:
        """Return whether all workers know of this one, and it of them."""
        if not self.store.is_shared:
            return True
        self._say_here()
        since, now = self._here_since, self.clock.monotonic()
        return since is not None and since + _SETTLED <= now < self._here_until

    def _say_here(self) -> None:
        """Let other workers know that this one is there, also if it looks nothing up for long."""
        now = self.clock.monotonic()
        if now >= self._say_at:
            self._say_at = now + _SAY
            self._changes.append(([Claim(self._me, self._me, _HERE)], None))
            self._start_writing()

    def _forget_here(self) -> None:
        """Let this worker say again that it is there, as the store does not know it."""
        self._here_since, self._here_until, self._say_at = None, 0.0, 0.0

    def _write_later(self) -> None:
        if not self._is_writing and self._timer is None:
            wait = max(_BEHIND, self._writing.until - self.clock.monotonic())
            self._timer = self.clock.call_later(wait, self._start_writing)

    def _start_writing(self) -> None:
        self._cancel_timer()
        if not self._is_writing:
            self._is_writing = True
            self._background.start(self._write_all())

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    async def _write_all(self) -> None:
        """Write until nothing is left, or the store fails."""
        try:
            while self._changes or len(self._unwritten):
                if not await self._write_once() and not self._changes:
                    break
        finally:
            self._is_writing = False
        if len(self._unwritten):
            self._write_later()

    async def _write_once(self) -> bool:
        """Make the changes of now in one call of the store; return whether that succeeded."""
        waiting, self._changes = self._changes, []
        changes = [change for each, _ in waiting for change in each]
        puts = list(self._unwritten.values())  # they go first: a lease is released after its record
        began = self.clock.monotonic()
        write = partial(self.store.write, [*puts, *changes])
        written = await self._call(self._writer, self._writing, write)
        leases = repeat(None) if written is None else iter(written[len(puts) :])
        for each, promise in waiting:
            found = list(islice(leases, len(each)))
            if promise is not None:
                promise.set_result(found)
        if written is None:
            self._forget_here()
            return False
        for put in puts:
            if self._unwritten.get(put.key) is put:
                self._unwritten.discard(put.key)
        if any(change.key == self._me and isinstance(change, Claim) for change in changes):
            if not began < self._here_until:
                self._here_since = self.clock.monotonic()
            self._here_until = began + _HERE
        return True

    async def _call(self, thread: Worker, breaker: _Breaker, call: Callable[[], T]) -> T | None:
        """Return the result of a call; None if it fails (logged), or the last one just has."""
        if breaker.is_open:
            return None
        if breaker.pause:
            breaker.until = self.clock.monotonic() + self._limit  # others don't call meanwhile
        try:
            result: T = await within(self._limit, thread.call(call))
        except CancelledError:  # in Twisted an Exception, which the next clause would catch
            raise
        # Errors other than StoreError are caught, too: without a record, robots.txt is fetched once
        # more, which is better than a lookup that fails.
        except Exception as error:  # noqa: BLE001 - logged by _warn
            breaker.fail()
            self._warn(error)
            return None
        self._succeed(breaker)
        return result

    def _succeed(self, breaker: _Breaker) -> None:
        breaker.succeed()
        if self._is_broken and not (self._reading.pause or self._writing.pause):
            self._is_broken = False
            self._logger.info("%s can be used again", self.name)

    def _warn(self, error: Exception) -> None:
        """Log ``error`` at DEBUG level, and the first one of an outage as a warning."""
        self._logger.debug("%s: %s", self.name, error)
        if self._is_broken:
            return
        self._is_broken = True
        why = str(error) if isinstance(error, StoreError | TimeoutError) else repr(error)
        line = "%s can't be used, records of robots.txt are kept in memory: %s"
        self._logger.warning(line, self.name, why)
