"""The extension that counts the signals of a crawl, and writes a report at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from time import time
from typing import Any, Final

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.decision.usage import UsageJudge
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.extensions.output_files import encode_json, file_of_setting, iso_time
from scrapy_rep.extensions.report_counts import Counts
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import in_thread
from scrapy_rep.utils.log import LimitedLogger

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
}
"""Names in the report, and the stats that they show."""


class RobotsReport:
    """Writes the report of a crawl to REP_REPORT. Errors are logged, and do not stop the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        options = Options.of(crawler)
        self._path = file_of_setting(crawler, "REP_REPORT", options.report)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._options = options
        self._counts = Counts(options.policy)
        self._render = _renderer_of(self._path)
        self._started = iso_time(time())
        for receiver, signal in self._counts.receivers():
            crawler.signals.connect(receiver, signal)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsReport:
        """Raise NotConfigured without REP_REPORT, SettingsError if it can't be written."""
        return cls(crawler)

    def _spider_opened(self) -> None:
        # Connected only now: ``spider_closed`` is also sent if a crawl fails before this signal,
        # and then there must be no report.
        self._crawler.signals.connect(self._spider_closed, signals.spider_closed)

    async def _spider_closed(self, spider: Spider, reason: str) -> None:
        # Signals that arrive while the report is written are not counted.
        for receiver, signal in self._counts.receivers():
            self._crawler.signals.disconnect(receiver, signal)
        if (admission := Admission.of(self._crawler)) is not None:
            self._counts.add_hosts(admission.hosts)
        crawl = self._crawl_values(spider, reason)
        try:
            await in_thread(lambda: self._write_report(crawl))
        except Exception:
            self._logger.exception("The report was not written: %s", self._path)
        else:
            self._logger.info("robots.txt report: %s", self._path)

    def _write_report(self, crawl: dict[str, Any]) -> None:
        versions = {name: version(name) for name in ("scrapy-rep", "Scrapy")}
        versions["Python"] = python_version()
        settings = self._options.non_default()
        settings["USER_AGENT"] = self._crawler.settings["USER_AGENT"]
        if self._options.overrides:
            settings["REP_OVERRIDES"] = [asdict(override) for override in self._options.overrides]
        known = {"crawl": crawl, "versions": versions, "settings": settings}
        report = self._render({**known, **self._counts.as_dict()})
        new = self._path.with_name(f"{self._path.name}.part")
        new.write_bytes(report.encode())
        new.replace(self._path)

    def _crawl_values(self, spider: Spider, reason: str) -> dict[str, Any]:
        return {
            "spider": spider.name,
            "started": self._started,
            "finished": iso_time(time()),
            "finish_reason": reason,
            "dry_run": self._options.dry_run,
            "tokens": list(ProductTokens.of(self._crawler).default()),
            "purposes": list(UsageJudge.of(self._crawler).purposes),
            **{name: counts.total() for name, counts in self._counts.reasons.items()},
            **{name: stats.value(self._crawler, stat) for name, stat in _FIGURES.items()},
        }


def _renderer_of(path: Path) -> Callable[[dict[str, Any]], str]:
    if path.suffix != ".html":
        return encode_json
    try:
        from scrapy_rep.extensions.report_page import render
    except ImportError:
        raise SettingsError(
            f"REP_REPORT is {str(path)!r}: HTML takes Jinja2, which isn't installed: "
            "pip install scrapy-rep[report]"
        ) from None
    return render
