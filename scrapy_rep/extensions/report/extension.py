"""The extension that counts the signals of a crawl, and writes a report at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from platform import python_version
from time import time
from typing import Any, Final

from scrapy import Request, Spider
from scrapy import signals as scrapy_signals
from scrapy.crawler import Crawler

from scrapy_rep import signals, stats
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.decision.usage import UsageJudge, stored_judgement
from scrapy_rep.extensions.output_paths import claim, path_of_setting, release
from scrapy_rep.extensions.report.counts import Counts
from scrapy_rep.extensions.report.report_file import open_replacement, renderer_of
from scrapy_rep.extensions.report.row_types import DelayRow, OriginRow, OverrideRow
from scrapy_rep.extensions.robots_file import iso_time
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.overrides import Override
from scrapy_rep.protocol.crawl_delay import Delay
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import in_thread
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import short

logger: Final = LimitedLogger(__name__)

_FIGURES: Final = {
    "fetches": stats.REQUEST_COUNT,
    "responses": "response_received_count",
    "deferred": stats.DEFERRED,
    "would_defer": stats.DRY_RUN_DEFERRED,
    "hosts_with_delay": stats.DRY_RUN_HOSTS_WITH_DELAY,
    "seconds_with_delays": stats.DRY_RUN_SECONDS,
    "nofollow": stats.TAGS_NOFOLLOW,
    "noindex": stats.TAGS_NOINDEX,
    "too_many_tags": stats.TAGS_TOO_MANY,
    "subresources_forbidden": stats.SUBRESOURCE_FORBIDDEN,
    "subresources_unknown": stats.SUBRESOURCE_UNKNOWN,
    **{f"license_required_{n}": stats.LICENSE_REQUIRED.format(status=n) for n in (401, 402, 403)},
}
"""Names in the report, and the stats that they show."""


class RobotsReport:
    """Writes the report of a crawl to REP_REPORT. Errors are logged, and do not stop the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        options = Options.of(crawler)
        self._path = path_of_setting(crawler, "REP_REPORT", options.report)
        self._crawler = crawler
        self._options = options
        self._policy = options.policy
        self._counts = Counts()
        self._render = renderer_of(self._path)
        self._started = iso_time(time())
        for receiver, signal in (
            (self._robotstxt_verdict, signals.robotstxt_verdict),
            (self._robotstxt_forbidden, signals.robotstxt_forbidden),
            (self._robotstxt_fetched, signals.robotstxt_fetched),
            (self._robotstxt_loaded, signals.robotstxt_loaded),
            (self._robotstxt_changed, signals.robotstxt_changed),
            (self._robotstxt_overridden, signals.robotstxt_overridden),
            (self._robotstxt_differs, signals.robotstxt_differs),
            (self._robotstxt_crawl_delay, signals.robotstxt_crawl_delay),
            (self._robotstxt_back_off, signals.robotstxt_back_off),
            (self._robotstxt_refused, signals.robotstxt_refused),
            (self._robotstxt_usage, signals.robotstxt_usage),
            (self._request_reached_downloader, scrapy_signals.request_reached_downloader),
            (self._spider_opened, scrapy_signals.spider_opened),
        ):
            crawler.signals.connect(receiver, signal)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsReport:
        """Return the extension.

        Raises NotConfigured if REP_REPORT is not set, or ROBOTSTXT_OBEY is false, and SettingsError
        if REP_REPORT is not valid, or can't be written.
        """
        return cls(crawler)

    def _spider_opened(self, spider: Spider) -> None:
        wanted, self._path = self._path, claim(self._path)
        if self._path != wanted:
            logger.warning(
                "Another crawl of this process writes its report to %s, this one writes to %s: "
                "%%(name)s or another placeholder in REP_REPORT gives each a file of its own",
                wanted,
                self._path,
                extra={"spider": spider},
            )
        # Connected only now: ``spider_closed`` is also sent if a crawl fails before this signal,
        # and then there must be no report.
        self._crawler.signals.connect(self._spider_closed, scrapy_signals.spider_closed)

    def _robotstxt_verdict(self, verdict: Verdict, decision: Decision) -> None:
        if verdict.allowed and decision.origin is not None:
            self._counts.count_allowed(str(decision.origin), verdict)

    def _robotstxt_forbidden(self, request: Request, verdict: Verdict, dropped: bool) -> None:
        origin, usage = _origin_text(request.url), stored_judgement(request)
        self._counts.count_forbidden(request.url, origin, verdict, usage, dropped=dropped)

    def _robotstxt_fetched(self, record: Record) -> None:
        self._robotstxt_loaded(record).fetches += 1

    def _robotstxt_loaded(self, record: Record) -> OriginRow:
        return self._counts.count_lookup(record, self._policy.access(record, time()))

    def _robotstxt_changed(self, origin: Origin) -> None:
        self._counts.row(str(origin)).changes += 1

    def _robotstxt_overridden(self, request: Request, override: Override) -> None:
        new = OverrideRow(override.host, override.policy, override.reason, override.until_text)
        row = self._counts.overrides.setdefault(override.host, new)
        self._counts.count_request(row, request.url)

    def _robotstxt_differs(self, request: Request, verdict: Verdict) -> None:
        self._counts.count_differing(request.url, verdict, stored_judgement(request))

    def _robotstxt_crawl_delay(self, origin: Origin, delay: Delay, taken: float | None) -> None:
        field, row = delay.field, self._counts.row(str(origin))
        text = short(f"{field.name}: {field.value}")
        row.crawl_delay = DelayRow(delay.seconds, taken, text, field.line)

    def _robotstxt_back_off(self, origin: Origin, seconds: float) -> None:
        row = self._counts.row(str(origin))
        row.back_offs += 1
        row.back_off_seconds += seconds

    def _robotstxt_refused(self, origin: Origin, cause: str) -> None:
        row = self._counts.row(str(origin))
        row.refused += 1
        row.refusal = cause

    def _robotstxt_usage(
        self, request: Request, usage: Usage, results: Mapping[str, str], refused: bool
    ) -> None:
        self._counts.usage.add(_origin_text(request.url), usage, results, refused=refused)

    def _request_reached_downloader(self, request: Request) -> None:
        if request.meta.get("dont_obey_robotstxt") and TRANSFER_KEY not in request.meta:
            self._counts.count_request(self._counts.exempt, request.url)

    async def _spider_closed(self, spider: Spider, reason: str) -> None:
        # Signals that arrive while the report is written are not counted.
        counts, self._counts = self._counts, Counts()
        crawl = self._crawl_values(spider, reason, counts)
        try:
            await in_thread(lambda: self._write_report(crawl, counts))
        except Exception:
            logger.exception("The report was not written: %s", self._path, extra={"spider": spider})
        else:
            logger.info("robots.txt report: %s", self._path, extra={"spider": spider})
        finally:
            release(self._path)

    def _write_report(self, crawl: dict[str, Any], counts: Counts) -> None:
        report = {"crawl": crawl, **self._versions_and_settings(), **counts.as_dict()}
        with open_replacement(self._path) as file:
            file.write(self._render(report))

    def _crawl_values(self, spider: Spider, reason: str, counts: Counts) -> dict[str, Any]:
        return {
            "spider": spider.name,
            "started": self._started,
            "finished": iso_time(time()),
            "finish_reason": reason,
            "dry_run": self._options.dry_run,
            "tokens": list(ProductTokens.of_crawl(self._crawler, self._options).default()),
            "purposes": list(UsageJudge.of_crawl(self._crawler, self._options).purposes),
            "allowed": counts.allowed.total(),
            "dropped": counts.dropped.total(),
            "would_drop": counts.would_drop.total(),
            **{name: stats.value(self._crawler, stat) for name, stat in _FIGURES.items()},
        }

    def _versions_and_settings(self) -> dict[str, Any]:
        settings = {
            **self._options.non_default(),
            "USER_AGENT": self._crawler.settings["USER_AGENT"],
        }
        if self._options.overrides:
            settings["REP_OVERRIDES"] = [asdict(override) for override in self._options.overrides]
        versions = {name: version(name) for name in ("scrapy-rep", "Scrapy")}
        return {"versions": versions | {"Python": python_version()}, "settings": settings}


def _origin_text(url: str) -> str:
    try:
        return str(origin_of(url))
    except ValueError:
        return "(no origin)"
