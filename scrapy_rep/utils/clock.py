"""The clock and the timers of a crawl. Tests replace them."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, time
from typing import Any, Protocol

from scrapy.utils.asyncio import call_later


class Timer(Protocol):
    """A scheduled call of a function."""

    def cancel(self) -> None:
        """Cancel the call."""


@dataclass(frozen=True)
class Clock:
    """The functions with which the parts of a crawl read the time and set timers."""

    time: Callable[[], float] = time
    """Returns the seconds since the epoch. They may decrease if the system clock is set back."""
    monotonic: Callable[[], float] = monotonic
    """Returns seconds that never decrease."""
    call_later: Callable[..., Any] = call_later
    """Called with seconds, a function and its arguments. Calls the function after these seconds;
    returns a ``Timer``."""
