"""The extension that makes lines of evidence from the signals of a crawl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import time
from typing import Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from scrapy import Request, Spider
from scrapy import signals as scrapy_signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import signals, stats
from scrapy_rep.admission.ticket import TICKET_KEY
from scrapy_rep.cache.entry import Entry, fingerprint_of
from scrapy_rep.decision.decider import SCHEMES, Decision
from scrapy_rep.decision.usage import as_dict
from scrapy_rep.extensions.cited_file import CitedFile, encode_json, iso_time
from scrapy_rep.extensions.evidence.formats import open_to_write
from scrapy_rep.extensions.evidence.parts import Line
from scrapy_rep.extensions.evidence.writer_thread import WriterThread
from scrapy_rep.extensions.output_files import path_of_setting
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.overrides import Override
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.usage.statement import HEADER, META, Value
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.robots import Robots
from scrapy_rep.settings import Options
from scrapy_rep.utils.background import Background
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.concurrency import within
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.requests import stripped_url
from scrapy_rep.utils.scrapy_internals import user_agents_of
from scrapy_rep.utils.text import without_credentials

_MAX_FILES: Final = 10_000
"""Maximum number of robots.txt files in memory. Further ones are read from the store again."""
_CLOSING_TIME: Final = 60.0
"""Time limit in seconds for the remaining lines when the crawl closes, used twice: for lines that
still need their robots.txt, and for the thread that writes."""
_NO_MATTER: Final = ("REP_EVIDENCE", "REP_REPORT")
"""Settings that don't affect decisions, and are left out of the evidence."""
_AFTER: Final = (HEADER, META)
"""Places of usage preferences that are read from the response."""
_SENT: Final = ("download", "handler")
_WORDS: Final = {True: "allowed", False: "disallowed"}


class _Pending:
    """The decision on a request whose response has not been received yet."""

    __slots__ = ("decided_at", "decision", "has_line", "verdict")

    def __init__(self, verdict: Verdict | None = None, decision: Decision | None = None) -> None:
        self.decided_at = time()
        self.verdict = verdict
        self.decision = decision
        self.has_line = False


