"""The dry run: all requests are sent. The log has those that would otherwise be dropped or wait."""

from __future__ import annotations

import logging
from time import time

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.ticket import Source
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.usage import describe_decision
from scrapy_rep.drops import Causes, Drops
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted, describe_duration, printable_request


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
        """Log and count if ``request`` would be dropped or would wait."""
        origin, verdict, judgement = decision.origin, decision.verdict, decision.judgement
        if verdict is None:
            return
        if verdict.allowed:
            self._count_delay(decision)
        elif self._would_wait(decision, source):
            # Not logged as dropped: without the dry run, the site might be reachable again in time.
            stats.count(self._crawler, stats.DRY_RUN_DEFERRED)
            verdict = verdict.with_origin(origin)
            level = (
                logging.INFO if self._deferred.add_verdict(verdict, judgement) else logging.DEBUG
            )
            why = describe_decision(verdict, judgement)
            self._logger.log(level, "Dry run, would defer %s: %s", printable_request(request), why)
        else:
            self._drops.report(request, verdict.with_origin(origin), judgement=judgement)

    def _would_wait(self, decision: Decision, source: Source) -> bool:
        """Return whether it would be deferred, until REP_DEFER_TIMEOUT after the outage began."""
        outage = None if decision.verdict is None else decision.verdict.outage
        return (
            outage is not None
            and self._admission.deferral.would_defer(source, decision.entry)
            and time() - outage.since < self._admission.defer_timeout
        )

    def _count_delay(self, decision: Decision) -> None:
        """Count an allowed request of a host with a delay; a new delay is reported."""
        seconds = self._admission.delay(decision)
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
