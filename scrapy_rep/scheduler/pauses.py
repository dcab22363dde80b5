"""Pauses: until when the workers of a fleet leave a host alone, as leases in the store.

The lease of a host is held until its pause is over, by that time in seconds since the epoch. Then
the worker that sends the first request holds it, by its name, so that no other one does so.
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
"""Seconds in which no other worker sends a request."""


class Claim(NamedTuple):
    """What a worker learns that asks whether it may send the first request."""

    is_ours: bool
    """Whether this worker may."""
    left: float | None
    """Seconds for which another worker leaves the host alone; None if none does."""


def lease_of(host: str) -> str:
    """Return the name of the lease of a host."""
    return f"back-off:{host}"


class Pauses:
    """The pauses of a fleet, for one worker."""

    def __init__(self, store: Store, clock: Clock, longest: float) -> None:
        """``longest``: seconds that a pause lasts at most, whatever the store says."""
        self._store = store
        self._clock = clock
        self._longest = longest
        self._name = uuid4().hex

    async def begin(self, host: str, seconds: float) -> float | None:
        """Tell the fleet of a pause; return the seconds of another worker's, None without one."""
        lease, end = lease_of(host), f"{self._clock.time() + seconds:.3f}"
        await self._store.release(lease, self._name)
        holder = (await self._store.claim(lease, end, seconds)).holder
        left = self._seconds_left(holder)
        if holder is not None and holder != end and left is not None and left < seconds:
            # The lease of a pause that ends earlier, which may be one of this worker.
            await self._store.release(lease, holder)
            left = self._seconds_left((await self._store.claim(lease, end, seconds)).holder)
        return left

    async def claim(self, host: str) -> Claim:
        """Ask whether this worker may send the first request. Where the store fails, it may."""
        holder: str | None = None
        try:
            holder = (await self._store.claim(lease_of(host), self._name, LEASE)).holder
        except Exception:
            logger.exception("Error while asking whether %s may be asked again", host)
        return Claim(holder in {None, self._name}, self._seconds_left(holder))

    async def end(self, host: str) -> None:
        """Tell the fleet that the host has answered."""
        await self._store.release(lease_of(host), self._name)

    async def until(self, host: str) -> float | None:
        """Return until when the fleet leaves a host alone, in seconds since the epoch; or None."""
        left = self._seconds_left((await self._store.get(lease_of(host))).holder)
        return None if left is None or left <= 0 else self._clock.time() + left

    def _seconds_left(self, holder: str | None) -> float | None:
        """Return the seconds of a pause; None if a worker holds the lease, or nobody."""
        try:
            left = min(float(holder or "") - self._clock.time(), self._longest)
        except ValueError:
            return None
        return None if math.isnan(left) else left
