"""The forecast of a crawl: the number of its URLs by decision, and its minimum duration."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from typing import Any, Final

from scrapy_rep.decision.decider import Decision
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.verdict import Reason, Verdict

_SLOWEST: Final = 10
"""Maximum number of hosts in the list of the slowest hosts."""
_UNKNOWN: Final = {Reason.UNREACHABLE, Reason.ERROR}


@dataclass(slots=True)
class _Pages:
    """The allowed pages of an origin."""

    count: int = 0
    delay: float = 0.0
    """Seconds between two of them."""
    delay_from: str = ""
    """What sets the delay."""


class Forecast:
    """Counts URLs by decision. Its memory grows with the number of origins, not of URLs."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._origins: set[Origin] = set()
        self._slots: dict[str, dict[Origin, _Pages]] = {}
        self._unreachable: Counter[Origin] = Counter()
        self._outages: dict[Origin, Verdict] = {}

    def add(self, decision: Decision, slot: str, delay: float, delay_from: str = "") -> None:
        """Count a page. Its download slot is ``slot``, with ``delay`` seconds between requests."""
        verdict, origin = decision.verdict, decision.origin
        if verdict is None or origin is None:
            return
        self._origins.add(origin)
        if decision.usage is not None and decision.usage.refused:
            self.counts["refused"] += 1
        if verdict.allowed:
            self.counts["allowed"] += 1
            pages = self._slots.setdefault(slot, {}).setdefault(origin, _Pages())
            pages.count += 1
            pages.delay, pages.delay_from = delay, delay_from
        elif verdict.reason in _UNKNOWN:
            self.counts["unreachable"] += 1
            self._unreachable[origin] += 1
            self._outages[origin] = verdict
        elif verdict.reason is not Reason.USAGE:
            self.counts["disallowed"] += 1

    def totals(self) -> dict[str, Any]:
        """Return the numbers of URLs and the seconds as plain values."""
        names = ("allowed", "disallowed", "unreachable", "refused")
        seconds = max((self._seconds_of(origins) for origins in self._slots.values()), default=0.0)
        return {**{name: self.counts[name] for name in names}, "seconds": seconds}

    def hosts(self) -> dict[str, Any]:
        """Return the number of origins, the slowest hosts, and the unreachable origins."""
        rows = [self._slot_row(origins) for origins in self._slots.values()]
        slowest = nlargest(_SLOWEST, rows, key=lambda row: row["seconds"])
        return {
            "origins": len(self._origins),
            "slowest": [row for row in slowest if row["seconds"]],
            "unreachable_origins": [
                {"origin": str(origin), "urls": urls, **_outage_row(self._outages[origin])}
                for origin, urls in self._unreachable.most_common()
            ],
        }

    def _seconds_of(self, origins: dict[Origin, _Pages]) -> float:
        delay = max(pages.delay for pages in origins.values())
        return round(sum(pages.count * pages.delay for pages in origins.values()) - delay, 3)

    def _slot_row(self, origins: dict[Origin, _Pages]) -> dict[str, Any]:
        """Return the row of a download slot: the slowest of its origins, and sums over all."""
        slowest = max(origins.values(), key=lambda pages: pages.delay)
        name = max(origins, key=lambda origin: origins[origin].count * origins[origin].delay)
        return {
            "origin": str(name),
            "urls": sum(pages.count for pages in origins.values()),
            "delay": slowest.delay,
            "delay_from": slowest.delay_from,
            "seconds": self._seconds_of(origins),
        }


def _outage_row(verdict: Verdict) -> dict[str, Any]:
    values = verdict.as_dict()
    return {"cause": values["cause"] or values["reason"], "next_try": values["next_try"]}
