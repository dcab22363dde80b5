"""The extension that counts the signals of a crawl, and writes a report at its end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy import signals as scrapy_signals
from scrapy.crawler import Crawler
from scrapy.utils.job import job_dir

from scrapy_rep import signals
from scrapy_rep.decision.decider import Decision
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.decision.usage import UsageJudge, stored_judgement
from scrapy_rep.extensions.paths import claim, path_of_setting, release
from scrapy_rep.extensions.report.counts import Counts
from scrapy_rep.extensions.report.runs import Runs, versions_and_settings
from scrapy_rep.extensions.report.writers import open_replacement, renderer_of
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

if TYPE_CHECKING:
    from typing_extensions import Self

logger: Final = logging.getLogger(__name__)


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
        self._runs = Runs(job_dir(crawler.settings))
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
            (self._robotstxt_usage, signals.robotstxt_usage),
            (self._request_reached_downloader, scrapy_signals.request_reached_downloader),
            (self._spider_opened, scrapy_signals.spider_opened),
        ):
            crawler.signals.connect(receiver, signal)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the extension.

        Raises NotConfigured if REP_REPORT is not set, or ROBOTSTXT_OBEY is false, and SettingsError
        if REP_REPORT is not valid, or can't be written.
        """
        return cls(crawler)

    async def _spider_opened(self, spider: Spider) -> None:
        wanted, self._path = self._path, claim(self._path)
        if self._path != wanted:
            logger.warning(
                "Another crawl of this process writes its report to %s, this one writes to %s: "
                "%%(name)s or another placeholder in REP_REPORT gives each a file of its own",
                wanted,
                self._path,
                extra={"spider": spider},
            )
        self._counts = await in_thread(self._runs.read)
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
        self._count_lookup(record, fetched=True)

    def _robotstxt_loaded(self, record: Record) -> None:
        self._count_lookup(record, fetched=False)

    def _count_lookup(self, record: Record, *, fetched: bool) -> None:
        self._counts.count_lookup(record, self._policy.access(record, time()), fetched=fetched)

    def _robotstxt_changed(self, origin: Origin) -> None:
        self._counts.row(str(origin)).changes += 1

    def _robotstxt_overridden(self, request: Request, override: Override) -> None:
        self._counts.count_override(request.url, override)

    def _robotstxt_differs(self, request: Request, verdict: Verdict) -> None:
        self._counts.count_differing(request.url, verdict, stored_judgement(request))

    def _robotstxt_crawl_delay(self, origin: Origin, delay: Delay, taken: float | None) -> None:
        self._counts.set_crawl_delay(str(origin), delay, taken)

    def _robotstxt_back_off(self, origin: Origin, seconds: float) -> None:
        self._counts.count_back_off(str(origin), seconds)

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
            logger.exception("The report was not written: %s", self._path)
        else:
            logger.info("robots.txt report: %s", self._path, extra={"spider": spider})
        finally:
            release(self._path)

    def _write_report(self, crawl: dict[str, Any], counts: Counts) -> None:
        made = versions_and_settings(self._crawler, self._options)
        report = {"crawl": crawl, **made, **counts.as_dict()}
        self._runs.write(report)
        with open_replacement(self._path) as file:
            file.write(self._render(report))

    def _crawl_values(self, spider: Spider, reason: str, counts: Counts) -> dict[str, Any]:
        crawl_stats = {} if self._crawler.stats is None else self._crawler.stats.get_stats()
        return {
            "spider": spider.name,
            "finished": iso_time(time()),
            "finish_reason": reason,
            "dry_run": self._options.dry_run,
            "tokens": list(ProductTokens.of_crawl(self._crawler, self._options).default()),
            "purposes": list(UsageJudge.of_crawl(self._crawler, self._options).purposes),
            "allowed": counts.allowed.total(),
            "dropped": counts.dropped.total(),
            "would_drop": counts.would_drop.total(),
            **self._runs.sum_figures(self._started, crawl_stats),
        }


def _origin_text(url: str) -> str:
    try:
        return str(origin_of(url))
    except ValueError:
        return "(no origin)"
