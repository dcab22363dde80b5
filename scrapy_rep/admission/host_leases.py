"""The leases of hosts in the store, by which all workers together keep delays and pauses.

A worker that sends a request to a host with a delay has the lease of the host until the delay is
over. In a pause, the lease belongs to nobody: it is held under the name ``PAUSE``. A second lease
under this name tells from the first refusal of a host until its next other response that it has
refused. So a worker that first meets the host after its pause knows that it must send a probe.

A crawl reads the pauses in the store before it sends anything, and then twice a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from uuid import uuid4

from scrapy_rep.stores.base import (
    PAUSE,
    REFUSED,
    Change,
    Claim,
    Lease,
    Release,
    host_of_key,
    key_of_host,
)
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import Background
from scrapy_rep.utils.log import LimitedLogger

_REFUSED_FOR: Final = 600.0
"""Seconds after a pause in which a worker that first meets the host sends a probe, if no worker
has got a response that ends that time."""


class HostLeases:
    """The leases of one worker, and the pauses that all share.

    If the store fails, the worker acts as if it had the lease, and as if there were no pauses.
    """

    def __init__(self, store: WriteBehind, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = uuid4().hex
        self._logger = LimitedLogger(__name__)
        self.background: Background = Background()
        """Tasks that use the leases, which a crawl waits for before it ends."""
        self.adopt_pauses: Callable[[Mapping[str, float], float], None] | None = None
        """Called with ``pauses_left``, and when their reading began; None: they are not read."""

    async def claim(self, host: str, seconds: float) -> Lease | None:
        """Claim the lease of ``host``; return None if this worker has it now, or the store fails.

        Else return that of another worker, or that of a pause, whose holder is PAUSE. The lease
        lasts for ``seconds`` from when the store has given it.
        """
        try:
            lease = await self._store.claim(key_of_host(host), self._name, seconds)
        except Exception:
            self._logger.exception("Error while claiming the lease of %s", host)
            return None
        return None if lease is None or lease.holder == self._name else lease

    def ended(self, host: str, lease: float | None, pause: float) -> None:
        """Let the lease of this worker end in ``lease`` seconds, None if it has none.

        If ``pause`` is above 0, a pause of as many seconds takes its place at once, or lasts as
        long as the lease if that is longer; the host is marked as refusing.
        """
        key, refused = key_of_host(host), key_of_host(host, REFUSED)
        changes: list[Change] = []
        # A pause lasts at least as long as the lease that it replaces. That of this worker may be
        # for a probe that is under way, and is shortened first.
        if seconds := lease or pause:
            changes.append(Claim(key, self._name, seconds))
        elif lease is not None:
            changes.append(Release(key, self._name))
        if pause:
            changes.append(Claim(key, PAUSE, pause, force=True))
            changes.append(Claim(refused, PAUSE, pause + _REFUSED_FOR, force=True))
        self._store.put(*changes)

    def answered(self, host: str) -> None:
        """Note that ``host`` doesn't refuse requests any more."""
        self._store.put(Release(key_of_host(host, REFUSED), PAUSE))

    async def read_pauses(self) -> None:
        """Read the pauses in the store, and adopt them."""
        if self.adopt_pauses is not None:
            began = self._clock.monotonic()
            self.adopt_pauses(await self.pauses_left(), began)

    async def pauses_left(self) -> dict[str, float]:
        """Return the seconds left of the pause of each host that has refused; 0 if it is over."""
        found: dict[str, float] = {}
        for key, left in (await self._store.pauses_left()).items():
            if (host := host_of_key(key)) is not None:
                found[host] = left
            elif (host := host_of_key(key, REFUSED)) is not None:
                found.setdefault(host, 0.0)
        return found

    async def pause_until(self, host: str) -> float | None:
        """Return when the pause of ``host`` ends, in seconds since the epoch; None without one."""
        left = (await self._store.pauses_left()).get(key_of_host(host))
        return None if left is None else self._clock.time() + left
