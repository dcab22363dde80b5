"""The forecast of a crawl: the number of its URLs by decision, and its minimum duration."""

from __future__ import annotations

from collections import Counter
from heapq import nlargest
from typing import Any, Final

from scrapy_rep.decision.decider import Decision
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.verdict import Reason

_SLOWEST: Final = 10
"""Maximum number of hosts in the list of the slowest hosts."""
_UNKNOWN: Final = {Reason.UNREACHABLE, Reason.ERROR}


class _Pages:
    """The number of allowed pages of an origin, and the delay between them in seconds."""

    __slots__ = ("count", "delay")

    def __init__(self) -> None:
        self.count = 0
        self.delay = 0.0


class Forecast:
    """Counts URLs by decision. Its memory grows with the number of origins, not of URLs."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._origins: set[Origin] = set()
        self._slots: dict[str, dict[Origin, _Pages]] = {}

    def add(self, decision: Decision, slot: str, delay: float) -> None:
        """Count a page. Its download slot is ``slot``, with ``delay`` seconds between requests."""
        verdict, origin = decision.verdict, decision.origin
        if verdict is None or origin is None:
            return
        self._origins.add(origin)
        if decision.usage is not None and decision.usage.refused:
            self.counts["refused"] += 1
        if not verdict.allowed:
            if verdict.reason is not Reason.USAGE:
                self.counts["unreachable" if verdict.reason in _UNKNOWN else "disallowed"] += 1
            return
        self.counts["allowed"] += 1
        pages = self._slots.setdefault(slot, {}).setdefault(origin, _Pages())
        pages.count += 1
        pages.delay = delay

    def as_dict(self) -> dict[str, Any]:
        """Return the forecast as plain values."""
        hosts = [self._slot_row(origins) for origins in self._slots.values()]
        slowest = nlargest(_SLOWEST, hosts, key=lambda host: host["seconds"])
        return {
            **{name: self.counts[name] for name in ("allowed", "disallowed", "unreachable")},
            "refused": self.counts["refused"],
            "origins": len(self._origins),
            "seconds": max((host["seconds"] for host in slowest), default=0.0),
            "slowest": [host for host in slowest if host["seconds"]],
        }

    def _slot_row(self, origins: dict[Origin, _Pages]) -> dict[str, Any]:
        """Return the row of a download slot: the slowest of its origins, and sums over all."""
        urls = sum(pages.count for pages in origins.values())
        delay = max(pages.delay for pages in origins.values())
        seconds = sum(pages.count * pages.delay for pages in origins.values()) - delay
        name = max(origins, key=lambda origin: origins[origin].count * origins[origin].delay)
        return {"origin": str(name), "urls": urls, "delay": delay, "seconds": round(seconds, 3)}
