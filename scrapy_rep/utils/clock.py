"""The time, and timers: one value that all of a crawl shares, made up in tests."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """Let it not come."""


@dataclass(frozen=True)
class Clock:
    """What time it is, in seconds, and calls that come later."""

    time: Callable[[], float] = time
    """Seconds since the epoch, as people set them."""
    monotonic: Callable[[], float] = monotonic
    """Seconds that only grow."""
    call_later: Callable[..., Any] = call_later
    """Calls a function in so many seconds; returns a Timer."""
