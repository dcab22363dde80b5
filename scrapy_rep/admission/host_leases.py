"""The leases of hosts in the store, by which all workers together keep delays and pauses.

A worker that sends a request to a host with a delay has the lease of the host until the delay is
over. In a pause, the lease belongs to nobody: it is held under the name ``PAUSE``. Each worker that
has seen the pause sends a probe of its own after it, with the lease: one after the other.

A crawl reads the pauses in the store before it sends anything, unless that takes longer than a
second, and then twice a second.
"""

from __future__ import annotations

from uuid import uuid4

from scrapy_rep.stores.base import PAUSE, Change, Claim, Lease, Release, host_of_key, key_of_host
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.log import LimitedLogger


class HostLeases:
    """The leases of one worker, and the pauses that all share.

    If the store fails, the worker acts as if it had the lease, and as if there were no pauses.
    """

    def __init__(self, store: WriteBehind, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = uuid4().hex
        self._logger = LimitedLogger(__name__)

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
        long as the lease if that is longer.
        """
        key = key_of_host(host)
        changes: list[Change] = []
        # A pause lasts at least as long as the lease that it replaces. That of this worker may be
        # for a probe that is under way, and is shortened first.
        if seconds := lease or pause:
            changes.append(Claim(key, self._name, seconds))
        elif lease is not None:
            changes.append(Release(key, self._name))
        if pause:
            changes.append(Claim(key, PAUSE, pause, force=True))
        self._store.put(*changes)

    async def pauses_left(self) -> dict[str, float]:
        """Return the seconds that are left of all pauses, by host."""
        pauses = (await self._store.pauses_left()).items()
        return {host: left for key, left in pauses if (host := host_of_key(key)) is not None}

    async def pause_until(self, host: str) -> float | None:
        """Return when the pause of ``host`` ends, in seconds since the epoch; None without one."""
        left = (await self._store.pauses_left()).get(key_of_host(host))
        return None if left is None else self._clock.time() + left