class RobotsEvidence:
    """Writes the evidence of a crawl to REP_EVIDENCE.

    Errors are logged and counted, and do not stop the crawl.
    """

    def __init__(self, crawler: Crawler) -> None:
        options = Options.of(crawler)
        path = path_of_setting(crawler, "REP_EVIDENCE", options.evidence)
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._policy = options.policy
        self._dry_run = options.dry_run
        self._settings = {**options.as_dict(), "USER_AGENT": crawler.settings["USER_AGENT"]}
        self._settings["REP_OVERRIDES"] = [asdict(each) for each in options.overrides]
        for name in _NO_MATTER:
            del self._settings[name]
        digest = sha256(encode_json(dict(sorted(self._settings.items()))).encode()).hexdigest()
        common = {"crawl": uuid4().hex[:12], "version": version("scrapy-rep"), "settings": digest}
        self._writing = WriterThread(open_to_write(path, encode_json(common)[1:-1]), path)
        self._pending: WeakKeyDictionary[Request, _Pending] = WeakKeyDictionary()
        self._hops: WeakKeyDictionary[Request, str] = WeakKeyDictionary()
        """The URLs of requests whose download handler followed a redirect, by the request for the
        target of the redirect."""
        self._files: BoundedCache[tuple[str, int], CitedFile] = BoundedCache(max_entries=_MAX_FILES)
        self._override_files: dict[Path, CitedFile] = {}
        self._background = Background()
        for receiver, signal in (
            (self._robotstxt_fetched, signals.robotstxt_fetched),
            (self._robotstxt_loaded, signals.robotstxt_loaded),
            (self._robotstxt_tdmrep, signals.robotstxt_tdmrep),
            (self._robotstxt_usage, signals.robotstxt_usage),
            (self._robotstxt_verdict, signals.robotstxt_verdict),
            (self._robotstxt_followed, signals.robotstxt_followed),
            (self._robotstxt_forbidden, signals.robotstxt_forbidden),
            (self._response_downloaded, scrapy_signals.response_downloaded),
            (self._request_left_downloader, scrapy_signals.request_left_downloader),
            (self._response_received, scrapy_signals.response_received),
            (self._spider_opened, scrapy_signals.spider_opened),
        ):
            crawler.signals.connect(receiver, signal)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsEvidence:
        """Return the extension.

        Raises NotConfigured if REP_EVIDENCE is not set, or ROBOTSTXT_OBEY is false, and
        SettingsError if REP_EVIDENCE is not valid, or can't be written.
        """
        return cls(crawler)

    def _spider_opened(self, spider: Spider) -> None:
        # Connected only now: ``spider_closed`` is also sent if a crawl fails before this signal,
        # and then there must be no evidence.
        self._crawler.signals.connect(self._spider_closed, scrapy_signals.spider_closed)
        self._write_line(
            "start", {"spider": spider.name, "dry_run": self._dry_run, "set": self._settings}
        )

    def _robotstxt_fetched(self, record: Record) -> None:
        self._write_robotstxt(record, "fetch")

    def _robotstxt_loaded(self, record: Record) -> None:
        self._write_robotstxt(record, "store")

    def _write_robotstxt(self, record: Record, source: str) -> None:
        """Write a line about a robots.txt, and keep it in ``_files`` for lines about requests."""
        access = self._policy.access(record, time())
        file = CitedFile.from_record(record, access)
        self._files.put((file.url, fingerprint_of(access)), file)
        self._write_line("robotstxt", {"source": source}, file)

    def _robotstxt_tdmrep(self, record: Record, source: str) -> None:
        file = CitedFile.from_record(record, self._policy.access(record, time()))
        self._write_line("tdmrep", {"source": source}, file)

    def _robotstxt_usage(
        self, request: Request, usage: Usage, results: Mapping[str, Value]
    ) -> None:
        """Write a line if the response has preferences; all others are in lines about requests."""
        if any(statement.place in _AFTER for statement in usage.statements):
            url = without_credentials(request.url)
            self._write_line("usage", {"url": url, "usage": as_dict(usage, results)})

    def _robotstxt_verdict(self, request: Request, verdict: Verdict, decision: Decision) -> None:
        """Keep the decision; write a line, if it lets a redirect of the handler pass."""
        self._pending[request] = pending = _Pending(verdict, decision)
        if self._hops and request in self._hops and (verdict.allowed or self._dry_run):
            pending.has_line = True
            self._write("page", request, pending, "handler")

    def _robotstxt_followed(self, request: Request, hop: Request) -> None:
        self._hops[hop] = without_credentials(request.url)

    def _robotstxt_forbidden(self, request: Request, verdict: Verdict, dropped: bool) -> None:
        """Write a line about a dropped request; none in a dry run, in which it will be sent."""
        if dropped:
            pending = self._pending.setdefault(request, _Pending())
            pending.verdict, pending.has_line = verdict, True
            self._write("drop", request, pending, "handler" if request in self._hops else None)

    def _response_downloaded(self, request: Request, response: Response) -> None:
        if TRANSFER_KEY not in request.meta:
            self._write_sent("page", request, response.status)

    def _request_left_downloader(self, request: Request) -> None:
        """Write a line about a sent request that has got no response."""
        # A request that still has a ticket was not sent: it was given back to the scheduler.
        if request.meta.keys().isdisjoint((TRANSFER_KEY, TICKET_KEY)):
            pending = self._pending.get(request)
            if pending is None or not pending.has_line:
                self._write_sent("failed", request, None)

    def _write_sent(self, kind: str, request: Request, status: int | None) -> None:
        """Write a line about a sent request, even if nothing was decided on it."""
        pending = self._pending.get(request)
        if pending is None:
            pending = self._pending[request] = _Pending()
        pending.has_line = True
        self._write(kind, request, pending, "download", status)

    def _response_received(self, request: Request, response: Response) -> None:
        """Forget the decision; write a line if none is written yet, as when a cache responded."""
        pending = self._pending.pop(request, None)
        if pending is None or not pending.has_line:
            source = "cache" if "cached" in response.flags else "component"
            self._write("page", request, pending or _Pending(), source, response.status)

    def _write(
        self,
        kind: str,
        request: Request,
        pending: _Pending,
        source: str | None,
        status: int | None = None,
    ) -> None:
        """Write a line about ``request``, later if its robots.txt must be read from the store."""
        values = self._values(kind, request, pending, source, status)
        verdict, decision = pending.verdict, pending.decision
        if verdict is None or decision is None or verdict.reason is Reason.ROBOTSTXT:
            self._writing.put(Line(values))
            return
        entry, override = decision.entry, decision.override
        if override is not None and override.file is not None:
            self._writing.put(Line(values, self._override_file_of(override, override.file)))
        elif entry is None:
            self._writing.put(Line(values))
        elif file := self._files.get((verdict.robotstxt_url or "", entry.fingerprint)):
            self._write_with_age(values, file, pending.decided_at)
        else:
            self._background.start(
                self._write_after_lookup(values, request, pending.decided_at, entry)
            )

    def _values(
        self, kind: str, request: Request, pending: _Pending, source: str | None, status: int | None
    ) -> dict[str, Any]:
        """Return the values of a line about ``request``. ``age`` is None, and set later."""
        verdict, decision, meta = pending.verdict, pending.decision, request.meta
        rule = None if verdict is None else verdict.rule
        judgement = None if decision is None else decision.judgement
        override = None if decision is None else decision.override
        hops = [without_credentials(url) for url in meta.get("redirect_urls", ())]
        if source == "handler":
            hops.append(self._hops[request])
        agents = user_agents_of(request) if source in _SENT else None
        return {
            "kind": kind,
            "time": iso_time(time()),
            "url": without_credentials(request.url),
            "hops": hops,
            "method": request.method,
            "decided": iso_time(pending.decided_at),
            "source": source,
            "status": status,
            "tokens": None if decision is None else decision.tokens,
            "user_agent": agents[-1].decode("latin-1") if agents else None,
            "decision": None if verdict is None else _WORDS[verdict.allowed],
            "reason": None if verdict is None else verdict.reason.value,
            "rule": None if rule is None else str(rule),
            "line": None if rule is None else rule.line,
            "usage": None if judgement is None else as_dict(judgement.usage, judgement.results),
            "override": None if override is None else override.as_dict(),
            "exemption": _exemption_of(request) if verdict is None else None,
            "dry_run": self._dry_run,
            "age": None,
        }

    async def _write_after_lookup(
        self, values: dict[str, Any], request: Request, at: float, entry: Entry
    ) -> None:
        """Write a line about ``request``, after its robots.txt was read from the store.

        It is not in ``_files`` if another crawl of this process has looked it up, or after many. If
        the store no longer has the text that decided, the line is written without it.
        """
        try:
            record = await Robots.of(self._crawler).record(request)
        except Exception:
            self._logger.exception("Error while asking by which robots.txt it was decided")
            record = None
        if record is None or not entry.is_from(self._policy.access(record, at)):
            self._writing.put(Line(values))
            return
        key = record.file.url, entry.fingerprint
        if (file := self._files.get(key)) is None:
            self._write_robotstxt(record, "memory")
            file = self._files.get(key)
        self._write_with_age(values, file, at)

    def _write_with_age(self, values: dict[str, Any], file: CitedFile | None, at: float) -> None:
        """Write a line with ``file``, and with its age ``at`` the decision, in seconds."""
        if file is not None:
            known_since = file.asked if file.fetched is None else file.fetched
            values["age"] = round(at - known_since, 3)
        self._writing.put(Line(values, file))

    def _override_file_of(self, override: Override, path: Path) -> CitedFile:
        """Return the file with the rules of an override; write a line about it the first time."""
        file = self._override_files.get(path)
        if file is None:
            url, body = path.as_uri(), override.body
            file = CitedFile(url, "override", time(), size=len(body), body=body)
            self._override_files[path] = file
            self._write_line("robotstxt", {"source": "override"}, file)
        return file

    def _write_line(self, kind: str, values: Any, file: CitedFile | None = None) -> None:
        self._writing.put(Line({"kind": kind, "time": iso_time(time()), **values}, file))

    async def _spider_closed(self, reason: str) -> None:
        """Wait for the remaining lines, write the last one, and count what was written and lost."""
        writing = self._writing
        try:
            await within(_CLOSING_TIME, self._background.finish())
            counts = {} if self._crawler.stats is None else self._crawler.stats.get_stats()
            ours = {name: n for name, n in counts.items() if name.startswith("robotstxt/")}
            self._write_line("end", {"finish_reason": reason, "lost": writing.lost, "stats": ours})
            await within(_CLOSING_TIME, writing.stop())
        except TimeoutError:
            self._logger.warning("Some evidence may not have been written")
        stats.count(self._crawler, stats.EVIDENCE_WRITTEN, writing.written)
        if writing.lost:
            stats.count(self._crawler, stats.EVIDENCE_LOST, writing.lost)


def _exemption_of(request: Request) -> str | None:
    """Return why no robots.txt applies to ``request``; None if one does."""
    if request.meta.get("dont_obey_robotstxt"):
        return "dont_obey_robotstxt"
    return None if stripped_url(request.url).lower().startswith(SCHEMES) else "scheme"
