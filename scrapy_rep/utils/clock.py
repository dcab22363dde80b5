"""Time and timers of a crawl, in one object that tests can replace."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


@dataclass(frozen=True)
class Clock:
    """The time in seconds, and scheduled calls."""

    time: Callable[[], float] = time
    """Seconds since the epoch; may be set back."""
    monotonic: Callable[[], float] = monotonic
    """Seconds that are never set back."""
    call_later: Callable[..., Any] = call_later
    """Calls a function after some seconds; returns a Timer."""
