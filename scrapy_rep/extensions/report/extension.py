"""The extension that listens, and writes at the end."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Any

from scrapy import signals as scrapy_signals
from scrapy.exceptions import NotConfigured

from scrapy_rep import signals, stats
from scrapy_rep.decision.product_tokens import ProductTokens
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.extensions.paths import claim, path_of, release
from scrapy_rep.extensions.report.counts import Collected
from scrapy_rep.extensions.report.writers import JsonWriter, LinesWriter, Writer
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.settings import Options
from scrapy_rep.utils.text import short, without_credentials

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_rep.overrides import Override
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.parser import RobotsTxt
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.protocol.verdict import Verdict

logger = logging.getLogger(__name__)


class RobotsReport:
    """Writes REP_REPORT. What goes wrong with it is logged, and stops no crawl."""

    def __init__(self, crawler: Crawler) -> None:
        options = Options.from_settings(crawler.settings)
        if (
            options.report is None
            or crawler.spider is None
            or not crawler.settings.getbool("ROBOTSTXT_OBEY")
        ):
            raise NotConfigured
        self._crawler = crawler
        self._options = options
        self._collected = Collected()
        self._started = time()
        self._path = path_of("REP_REPORT", options.report, crawler.spider)
        self._make_writer = _writer_for(self._path)
        self._writer: Writer | None = None
        for receiver, signal in (
            (self._forbidden, signals.robotstxt_forbidden),
            (self._fetched, signals.robotstxt_fetched),
            (self._loaded, signals.robotstxt_loaded),
            (self._changed, signals.robotstxt_changed),
            (self._overridden, signals.robotstxt_overridden),
            (self._differs, signals.robotstxt_differs),
            (self._opened, scrapy_signals.spider_opened),
            (self._closed, scrapy_signals.spider_closed),
        ):
            crawler.signals.connect(receiver, signal)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the extension. Raises NotConfigured without REP_REPORT, and SettingsError."""
        return cls(crawler)

    def _opened(self) -> None:
        wanted, self._path = self._path, claim(self._path)
        if self._path != wanted:
            logger.warning(
                "Another crawl of this process writes its report to %s, this one writes to %s: "
                "%%(name)s or another placeholder in REP_REPORT gives each a file of its own",
                wanted,
                self._path,
                extra={"spider": self._crawler.spider},
            )
        try:
            self._writer = self._make_writer(self._path)
        except OSError:
            logger.exception("No report is written: %s", self._path)

    def _forbidden(self, request: Request, verdict: Verdict, dropped: bool) -> None:
        row = self._collected.forbidden(_origin(request.url), verdict)
        decision = _decision(request, verdict)
        self._write("drop" if dropped else "would-drop", {
            **decision,
            "sha256": row.sha256,
            "fetched_at": row.fetched_at,
        })  # fmt: skip

    def _fetched(self, origin: Origin, record: Record) -> None:
        self._learned(origin, record, fetched=True)

    def _loaded(self, origin: Origin, record: Record) -> None:
        self._learned(origin, record, fetched=False)

    def _learned(self, origin: Origin, record: Record, *, fetched: bool) -> None:
        row = self._collected.learned(record, fetched=fetched)
        self._write("fetch" if fetched else "load", {
            "origin": str(origin),
            "outcome": row.outcome,
            "status": row.status,
            "error": row.error,
            "hops": list(record.last.evidence.hops),
            "size": row.size,
            "sha256": row.sha256,
            "fetched_at": row.fetched_at,
        })  # fmt: skip

    def _changed(self, origin: Origin, old: RobotsTxt | None, new: RobotsTxt | None) -> None:
        self._collected.row(str(origin)).changes += 1
        what = {"origin": str(origin), "had_rules": old is not None, "has_rules": new is not None}
        self._write("change", what)

    def _overridden(self, request: Request, override: Override) -> None:
        self._collected.overridden(override)
        self._write("override", {
            "url": without_credentials(request.url),
            "host": override.host,
            "policy": override.policy,
            "reason": override.reason,
            "until": override.until_text,
        })  # fmt: skip

    def _differs(self, request: Request, verdict: Verdict, builtin_allows: bool) -> None:
        self._collected.differing += 1
        decision = _decision(request, verdict)
        self._write("differs", {**decision, "builtin_allows": builtin_allows})

    def _write(self, kind: str, line: dict[str, Any]) -> None:
        if self._writer is None:
            return
        try:
            self._writer.line({"kind": kind, "at": time(), **line})
        except OSError:
            logger.exception("The report can't be written to any more: %s", self._path)
            self._writer = None

    def _closed(self, spider: Spider, reason: str) -> None:
        if self._writer is not None:
            self._finish(self._writer, spider, reason)
        release(self._path)

    def _finish(self, writer: Writer, spider: Spider, reason: str) -> None:
        counts = {} if self._crawler.stats is None else self._crawler.stats.get_stats()
        forbidden = stats.DRY_RUN_FORBIDDEN if self._options.dry_run else stats.FORBIDDEN
        crawl = {
            "spider": spider.name,
            "started": self._started,
            "finished": time(),
            "finish_reason": reason,
            "dry_run": self._options.dry_run,
            "tokens": list(ProductTokens(self._crawler, self._options).of_crawl()),
            "fetches": counts.get(stats.REQUEST_COUNT, 0),
            "responses": counts.get("response_received_count", 0),
            "dropped": counts.get(forbidden, 0),
        }
        try:
            writer.finish(crawl, self._collected)
        except OSError:
            logger.exception("The report was not written: %s", self._path)
            return
        logger.info("robots.txt report: %s", self._path, extra={"spider": spider})


def _writer_for(path: Path) -> Callable[[Path], Writer]:
    """Return what makes the writer of a report at ``path``. Raises SettingsError."""
    if not path.parent.is_dir():
        raise SettingsError(f"REP_REPORT is {str(path)!r}: there is no such directory")
    writer = _writer_of_kind(path)
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise SettingsError(
            f"REP_REPORT is {str(path)!r}: it can't be written: {error.strerror}"
        ) from None
    return writer


def _writer_of_kind(path: Path) -> Callable[[Path], Writer]:
    if path.suffix == ".jsonl":
        return LinesWriter
    if path.suffix == ".json":
        return JsonWriter
    try:
        from scrapy_rep.extensions.report.page import PageWriter  # noqa: PLC0415 - Jinja2 is an extra
    except ImportError:
        raise SettingsError(
            f"REP_REPORT is {str(path)!r}: HTML takes Jinja2, which isn't installed: "
            "pip install scrapy-rep[report]"
        ) from None
    return PageWriter


def _decision(request: Request, verdict: Verdict) -> dict[str, Any]:
    # Its line and the file's hash tell a rule that is cut from all others.
    return {
        "url": without_credentials(request.url),
        "method": request.method,
        **verdict.as_dict(),
        "rule": None if verdict.rule is None else short(str(verdict.rule)),
    }


def _origin(url: str) -> str:
    try:
        return str(origin_of(url))
    except ValueError:
        return "(no origin)"
