"""The extension that listens, and writes at the end; lines as it listens."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals as scrapy_signals
from scrapy.utils.job import job_dir

from scrapy_rep import signals, stats
from scrapy_rep.decision.product_tokens import ProductTokens
from scrapy_rep.decision.usage import UsageJudge, noted
from scrapy_rep.extensions.lines import Line, iso, of_override
from scrapy_rep.extensions.paths import claim, path_of, release
from scrapy_rep.extensions.report.counts import Collected
from scrapy_rep.extensions.report.rows import Why
from scrapy_rep.extensions.report.runs import Runs, made_by
from scrapy_rep.extensions.report.writers import LINES, LinesForm, renderer_of, replacing
from scrapy_rep.extensions.writing import Writing
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.settings import Options
from scrapy_rep.utils.concurrency import in_thread, within
from scrapy_rep.utils.text import counted, without_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_rep.decision.decider import Decision
    from scrapy_rep.overrides import Override
    from scrapy_rep.protocol.crawl_delay import Delay
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.parser import RobotsTxt
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.protocol.usage.usage import Usage
    from scrapy_rep.protocol.verdict import Verdict

logger = logging.getLogger(__name__)

_CLOSING_TIME: Final = 60.0
"""Seconds for what is still to be written when the crawl is over."""


class RobotsReport:
    """Writes REP_REPORT. Errors are logged, and do not stop the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        options = Options.of(crawler)
        self._path = path_of(crawler, "REP_REPORT", options.report)
        self._crawler = crawler
        self._options = options
        self._policy = options.policy
        self._collected = Collected()
        self._render = renderer_of(self._path)
        self._runs = Runs(job_dir(crawler.settings))
        self._started = iso(time())
        self._lines: Writing | None = None
        for receiver, signal in (
            (self._decided, signals.robotstxt_verdict),
            (self._forbidden, signals.robotstxt_forbidden),
            (self._fetched, signals.robotstxt_fetched),
            (self._loaded, signals.robotstxt_loaded),
            (self._changed, signals.robotstxt_changed),
            (self._overridden, signals.robotstxt_overridden),
            (self._differs, signals.robotstxt_differs),
            (self._delays, signals.robotstxt_crawl_delay),
            (self._back_off, signals.robotstxt_back_off),
            (self._usage, signals.robotstxt_usage),
            (self._sent, scrapy_signals.request_reached_downloader),
            (self._opened, scrapy_signals.spider_opened),
        ):
            crawler.signals.connect(receiver, signal)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the extension. Raises NotConfigured without REP_REPORT, and SettingsError."""
        return cls(crawler)

    async def _opened(self, spider: Spider) -> None:
        wanted, self._path = self._path, claim(self._path)
        if self._path != wanted:
            logger.warning(
                "Another crawl of this process writes its report to %s, this one writes to %s: "
                "%%(name)s or another placeholder in REP_REPORT gives each a file of its own",
                wanted,
                self._path,
                extra={"spider": spider},
            )
        resumes, self._collected = await in_thread(self._runs.read)
        try:
            if self._path.suffix == LINES:
                form = LinesForm(self._path, resumes=resumes)
                self._lines = Writing(form, "The report", self._path)
        except OSError:
            logger.exception("No report is written: %s", self._path)
        # Only now: a crawl that is refused at its start is closed, too, and has nothing to report.
        self._crawler.signals.connect(self._closed, scrapy_signals.spider_closed)
        self._write("start", {"spider": spider.name, **made_by(self._crawler, self._options)})

    def _decided(self, verdict: Verdict, decision: Decision) -> None:
        if verdict.allowed and decision.origin is not None:
            self._collected.passed(str(decision.origin), verdict)

    def _forbidden(self, request: Request, verdict: Verdict, dropped: bool) -> None:
        origin, usage = _origin(request.url), noted(request)
        row = self._collected.forbidden(request.url, origin, verdict, usage, dropped=dropped)
        self._write("drop" if dropped else "would-drop", {
            **_decision(request, verdict),
            "sha256": row.sha256,
            "fetched": row.fetched,
        })  # fmt: skip

    def _fetched(self, record: Record) -> None:
        self._learned(record, fetched=True)

    def _loaded(self, record: Record) -> None:
        self._learned(record, fetched=False)

    def _learned(self, record: Record, *, fetched: bool) -> None:
        access = self._policy.access(record, time())
        row = self._collected.learned(record, access, fetched=fetched)
        self._write("fetch" if fetched else "load", {
            "origin": str(record.file.origin),
            "outcome": row.outcome,
            "status": row.status,
            "error": row.error,
            "hops": record.last.evidence.hops,
            "asked": row.asked,
            "sha256": row.sha256,
            "size": row.size,
            "truncated": row.truncated,
            "fetched": row.fetched,
        })  # fmt: skip

    def _changed(self, origin: Origin, old: RobotsTxt | None, new: RobotsTxt | None) -> None:
        self._collected.row(str(origin)).changes += 1
        what = {"origin": str(origin), "had_rules": old is not None, "has_rules": new is not None}
        self._write("change", what)

    def _overridden(self, request: Request, override: Override) -> None:
        self._collected.overridden(request.url, override)
        url = without_credentials(request.url)
        self._write("override", {"url": url, **of_override(override)})

    def _differs(self, request: Request, verdict: Verdict, builtin_allows: bool) -> None:
        self._collected.differs(request.url, verdict, noted(request))
        self._write("differs", {**_decision(request, verdict), "builtin_allows": builtin_allows})

    def _delays(self, origin: Origin, delay: Delay, taken: float | None) -> None:
        said = self._collected.delays(str(origin), delay, taken)
        self._write("crawl-delay", {"origin": str(origin), **said})

    def _back_off(self, origin: Origin, status: int, seconds: float) -> None:
        self._collected.back_off(str(origin), seconds)
        self._write("back-off", {"origin": str(origin), "status": status, "seconds": seconds})

    def _usage(
        self, request: Request, usage: Usage, results: Mapping[str, str], refused: bool
    ) -> None:
        self._collected.usage.add(_origin(request.url), usage, results, refused=refused)

    def _sent(self, request: Request) -> None:
        if request.meta.get("dont_obey_robotstxt") and TRANSFER_KEY not in request.meta:
            self._collected.sample(self._collected.exempt, request.url)
            url = without_credentials(request.url)
            self._write("exempt", {"url": url, "method": request.method})

    def _write(self, kind: str, line: dict[str, Any]) -> None:
        if self._lines is not None:
            self._lines.put(Line({"kind": kind, "time": iso(time()), **line}))

    async def _closed(self, spider: Spider, reason: str) -> None:
        # What is still heard while this is written belongs to no run.
        collected, self._collected = self._collected, Collected()
        crawl = self._crawl(spider, reason, collected)
        self._write("end", crawl)
        lines, self._lines = self._lines, None
        try:
            if lines is not None:
                await within(_CLOSING_TIME, lines.end())
            await in_thread(lambda: self._finish(crawl, collected))
        except Exception:
            logger.exception("The report was not written: %s", self._path)
        else:
            logger.info("robots.txt report: %s", self._path, extra={"spider": spider})
        finally:
            if lines is not None and lines.lost:
                stats.count(self._crawler, stats.REPORT_LOST, lines.lost)
                logger.warning(
                    "%s of the report could not be written: %s",
                    counted(lines.lost, "line"),
                    self._path,
                    extra={"spider": spider},
                )
            release(self._path)

    def _finish(self, crawl: dict[str, Any], collected: Collected) -> None:
        made = made_by(self._crawler, self._options)
        report = {"crawl": crawl, **made, **collected.as_dict()}
        self._runs.keep(report)
        if self._path.suffix != LINES:
            with replacing(self._path) as file:
                file.write(self._render(report))

    def _crawl(self, spider: Spider, reason: str, collected: Collected) -> dict[str, Any]:
        counts = {} if self._crawler.stats is None else self._crawler.stats.get_stats()
        return {
            "spider": spider.name,
            "finished": iso(time()),
            "finish_reason": reason,
            "dry_run": self._options.dry_run,
            "tokens": list(ProductTokens.of_crawl(self._crawler, self._options).default()),
            "purposes": list(UsageJudge.of_crawl(self._crawler, self._options).purposes),
            "allowed": collected.allowed.total(),
            "dropped": collected.dropped.total(),
            "would_drop": collected.would_drop.total(),
            **self._runs.figures(self._started, counts),
        }


def _decision(request: Request, verdict: Verdict) -> dict[str, Any]:
    # Its line and the file's hash tell a rule that is cut from all others.
    values = verdict.as_dict()
    for name in ("unreachable_since", "next_try"):
        values[name] = None if values[name] is None else iso(values[name])
    return {
        "url": without_credentials(request.url),
        "method": request.method,
        **values,
        **Why.of(verdict, noted(request))._asdict(),
    }


def _origin(url: str) -> str:
    try:
        return str(origin_of(url))
    except ValueError:
        return "(no origin)"
