"""An outage: why an origin is unreachable, since when, and when it is tried again."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_DETAIL: Final = re.compile(r": | \(")


class Outage(NamedTuple):
    """Why a robots.txt is unreachable. Times are in seconds since the epoch."""

    cause: str
    """A printable text, such as ``connection closed`` or ``status 503``."""
    since: float
    """Time of the first failed fetch in a row."""
    next_try: float
    """Time of the next fetch; infinity if there is none."""


def short_cause(cause: str) -> str:
    """Return a cause without details of one site, to be counted over all sites."""
    return _DETAIL.split(cause, maxsplit=1)[0]
