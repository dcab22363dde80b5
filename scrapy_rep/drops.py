"""Log lines, stats and a summary of dropped requests.

In a dry run no request is dropped. The log and the stats show which requests would be dropped.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Hashable
from time import time
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.project import inside_project

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.ticket import Source
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.usage import describe_decision, store_judgement
from scrapy_rep.exceptions import message_prefix
from scrapy_rep.protocol.usage import Judgement
from scrapy_rep.protocol.verdict import Outage, Reason, Verdict
from scrapy_rep.settings import INTERACTIVE, Options
from scrapy_rep.signals import META_KEY, Announcer, as_meta, robotstxt_forbidden
from scrapy_rep.utils.concurrency import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import get_part
from scrapy_rep.utils.text import counted, describe_duration, printable_request, without_credentials

_LINKS_IGNORED: Final = "Links ignored (nofollow in robots meta tag or X-Robots-Tag): %d"
_SUMMARIES: Final = {
    "Items of pages with noindex: %d": stats.TAGS_NOINDEX,
    "Pages of which usage preferences disallow a declared use: %d": stats.USAGE_DISALLOWED,
    "Items dropped because of usage preferences: %d": stats.USAGE_ITEMS_DROPPED,
    "Requests sent regardless of robots.txt (dont_obey_robotstxt): %d": stats.EXEMPT,
}
"""Lines at the end of a crawl, and the stats that they show."""
_PAGES: Final = "response_received_count"
"""A stat of Scrapy: responses but those of robots.txt."""
_BY_ROBOTSTXT: Final = (Reason.RULE, Reason.USAGE)
_MAX_SHOWN: Final = 10
"""Maximum number of rows in a summary."""
_MAX_KEYS: Final = 10_000
"""Maximum number of keys that are counted separately."""


class Tally:
    """Counts requests by a key, for a table of the most frequent keys; ``len()`` counts keys."""

    def __init__(self) -> None:
        self.total: int = 0
        self._counts: Counter[Hashable] = Counter()
        self._texts: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, key: Hashable, text: Callable[[], str]) -> bool:
        """Count a request; return whether it is the first one with its key.

        ``text`` returns the text of a new key. Above _MAX_KEYS keys, a request with a new key only
        counts in the total: then return False.
        """
        self.total += 1
        is_new = key not in self._texts
        if is_new and len(self._texts) >= _MAX_KEYS:
            return False
        if is_new:
            self._texts[key] = text()
        self._counts[key] += 1
        return is_new

    def table(self) -> str:
        """Return lines, an LF before each: the most frequent keys and their counts, and others."""
        rows = [(count, self._texts[key]) for key, count in self._counts.most_common(_MAX_SHOWN)]
        others = self.total - sum(count for count, _ in rows)
        if others:
            rows.append((others, "others"))
        return "".join(f"\n{count:>8}  {text}" for count, text in rows)


class Causes(Tally):
    """Counts requests by the cause of their verdict: a rule, or a state such as unreachable."""

    def add_verdict(self, verdict: Verdict, judgement: Judgement | None) -> bool:
        """Count a request; return whether it is the first one with its cause."""
        detail = verdict.line if judgement is None else describe_decision(verdict, judgement)
        cause = verdict.robotstxt_url, verdict.reason, detail
        return self.add(cause, lambda: describe_decision(verdict, judgement))


class Drops:
    """Logs and counts requests that its callers drop, sends their signal, and logs a summary."""

    def __init__(self, crawler: Crawler, announcer: Announcer) -> None:
        options = Options.of(crawler)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._dry_run = options.dry_run
        self._has_hint = crawler.settings.getbool(INTERACTIVE) and not options.dry_run
        self.announcer = announcer
        self.causes: Causes = Causes()
        """The causes of drops; in a dry run, of the requests that would be dropped."""
        self._starts = Causes()
        self._first_start = ""

    @classmethod
    def of(cls, crawler: Crawler) -> Drops | None:
        """Return the instance of a crawl; None if it doesn't obey robots.txt."""
        return get_part(crawler, cls)

    def report(
        self,
        request: Request,
        verdict: Verdict,
        page: str | None = None,
        judgement: Judgement | None = None,
    ) -> None:
        """Log and count ``request``, which is dropped because of ``verdict``, and send its signal.

        The verdict is written to its meta, but in a dry run. Links, and the first drop of each
        other cause, are logged at INFO, other drops at DEBUG. ``page`` is the URL of the page if
        nofollow is the reason, ``judgement`` is that about usage preferences if they are.
        """
        for name in self._counts(verdict.reason):
            stats.count(self._crawler, name)
        # Links have a summary of their own, but in a dry run.
        is_link = page is not None and not self._dry_run
        is_shown = is_link or self.causes.add_verdict(verdict, judgement)
        if not self._dry_run:
            request.meta[META_KEY] = as_meta(verdict)
            if request.meta.get("is_start_request") and verdict.reason in _BY_ROBOTSTXT:
                self._starts.add_verdict(verdict, judgement)
                self._first_start = self._first_start or request.url
            if judgement is not None:
                store_judgement(request, judgement)
        level = logging.INFO if is_shown else logging.DEBUG
        if self._has_hint or self._logger.isEnabledFor(level):
            message, *values = self._line(request, verdict, page, judgement)
            self._logger.log(level, message, *values)
            if self._has_hint:  # not logged, so that --nolog doesn't hide it
                what = "robots.txt" if page is None else "nofollow"
                setting = "ROBOTSTXT_OBEY" if page is None else "REP_META_TAGS"
                line = f"{message % tuple(values)}. To ignore {what}: -s {setting}=False\n"
                sys.stderr.write(line)
        self.announcer.send(
            robotstxt_forbidden, request=request, verdict=verdict, dropped=not self._dry_run
        )

    def _counts(self, reason: Reason) -> tuple[str, ...]:
        """Return the stats that count a drop. No site has forbidden what is unreachable."""
        if self._dry_run:
            return stats.DRY_RUN_FORBIDDEN, stats.DRY_RUN_REASON_COUNT.format(reason=reason.value)
        if reason is Reason.UNREACHABLE:
            return (stats.UNREACHABLE_DROPPED,)
        return stats.FORBIDDEN, stats.FORBIDDEN_REASON_COUNT.format(reason=reason.value)

    def log_summary(self) -> None:
        """Log the number of requests dropped with the main causes, and of what else was obeyed."""
        # A callback may copy the meta of a start request, but then a page was received.
        if (starts := self._starts.total) and not stats.value(self._crawler, _PAGES):
            stats.count(self._crawler, stats.FORBIDDEN_START_COUNT, starts)
            spider: Any = self._crawler.spider
            self._logger.warning(
                "No page was fetched, because robots.txt disallows the start requests: %d. For the "
                "rules run: scrapy robots explain %a%s%s",
                starts,
                without_credentials(self._first_start),
                f" --spider {spider.name}" if inside_project() else "",
                self._starts.table(),
            )
        links = stats.value(self._crawler, stats.TAGS_NOFOLLOW)
        if links and not self._dry_run:
            self._logger.info(_LINKS_IGNORED, links)
        for message, stat in _SUMMARIES.items():
            if number := stats.value(self._crawler, stat):
                self._logger.info(message, number)
        if (total := self.causes.total) and not self._dry_run:
            rows = self.causes.table()
            self._logger.info("Requests dropped because of robots.txt: %d%s", total, rows)

    def _line(
        self, request: Request, verdict: Verdict, page: str | None, judgement: Judgement | None
    ) -> tuple[str, ...]:
        shown = printable_request(request)
        why = describe_decision(verdict, judgement)
        if page is not None:
            url = ascii(without_credentials(page))[1:-1]
            why = f"nofollow in robots meta tag or X-Robots-Tag of {url}"
        if self._dry_run:
            return "Dry run, would drop %s: %s", shown, why
        if page is not None:
            return "Ignoring link (%s): %s", why, shown
        if judgement is not None:
            return "Forbidden by %s: %s", why, shown
        return f"{message_prefix(verdict)}: %s: %s", shown, why


