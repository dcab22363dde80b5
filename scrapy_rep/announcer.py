"""Tells requests, and who listens, what was decided and found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy_rep import signals
from scrapy_rep.protocol.outcome import Unavailable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.verdict import Reason

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.overrides import Override
    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.record import Record
    from scrapy_rep.protocol.verdict import Verdict

META_KEY: Final = "robotstxt"
"""Key of ``Request.meta`` that holds the verdict."""


def as_meta(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values, which go through JSON and a JOBDIR as they are."""
    allowed, reason, rule, _ = verdict
    return {
        "allowed": allowed,
        "reason": reason.value,
        "rule": rule and rule.raw,
        "line": rule and rule.line,
    }


class Announcer:
    """Sends the signals of :mod:`scrapy_rep.signals` for one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._last: Verdict | None = None
        self._last_meta: dict[str, Any] = {}

    def verdict(self, request: Request, verdict: Verdict, origin: Origin | None) -> None:
        """Tell what was decided of ``request``."""
        # Nearly always the same as before: that no rule matches.
        if verdict is not self._last:
            self._last, self._last_meta = verdict, as_meta(verdict)
        request.meta[META_KEY] = self._last_meta.copy()
        if signals.has_receivers(self._crawler, signals.robotstxt_verdict):
            self._send(signals.robotstxt_verdict, request=request, verdict=placed(verdict, origin))

    def forbidden(self, request: Request, verdict: Verdict, *, dropped: bool) -> None:
        """Tell that ``request`` is dropped, or would be but for a dry run."""
        self._send(signals.robotstxt_forbidden, request=request, verdict=verdict, dropped=dropped)

    def learned(
        self, origin: Origin, record: Record, previous: Record | None, request: Request
    ) -> None:
        """Tell what the look-up of an origin came to; ``previous`` is what was stored of it."""
        if record is previous:
            self._send(signals.robotstxt_loaded, origin=origin, request=request, record=record)
            return
        self._send(
            signals.robotstxt_fetched,
            origin=origin,
            outcome=record.last,
            request=request,
            record=record,
        )
        if previous is None or not signals.has_receivers(self._crawler, signals.robotstxt_changed):
            return
        # Where nobody knew the rules before, or nobody does now, there is nothing to compare.
        known = [r.copy is not None or isinstance(r.last, Unavailable) for r in (previous, record)]
        old, new = (None if r.copy is None else r.copy.body for r in (previous, record))
        if all(known) and old != new:
            self._send(
                signals.robotstxt_changed,
                origin=origin,
                old=None if old is None else RobotsTxt.parse(old),
                new=None if new is None else RobotsTxt.parse(new),
                request=request,
            )

    def overridden(self, request: Request, override: Override) -> None:
        """Tell that ``override`` decides about ``request``."""
        self._send(signals.robotstxt_overridden, request=request, override=override)

    def differs(self, request: Request, verdict: Verdict, *, builtin_allows: bool) -> None:
        """Tell that Scrapy's built-in would have decided otherwise."""
        self._send(
            signals.robotstxt_differs,
            request=request,
            verdict=verdict,
            builtin_allows=builtin_allows,
        )

    def _send(self, signal: object, **what: Any) -> None:
        self._crawler.signals.send_catch_log(signal=signal, **what)


def placed(verdict: Verdict, origin: Origin | None) -> Verdict:
    """Return ``verdict`` with the URL of the robots.txt that decided, if one did."""
    if origin is None or verdict.robotstxt_url is not None or verdict.reason is Reason.OVERRIDE:
        return verdict
    return verdict._replace(robotstxt_url=origin.robotstxt_url)
