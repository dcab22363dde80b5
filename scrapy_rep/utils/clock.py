"""The clock and timers of a crawl, which tests replace."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """A call that is scheduled."""

    def cancel(self) -> None:
        """Cancel the call."""


@dataclass(frozen=True)
class Clock:
    """The functions by which the parts of a crawl read the time, and set timers."""

    time: Callable[[], float] = time
    """Returns the seconds since the epoch; may be set back."""
    monotonic: Callable[[], float] = monotonic
    """Returns seconds that never decrease."""
    call_later: Callable[..., Any] = call_later
    """Takes seconds, a function and its arguments; returns a Timer."""
