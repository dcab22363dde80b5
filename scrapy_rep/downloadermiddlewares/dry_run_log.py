"""The dry run: all requests are sent. The log has those that would otherwise be dropped or wait.

The log also has the requests that Scrapy's built-in middleware for robots.txt, called the built-in
here, would handle in another way.
"""

from __future__ import annotations

import logging
from time import time
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.delays import DELAY
from scrapy_rep.admission.ticket import Source
from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.entry import Entry
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.usage import describe_decision, store_judgement
from scrapy_rep.drops import Causes, Drops
from scrapy_rep.fetch.decoding import DecodingError, decode
from scrapy_rep.overrides import Override
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.robotparser import RobotParser
from scrapy_rep.signals import robotstxt_differs
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import counted, describe_duration, printable_request

_MAX_PARSERS: Final = 1_000
_MAX_BYTES: Final = 64 * 1024 * 1024


class BuiltIn:
    """Decides as Scrapy's built-in middleware would, with its parser and the body that was fetched.

    The built-in parses the bodies of error responses, too, as far as they are in memory. A record
    from a store doesn't have them: then, and if there was no response, all requests are allowed.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        parser = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        # The add-on sets ROBOTSTXT_PARSER; without the add-on, the built-in would use the default.
        ours = isinstance(parser, type) and issubclass(parser, RobotParser)
        self._parser: Any = ProtegoRobotParser if ours else parser
        self._parsers: BoundedCache[Evidence, Any] = BoundedCache(
            max_entries=_MAX_PARSERS, max_bytes=_MAX_BYTES
        )
        self._bodies: BoundedCache[Evidence, bytes] = BoundedCache(
            max_entries=_MAX_PARSERS, max_bytes=_MAX_BYTES
        )

    def store_error_body(self, evidence: Evidence, response: Response) -> None:
        """Keep the body of an error response with this ``evidence``, if it can be decoded."""
        codings = b",".join(response.headers.getlist(b"Content-Encoding")).decode("latin-1")
        try:
            body = decode(response.body, codings.split(","), MAX_BODY_BYTES, complete=False)
        except DecodingError:
            return
        self._bodies.put(evidence, body, len(body))

    def allows(self, request: Request, record: Record | None) -> bool:
        """Return whether the built-in would send ``request``.

        It parses the body of the last response, whatever its status, and sends without a body.
        """
        if record is None:
            return True
        last = record.last
        body = last.body if isinstance(last, Available) else self._bodies.get(last.evidence)
        if body is None:
            return True
        parser = self._parsers.get(last.evidence)
        if parser is None:
            parser = build_from_crawler(self._parser, self._crawler, body)
            self._parsers.put(last.evidence, parser, 10 * len(body))
        settings = self._crawler.settings
        agent = settings["ROBOTSTXT_USER_AGENT"] or request.headers.get(
            b"User-Agent", settings["USER_AGENT"]
        )
        if isinstance(agent, list | tuple):
            agent = agent[0]  # the built-in accepts no list; the first token is the most specific
        return bool(parser.allowed(request.url, agent))


class DryRun:
    """Logs and counts which requests would be dropped, or would wait, without the dry run."""

    def __init__(
        self,
        crawler: Crawler,
        cache: Cache,
        drops: Drops,
        admission: Admission,
        builtin: BuiltIn,
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._cache = cache
        self._announcer = drops.announcer
        self._drops = drops
        self._admission = admission
        self._builtin = builtin
        self._monotonic = clock.monotonic
        self._began = self._monotonic()
        self._deferred = Causes()
        self._differing = Causes()
        self._slow_hosts: dict[str, tuple[int, float]] = {}
        """Number of allowed requests, and the delay in seconds, by host with a delay."""

    async def report(self, request: Request, decision: Decision, source: Source) -> None:
        """Log and count if ``request`` would be dropped or would wait without the dry run.

        Also log if the built-in would decide otherwise. An error is logged, and not raised, so that
        the request is sent.
        """
        try:
            await self._log_differences(request, decision, source)
        except Exception:
            self._logger.exception(
                "Error in a dry run, the request is sent: %s", printable_request(request)
            )
            stats.count(self._crawler, stats.ERROR_COUNT)

    async def _log_differences(self, request: Request, decision: Decision, source: Source) -> None:
        """Write the verdict to the meta, send the signals, and log and count as ``report`` says."""
        origin, verdict = decision.origin, decision.verdict
        if verdict is None:
            return
        decision.mark_entry_used()
        self._announcer.send_verdict(request, verdict, origin, decision)
        if decision.judgement is not None:
            store_judgement(request, decision.judgement)
        would_wait = self._would_wait(request, verdict, decision.entry, source)
        verdict = verdict.with_origin(origin)
        why = describe_decision(verdict, decision.judgement)
        if would_wait:
            # Not logged as dropped: without the dry run, the site might be reachable again in time.
            stats.count(self._crawler, stats.DRY_RUN_DEFERRED)
            level = self._add_to(self._deferred, verdict, decision)
            self._logger.log(level, "Dry run, would defer %s: %s", printable_request(request), why)
            return
        if verdict.allowed:
            self._count_delay(decision)
        else:
            self._drops.report(request, verdict, judgement=decision.judgement)
        allows = await self._builtin_allows(request, origin, decision.override)
        if allows is not None and allows != verdict.allowed:
            stats.count(self._crawler, stats.DRY_RUN_DIFFERS)
            self._logger.log(
                self._add_to(self._differing, verdict, decision),
                "Dry run, Scrapy's built-in would %s %s, scrapy-rep would %s it: %s",
                "send" if allows else "drop",
                printable_request(request),
                "send" if verdict.allowed else "drop",
                why,
            )
            self._announcer.send(
                robotstxt_differs, request=request, verdict=verdict, builtin_allows=allows
            )

    @staticmethod
    def _add_to(causes: Causes, verdict: Verdict, decision: Decision) -> int:
        """Count a request in ``causes``; return the level to log it: INFO for a new cause."""
        return logging.INFO if causes.add_verdict(verdict, decision.judgement) else logging.DEBUG

    def _count_delay(self, decision: Decision) -> None:
        """Count an allowed request of a host with a delay; a new delay is reported."""
        terms = self._admission.terms(decision) or {}
        seconds = terms.get(DELAY)
        if seconds is not None and decision.origin is not None:
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
        self._logger.info(
            "Dry run: %d would have been dropped, %d deferred; the built-in decides differently on "
            "%d; %s%s",
            self._drops.causes.total,
            self._deferred.total,
            self._differing.total,
            f"with the delays of {counted(len(hosts), 'site')} this crawl takes at least "
            f"{describe_duration(least)} ({describe_duration(took)} without)"
            if hosts
            else "no site has a delay",
            self._drops.causes.table(),
        )

    def _would_wait(
        self, request: Request, verdict: Verdict, entry: Entry | None, source: Source
    ) -> bool:
        """Return whether it would be deferred, until REP_DEFER_TIMEOUT after the outage began."""
        outage = None if verdict.allowed else verdict.outage
        return (
            outage is not None
            and self._admission.deferral.would_defer(source, request, entry)
            and time() - outage.since < self._admission.defer_timeout
        )

    async def _builtin_allows(
        self, request: Request, origin: Origin | None, override: Override | None
    ) -> bool | None:
        """Return whether the built-in would send ``request``; None if that can't be known."""
        if origin is None:
            return None
        record = await self._cache.record(origin)
        if record is None and override is not None:
            return None  # an override decides without the robots.txt that the built-in would fetch
        return self._builtin.allows(request, record)
