"""``scrapy robots plan``: prints how many URLs may be fetched, and how long that takes at least."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.admission.delays import Delays
from scrapy_rep.commands.arguments import Subcommand, invalid_url_text, urls_of
from scrapy_rep.commands.crawl import CoroutineRunner, robots_of
from scrapy_rep.commands.output import Exit, Progress, describe_tokens, section
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.verdict import UNKNOWN_RULES, Reason
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import as_completed, sleep
from scrapy_rep.utils.download_slots import slot_name
from scrapy_rep.utils.text import counted, describe_duration, printable

_AT_A_TIME: Final = 500  # known URLs that are counted before the event loop goes on
_MAX_WAITING: Final = 5_000  # URLs that wait for their robots.txt at the same time
_MAX_WARNINGS: Final = 10
_HOUR: Final = 3_600
_ALWAYS: Final = ("urls", "allowed", "disallowed", "unreachable")
_REFUSED: Final = "use refused"


def _plan(urls: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    urls = urls_of("plan", urls, opts)
    plan = _Plan(urls)
    with suppress(CrawlClosingError):  # what is known is printed
        runner.run(plan.make)
    print("\n".join(plan.lines()))
    exceeded = [text for limit in opts.fail_if if (text := plan.describe_excess(*limit))]
    for text in exceeded:
        print(text, file=sys.stderr)
    if plan.left or not plan.decided:
        return Exit.UNKNOWN
    return Exit.NO if exceeded else Exit.OK


@dataclass(slots=True)
class _Slot:
    """The allowed pages of a download slot, and the longest delay between two of them."""

    name: str = ""
    pages: int = 0
    total: float = 0.0
    delay: float = -1.0
    delay_from: str = ""


class _Plan:
    """Counts URLs by the decisions on them. ``make`` is called once."""

    _crawler: Crawler
    _delays: Delays

    def __init__(self, urls: list[str]) -> None:
        self._all = urls
        self._tokens: tuple[str, ...] = ()
        self._counts = Counter(urls=len(urls))
        self._origins: set[Origin] = set()
        self._slots: dict[str, _Slot] = {}
        self._unreachable: Counter[tuple[Origin, str]] = Counter()
        self._progress = Progress(len(urls))
        self.decided = 0

    async def make(self, crawler: Crawler) -> None:
        robots = robots_of(crawler)
        self._crawler, self._delays = crawler, Delays(crawler, Options.of(crawler))
        self._tokens = ProductTokens.of(crawler).default()
        urls = iter(self._all)
        workers = (self._count_each(robots, urls) for _ in self._all[:_MAX_WAITING])
        async for _ in as_completed(workers):
            pass

    async def _count_each(self, robots: Robots, urls: Iterator[str]) -> None:
        """Count the next URL, and so on; as many coroutines do so as lookups may wait."""
        for url in urls:
            try:
                origin_of(url)  # raises an error with a better message than that of Request
                request = Request(url)
                _, decision = await robots.decide(request)
            except ValueError as error:
                self._warn(invalid_url_text(url, error))
            else:
                self._count(request, decision)
            if not self.decided % _AT_A_TIME:
                await sleep(0)

    def _count(self, request: Request, decision: Decision) -> None:
        """Count a page with a verdict. Pages that usage preferences refuse may be allowed, too."""
        verdict, origin = decision.verdict, decision.origin
        if verdict is None or origin is None:
            return
        self._origins.add(origin)
        self._counts[_REFUSED] += decision.judgement is not None and decision.judgement.refused
        if verdict.allowed:
            self._counts["allowed"] += 1
            self._add_to_slot(slot_name(self._crawler, request), decision)
        elif verdict.reason in UNKNOWN_RULES:
            self._counts["unreachable"] += 1
            cause = verdict.reason.value if verdict.outage is None else verdict.outage.cause
            self._unreachable[origin, cause] += 1
        elif verdict.reason is not Reason.USAGE:
            self._counts["disallowed"] += 1
        self.decided += 1
        self._progress.update(self.decided + self._counts["invalid"])

    def _add_to_slot(self, name: str, decision: Decision) -> None:
        settings = self._crawler.settings
        own = settings.getdict("DOWNLOAD_SLOTS").get(name, {})
        delay = float(own.get("delay", settings.getfloat("DOWNLOAD_DELAY")))
        delay_from = "DOWNLOAD_SLOTS" if "delay" in own else "DOWNLOAD_DELAY"
        seconds, asked = self._delays.delay_for(decision)
        if asked is not None and seconds > delay:
            is_limited = asked.seconds > seconds
            delay, delay_from = seconds, "REP_CRAWL_DELAY_MAX" if is_limited else "robots.txt"
        slot = self._slots.setdefault(name, _Slot(name))
        slot.pages += 1
        slot.total += delay
        if delay > slot.delay:
            slot.delay, slot.delay_from = delay, delay_from

    def _warn(self, text: str) -> None:
        self._counts["invalid"] += 1
        if (number := self._counts["invalid"]) <= _MAX_WARNINGS + 1:
            self._progress.clear()
            text = text if number <= _MAX_WARNINGS else "further lines like these are left out"
            print(text, file=sys.stderr)

    @property
    def left(self) -> int:
        return self._counts["urls"] - self._counts["invalid"] - self.decided

    def _slowest(self) -> tuple[float, _Slot]:
        """Return the least seconds of the slowest slot, without a last delay, and the slot."""
        slots = ((slot.total - slot.delay, slot) for slot in self._slots.values())
        return max(slots, key=itemgetter(0), default=(0.0, _Slot()))

    def describe_excess(self, name: str, limit: float) -> str | None:
        if name == "hours":
            hours = self._slowest()[0] / _HOUR
            return f"the crawl takes at least {hours:.3g} hours" if hours > limit else None
        share = 100 * self._counts[name] / max(1, self.decided)
        return f"{share:.3g} % of the URLs are {name}" if share > limit else None

    def lines(self) -> list[str]:
        self._progress.clear()
        seconds, slot = self._slowest()
        duration = f"{seconds / _HOUR:.1f} h" if seconds >= _HOUR else describe_duration(seconds)
        pages = f"{counted(slot.pages, 'page')}, up to {slot.delay:g} s apart ({slot.delay_from})"
        names = [*_ALWAYS, *(name for name in (_REFUSED, "invalid") if self._counts[name])]
        lines = [
            f"as {describe_tokens(self._tokens)}",
            *(f"{name:12}{self._counts[name]:>10,}" for name in names),
            f"{'origins':12}{len(self._origins):>10,}",
            f"at least    {duration:>10}{f'  {slot.name}: {pages}' if seconds else ''}",
        ]
        if self._unreachable:
            sites = self._unreachable.most_common()
            rows = [
                f"{counted(n, 'page'):>10}  {site}  {printable(why)}" for (site, why), n in sites
            ]
            lines += ["", *section("Unreachable", rows)]
        if self.left:
            lines += ["", f"The plan was ended before {counted(self.left, 'URL')} were known."]
        return lines


PLAN: Final = Subcommand(
    "plan",
    "URL...",
    "how many URLs may be fetched, and how long that takes at least",
    ("--agent", "--spider", "--urls-from", "--purpose", "--fail-if", "--fresh"),
    _plan,
)
