"""The evidence (REP_EVIDENCE): a line of JSON for each decision on a request."""

from __future__ import annotations

import gzip
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from os import SEEK_END
from pathlib import Path
from time import monotonic, time
from typing import Any, Final
from uuid import uuid4

from scrapy import Request
from scrapy import signals as scrapy_signals
from scrapy.crawler import Crawler

from scrapy_rep import signals, stats
from scrapy_rep.decision.decider import Decision
from scrapy_rep.extensions.output_files import encode_json, file_of_setting, iso_time
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.settings import Options
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import without_credentials

_OF_VERDICT: Final = ("allowed", "reason", "rule", "line", "robotstxt_url", "cause")
_MAX_BYTES: Final = 32 * 1024
_MAX_SECONDS: Final = 1.0
"""Lines are written together: so many bytes, or those of so many seconds."""


class RobotsEvidence:
    """Appends the decisions of a crawl to REP_EVIDENCE. An error does not stop the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        options = Options.of(crawler)
        self._path = file_of_setting(crawler, "REP_EVIDENCE", options.evidence)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._dry_run = options.dry_run
        self._common = {"crawl": uuid4().hex[:12], "version": version("scrapy-rep")}
        self._disallowed: Request | None = None
        """The request of the last line, if that disallows it."""
        crawler.signals.connect(self._spider_opened, scrapy_signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsEvidence:
        """Raise NotConfigured without REP_EVIDENCE, SettingsError if it can't be written."""
        return cls(crawler)

    def _spider_opened(self) -> None:
        self._file = _LineFile(self._path, self._crawler)
        connect = self._crawler.signals.connect
        connect(self._write, signals.robotstxt_verdict)
        connect(self._robotstxt_forbidden, signals.robotstxt_forbidden)
        # Connected only now: ``spider_closed`` is also sent if a crawl fails before this signal.
        connect(self._spider_closed, scrapy_signals.spider_closed)

    def _robotstxt_forbidden(self, request: Request, verdict: Verdict) -> None:
        """Write a line about a drop for which no signal of a verdict was sent, as for nofollow."""
        if request is not self._disallowed:
            self._write(request, verdict)

    def _write(self, request: Request, verdict: Verdict, decision: Decision | None = None) -> None:
        self._disallowed = None if verdict.allowed else request
        said = verdict.as_dict()
        values = {
            "time": iso_time(time()),
            "url": without_credentials(request.url),
            "method": request.method,
            **{name: said[name] for name in _OF_VERDICT},
            "dropped": not verdict.allowed and not self._dry_run,
            "tokens": [] if decision is None else decision.tokens,
            **_robotstxt_of(decision),
            **self._common,
        }
        self._file.write(f"{encode_json(values)}\n".encode())

    def _spider_closed(self) -> None:
        self._crawler.signals.disconnect(self._write, signals.robotstxt_verdict)
        self._crawler.signals.disconnect(self._robotstxt_forbidden, signals.robotstxt_forbidden)
        self._file.close()
        if not self._file.lost:
            self._logger.info("robots.txt evidence: %s", self._path)


def _robotstxt_of(decision: Decision | None) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(("sha256", "fetched", "override", "usage"))
    if decision is None:
        return values
    if (entry := decision.entry) is not None:
        values["sha256"] = entry.sha256 and entry.sha256.hex()
        values["fetched"] = iso_time(entry.fetched)
    if (override := decision.override) is not None:
        values["override"] = override.as_dict()
        if override.path is not None:
            values["sha256"] = sha256(override.body).hexdigest()
    if decision.judgement is not None:
        values["usage"] = decision.judgement.as_dict()
    return values


class _LineFile:
    """A file to which lines are appended: as they are, or for ``.gz`` in gzip members.

    Each member is complete, so that the file can be read after the crawl was killed. After an
    error, what was written in part is removed, and nothing more is written.
    """

    def __init__(self, path: Path, crawler: Crawler) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._is_gzip = path.suffix == ".gz"
        self._unwritten = bytearray()
        self._written_at = monotonic()
        self.lost = False
        # Not buffered, so that written lines are not lost if this process is killed.
        self._file = path.open("ab", buffering=0)

    def write(self, line: bytes) -> None:
        self._unwritten += line
        if len(self._unwritten) >= _MAX_BYTES or monotonic() - self._written_at >= _MAX_SECONDS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, bytearray()
        self._written_at = monotonic()
        rest = memoryview(gzip.compress(data) if self._is_gzip and data else data)
        if rest and not self.lost:
            end = self._file.seek(0, SEEK_END)
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                self.lost = True
                line = "Evidence can't be written, the crawl continues without: %s: %s"
                self._logger.error(line, self._file.name, error.strerror)  # noqa: TRY400 - it has it
                with suppress(OSError):
                    self._file.truncate(end)
        if self.lost:
            stats.count(self._crawler, stats.EVIDENCE_LOST, data.count(b"\n"))