class DryRun:
    """Logs and counts which requests would be dropped, or would wait, without the dry run."""

    def __init__(self, crawler: Crawler, drops: Drops, admission: Admission, clock: Clock) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._drops = drops
        self._admission = admission
        self._monotonic = clock.monotonic
        self._began = self._monotonic()
        self._deferred = Causes()
        self._slow_hosts: dict[str, tuple[int, float]] = {}
        """Number of allowed requests, and the delay in seconds, by host with a delay."""

    def report(self, request: Request, decision: Decision, source: Source) -> None:
        if decision.verdict is None:
            return
        verdict, judgement = decision.verdict.with_origin(decision.origin), decision.judgement
        if verdict.allowed:
            self._count_delay(decision)
        elif verdict.outage is not None and self._would_wait(decision, verdict.outage, source):
            # Not logged as dropped: without the dry run, the site might be reachable again in time.
            stats.count(self._crawler, stats.DRY_RUN_DEFERRED)
            is_shown = self._deferred.add_verdict(verdict, judgement)
            level = logging.INFO if is_shown else logging.DEBUG
            why = describe_decision(verdict, judgement)
            self._logger.log(level, "Dry run, would defer %s: %s", printable_request(request), why)
        else:
            self._drops.report(request, verdict, judgement=judgement)

    def _would_wait(self, decision: Decision, outage: Outage, source: Source) -> bool:
        """Return whether it would be deferred, until REP_DEFER_TIMEOUT after the outage began."""
        deferral = self._admission.deferral
        is_in_time = time() - outage.since < deferral.timeout
        return is_in_time and deferral.would_defer(source, decision.entry)

    def _count_delay(self, decision: Decision) -> None:
        seconds = self._admission.hosts.delays.kept(decision)
        if seconds and decision.origin is not None:
            host = decision.origin.host
            requests, _ = self._slow_hosts.get(host, (0, 0.0))
            self._slow_hosts[host] = requests + 1, seconds

    def log_summary(self) -> None:
        """Log what would be different without the dry run; count sites with delays, and seconds."""
        took = self._monotonic() - self._began
        hosts = self._slow_hosts.values()
        least = max((took, *((requests - 1) * delay for requests, delay in hosts)))
        stats.count(self._crawler, stats.DRY_RUN_HOSTS_WITH_DELAY, len(hosts))
        stats.count(self._crawler, stats.DRY_RUN_SECONDS, round(least))
        delays = "no site has a delay"
        if hosts:
            delays = (
                f"with the delays of {counted(len(hosts), 'site')} this crawl takes at least "
                f"{describe_duration(least)} ({describe_duration(took)} without)"
            )
        self._logger.info(
            "Dry run: %d would have been dropped, %d deferred; %s%s",
            self._drops.causes.total,
            self._deferred.total,
            delays,
            self._drops.causes.table(),
        )
