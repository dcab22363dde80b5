"""Why requests wait in the scheduler, and until when."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class HoldReason(Enum):
    """A reason why requests wait in the scheduler.

    Its values are a text for users, the name of the module that decides, and the end of the wait.
    The docs have a table of all reasons.
    """

    LOOKUP = "robots.txt is being looked up", "lookups", "the lookup has ended"
    UNREACHABLE = (
        "robots.txt is unreachable",
        "gate",
        "its next try; requests for which that is after REP_DEFER_TIMEOUT are dropped at once",
    )
    BACK_OFF = "the site answered 429 or 503", "back_off", "the pause is over"
    TURN = "the site has a delay", "turns", "the turn of this worker"
    SLOT = (
        "the download slot is busy",
        "delays",
        "the delay of the slot is over, or a download has ended",
    )
    UNREADABLE = "the requests can't be read from JOBDIR", "queue", "the next try to read them"

    def __init__(self, text: str, module: str, end: str) -> None:
        self.text = text
        self.module = module
        self.end = end


class Hold(NamedTuple):
    """Why requests may not leave the scheduler yet, and until when."""

    reason: HoldReason
    until: float
    """When the wait ends, in seconds of the monotonic clock; infinity if that is not known: then it
    ends when the gate calls the queue, or when a download has ended and the engine pops again."""
