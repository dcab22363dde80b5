"""The forecast of a crawl: the number of its URLs by decision, its minimum duration, and limits."""

import argparse
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from typing import Any, Final

from scrapy_rep.commands.arguments import seconds
from scrapy_rep.commands.output import coloured
from scrapy_rep.decision.decider import Decision
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.text import counted, describe_duration, printable

_SLOWEST: Final = 10
"""Maximum number of hosts in the list of the slowest hosts."""
_MAX_UNREACHABLE: Final = 10
"""Maximum number of unreachable origins that are printed as text."""
_HOUR: Final = 3_600
_SHARES: Final = ("disallowed", "unreachable")
_UNKNOWN: Final = {Reason.UNREACHABLE, Reason.ERROR}


@dataclass(slots=True)
class _Pages:
    """The allowed pages of an origin."""

    count: int = 0
    delay: float = 0.0
    """Seconds between two of them."""
    delay_from: str = ""


class Forecast:
    """Counts URLs by decision. Its memory grows with the number of origins, not of URLs.

    URLs that usage preferences refuse are counted as refused, also if they are allowed.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._origins: set[Origin] = set()
        self._slots: dict[str, dict[Origin, _Pages]] = {}
        self._unreachable: Counter[Origin] = Counter()
        self._outages: dict[Origin, Verdict] = {}

    def add(self, decision: Decision, slot: str, delay: float, delay_from: str) -> None:
        """Count a page, if it has a verdict; ``delay`` is the seconds between two of its origin."""
        verdict, origin = decision.verdict, decision.origin
        if verdict is None or origin is None:
            return
        self._origins.add(origin)
        if decision.judgement is not None and decision.judgement.refused:
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
        """Return the numbers of URLs, and the seconds of the slowest download slot."""
        names = ("allowed", "disallowed", "unreachable", "refused")
        seconds = max((self._seconds_of(origins) for origins in self._slots.values()), default=0.0)
        return {**{name: self.counts[name] for name in names}, "seconds": seconds}

    def hosts(self) -> dict[str, Any]:
        """Return the number of origins, the unreachable ones, and _SLOWEST slots with delays."""
        rows = [self._slot_row(origins) for origins in self._slots.values()]
        slowest = nlargest(_SLOWEST, rows, key=lambda row: row["seconds"])
        return {
            "origins": len(self._origins),
            "slowest": [row for row in slowest if row["seconds"]],
            "unreachable_origins": [
                self._outage_row(origin, urls) for origin, urls in self._unreachable.most_common()
            ],
        }

    def _outage_row(self, origin: Origin, urls: int) -> dict[str, Any]:
        values = self._outages[origin].as_dict()
        cause = values["cause"] or values["reason"]
        return {"origin": str(origin), "urls": urls, "cause": cause, "next_try": values["next_try"]}

    def _seconds_of(self, origins: dict[Origin, _Pages]) -> float:
        """Return the least duration of the pages of a download slot: no delay follows the last."""
        delay = max(pages.delay for pages in origins.values())
        return round(sum(pages.count * pages.delay for pages in origins.values()) - delay, 3)

    def _slot_row(self, origins: dict[Origin, _Pages]) -> dict[str, Any]:
        """Return the row of a slot: the origin with most seconds, the longest delay, and sums."""
        slowest = max(origins.values(), key=lambda pages: pages.delay)
        name = max(origins, key=lambda origin: origins[origin].count * origins[origin].delay)
        return {
            "origin": str(name),
            "urls": sum(pages.count for pages in origins.values()),
            "delay": slowest.delay,
            "delay_from": slowest.delay_from,
            "seconds": self._seconds_of(origins),
        }


def limit_of_argument(text: str) -> tuple[str, float]:
    """Return name and number in a value such as ``disallowed=10%``. Raises ArgumentTypeError."""
    name, _, value = text.partition("=")
    if (name == "hours") != value.endswith("%") and name in {"hours", *_SHARES}:
        with suppress(argparse.ArgumentTypeError):
            return name, seconds(value.removesuffix("%"))
    raise argparse.ArgumentTypeError(
        f"must be a maximum, such as disallowed=10%, unreachable=0% or hours=8, not {text!a}"
    )


def count_decided(result: dict[str, Any]) -> int:
    """Return the number of URLs that are valid and not pending."""
    return int(result["urls"] - result["invalid"] - result["pending"])


def describe_excess(result: dict[str, Any], name: str, limit: float) -> str | None:
    """Return a message if ``result`` exceeds ``limit``, in hours or percent of the decided."""
    if name == "hours":
        hours = result["seconds"] / _HOUR
        return f"the crawl takes at least {hours:.3g} hours" if hours > limit else None
    share = 100 * result[name] / max(1, count_decided(result))
    return f"{share:.3g} % of the URLs are {name}" if share > limit else None


def plan_lines(result: dict[str, Any]) -> list[str]:
    """Return the plan ``result`` as lines of text."""
    names = ["urls", "allowed", "disallowed", "unreachable", "refused", "invalid", "pending"]
    always = ("urls", "allowed", "disallowed", "unreachable")
    lines = [f"{name:12}{result[name]:>10,}" for name in names if result[name] or name in always]
    lines += [
        f"{'origins':12}{result['origins']:>10,}",
        f"at least    {_describe_seconds(result['seconds']):>10}",
    ]
    if result["slowest"]:
        lines += ["", coloured("heading", "The slowest hosts")]
        for host in result["slowest"]:
            pages = f"{counted(host['urls'], 'page')}, {host['delay']:g} s between two"
            where = f"{host['origin']}  {pages} ({host['delay_from']})"
            lines.append(f"  {_describe_seconds(host['seconds']):>10}  {where}")
    outages = result["unreachable_origins"]
    if outages:
        lines += ["", coloured("heading", "Unreachable")]
        for each in outages[:_MAX_UNREACHABLE]:
            pages = counted(each["urls"], "page")
            lines.append(f"  {pages:>10}  {each['origin']}  {printable(each['cause'])}")
        if len(outages) > _MAX_UNREACHABLE:
            lines.append(f"  and {len(outages) - _MAX_UNREACHABLE:,} more (--json has all)")
    if other := result.get("with_delay"):
        least = _describe_seconds(other["seconds"])
        lines += ["", f"with DOWNLOAD_DELAY = {other['delay']:g}: at least {least}"]
    if other := result.get("with_agent"):
        counts = ", ".join(f"{name} {other[name]:,}" for name in always[1:])
        name, least = printable(other["agent"]), _describe_seconds(other["seconds"])
        lines += ["", f"as {name}: {counts}, at least {least}"]
    if not result["complete"]:
        lines += ["", "The plan was ended before all URLs were known."]
    return lines


def _describe_seconds(seconds: float) -> str:
    return f"{seconds / _HOUR:.1f} h" if seconds >= _HOUR else describe_duration(seconds)
