"""Why an origin is unreachable, since when, and when its robots.txt is asked for again."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_DETAIL: Final = re.compile(r": | \(")


class Outage(NamedTuple):
    """Why a robots.txt is unreachable. Times are in seconds since the epoch."""

    cause: str
    """In words, printable: ``connection closed``, ``status 503``."""
    since: float
    """When the first of the fetches ended that have all failed since."""
    next_try: float
    """Before when it is not asked for again; infinite where it never is."""


def short_cause(cause: str) -> str:
    """Return a cause without what belongs to one site alone, as there is no end of sites."""
    return _DETAIL.split(cause, maxsplit=1)[0]
