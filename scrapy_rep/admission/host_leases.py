"""The leases of hosts in the store, by which all workers together keep delays and pauses.

A worker that sends a request to a host with a delay has the lease of the host until the delay is
over. In a pause, the lease belongs to nobody: it is held under the name ``PAUSE``. A second lease
under this name tells from the first refusal of a host until its next other response that it has
refused. So a worker that first meets the host after its pause knows that it must send a probe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final
from uuid import uuid4

from scrapy_rep.stores.base import PAUSE, REFUSED, Lease, Store, host_of_key, key_of_host
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import Promise
from scrapy_rep.utils.log import LimitedLogger

Call = Callable[[], Awaitable[None]]

_REFUSED_FOR: Final = 600.0
"""Seconds after a pause in which a worker that first meets the host sends a probe, if no worker
has got a response that ends that time."""


class HostLeases:
    """The leases of hosts that one worker has, and the pauses that all workers share, in the store.

    If the store fails, the worker acts as if it had the lease, and as if there were no pauses.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = uuid4().hex
        self._logger = LimitedLogger(__name__)
        self.background: Background = Background()
        self._calls: dict[str, deque[Call]] = {}
        """Calls of the store to end something, which are made one after the other for each host."""
        self._claiming: dict[str, list[Promise[None]]] = {}
        """Claims of hosts that wait until these calls are made."""

    async def claim(self, host: str, seconds: float) -> Lease | None:
        """Claim the lease of ``host``; return None if this worker has it now, or the store fails.

        Else return that of another worker, or that of a pause, whose holder is PAUSE.
        It waits until what ``ended`` and ``answered`` note is stored. The lease lasts for
        ``seconds`` from when the store has given it. If the answer came so late that less than half
        of them are left, it is claimed once more.
        """
        while host in self._calls:  # the end of the last lease must not end this one
            ended: Promise[None] = Promise()
            self._claiming.setdefault(host, []).append(ended)
            await ended
        began = self._clock.monotonic()
        lease = await self._claim(host, seconds)
        took = self._clock.monotonic() - began
        if lease is None and took > seconds / 2:
            lease = await self._claim(host, seconds + took)
        return lease

    async def _claim(self, host: str, seconds: float) -> Lease | None:
        """Claim once. Return None if this worker has the lease, and after an error (logged)."""
        try:
            lease = (await self._store.claim(key_of_host(host), self._name, seconds)).lease
        except Exception:
            self._logger.exception("Error while claiming the lease of %s", host)
            return None
        return None if lease is None or lease.holder == self._name else lease

    def ended(self, host: str, lease: float | None, pause: float) -> None:
        """Let the lease of this worker end in ``lease`` seconds, None if it has none.

        If ``pause`` is above 0, a pause of as many seconds takes its place at once, or lasts as
        long as the lease if that is longer; the host is marked as refusing. Done in the background.
        """
        if lease is not None or pause:
            self._queue_call(host, partial(self._end_lease, host, lease, pause))

    async def _end_lease(self, host: str, lease: float | None, pause: float) -> None:
        """Do what ``ended`` says. Errors of the store are raised."""
        key = key_of_host(host)
        # A pause lasts at least as long as the lease that it replaces. That of this worker may be
        # for a probe that is under way, and is shortened first.
        if seconds := lease or pause:
            await self._store.claim(key, self._name, seconds)
        else:
            await self._store.release(key, self._name)
        if pause:
            await self._store.claim(key, PAUSE, pause, force=True)
            refused, seconds = key_of_host(host, REFUSED), pause + _REFUSED_FOR
            await self._store.claim(refused, PAUSE, seconds, force=True)

    def answered(self, host: str) -> None:
        """Note that ``host`` doesn't refuse requests any more. Done in the background."""
        self._queue_call(host, partial(self._store.release, key_of_host(host, REFUSED), PAUSE))

    def _queue_call(self, host: str, call: Call) -> None:
        calls = self._calls.setdefault(host, deque())
        calls.append(call)
        if len(calls) == 1:
            self.background.start(self._make_calls(host, calls))

    async def _make_calls(self, host: str, calls: deque[Call]) -> None:
        """Make all calls for a host, and log their errors; then let its claims go on."""
        while calls:
            try:
                await calls[0]()
            except Exception:
                self._logger.exception("Error while ending the lease of %s", host)
            del calls[0]
        del self._calls[host]
        for claim in self._claiming.pop(host, ()):
            claim.set_result(None)

    async def pauses_left(self) -> dict[str, float]:
        """Return the hosts that have refused, and the seconds left of the pause of each, or 0."""
        found: dict[str, float] = {}
        for key, left in (await self._store.pauses_left()).items():
            if (host := host_of_key(key)) is not None:
                found[host] = left
            elif (host := host_of_key(key, REFUSED)) is not None:
                found.setdefault(host, 0.0)
        return found

    async def pause_until(self, host: str) -> float | None:
        """Return when the pause of ``host`` ends, in seconds since the epoch; None without one."""
        lease = (await self._store.get(key_of_host(host))).lease
        if lease is None or lease.holder != PAUSE:
            return None
        return self._clock.time() + lease.left
