"""Pauses: times in which the workers that share a store send no requests to a host.

A pause is stored as a lease of the host. In place of the name of a worker, the holder of the lease
is the end of the pause, in seconds since the epoch, so that each worker can read it. After the
pause, a worker that wants to send the first request, the probe, claims the lease with its own name.
While it holds the lease, no other worker sends a probe.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

if TYPE_CHECKING:
    from scrapy_rep.stores.base import Store
    from scrapy_rep.utils.clock import Clock

logger: Final = logging.getLogger(__name__)

LEASE: Final = 10.0
"""Seconds for which a worker holds the lease for its probe."""


class Claim(NamedTuple):
    """The result of claiming the lease for the probe."""

    is_ours: bool
    """Whether this worker may send the probe."""
    left: float | None
    """Seconds that are left of a pause in the store; None if there is no pause."""


def lease_of(host: str) -> str:
    """Return the key of the lease of a host in the store."""
    return f"back-off:{host}"


class Pauses:
    """Begins and ends the pauses of hosts in the store, for one worker."""

    def __init__(self, store: Store, clock: Clock, longest: float) -> None:
        """``longest``: maximum seconds of a pause; longer ones in the store are shortened to it."""
        self._store = store
        self._clock = clock
        self._longest = longest
        self._name = uuid4().hex

    async def store(self, host: str, seconds: float) -> float | None:
        """Store a pause of ``host``, unless a longer one is stored or another worker has the lease.

        Return the seconds left of the pause that is stored then; None if there is none.
        """
        lease, end = lease_of(host), f"{self._clock.time() + seconds:.3f}"
        await self._store.release(lease, self._name)
        holder = (await self._store.claim(lease, end, seconds)).holder
        left = self._seconds_left(holder)
        if holder is not None and holder != end and left is not None and left < seconds:
            # The stored pause ends earlier, and is replaced. This worker may have begun it.
            await self._store.release(lease, holder)
            left = self._seconds_left((await self._store.claim(lease, end, seconds)).holder)
        return left

    async def claim(self, host: str) -> Claim:
        """Claim the lease for the probe of ``host``.

        If the store fails, the error is logged, and this worker may send the probe.
        """
        holder: str | None = None
        try:
            holder = (await self._store.claim(lease_of(host), self._name, LEASE)).holder
        except Exception:
            logger.exception("Error while checking whether requests to %s may be sent again", host)
        return Claim(holder in {None, self._name}, self._seconds_left(holder))

    async def release(self, host: str) -> None:
        """Release the lease of this worker, because the pause of ``host`` is over."""
        await self._store.release(lease_of(host), self._name)

    async def end_of(self, host: str) -> float | None:
        """Return the end of the pause of ``host``, in seconds since the epoch.

        None if there is no pause now.
        """
        left = self._seconds_left((await self._store.get(lease_of(host))).holder)
        return None if left is None or left <= 0 else self._clock.time() + left

    def _seconds_left(self, holder: str | None) -> float | None:
        """Return the seconds left of a pause; None if ``holder`` is a worker, or None."""
        try:
            left = min(float(holder or "") - self._clock.time(), self._longest)
        except ValueError:
            return None
        return None if math.isnan(left) else left
