"""The signals of scrapy-rep. The description of each signal begins with its arguments.

Handlers of signals must be plain functions, not coroutine functions.
"""

from typing import Any, Final

from pydispatch import dispatcher  # type: ignore[import-untyped] # it has no types
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Verdict

robotstxt_verdict: Final = object()
"""``(request, verdict)``: it was decided whether a request may be sent. The signal is sent for
allowed and for disallowed requests."""
robotstxt_forbidden: Final = object()
"""``(request, verdict, dropped)``: a request was dropped. In a dry run ``dropped`` is false: the
request was sent, and would be dropped otherwise."""
robotstxt_fetched: Final = object()
"""``(origin, outcome, request, record, previous, stored)``: a fetch of robots.txt ended, with or
without success. ``previous`` is the record before; None if there was none. If ``stored`` is true,
nothing was fetched: the store had a valid record, which is also ``previous``."""
robotstxt_usage: Final = object()
"""``(request, usage, results, refused)``: the usage preferences of a page were judged."""
robotstxt_refused: Final = object()
"""``(request, origin, cause)``: a site refused a request that its robots.txt allows. ``cause`` is
the status of the response, with the headers that say why, as text."""

META_KEY: Final = "robotstxt"
"""Key of ``Request.meta`` with the verdict, as plain values."""

# Returns the receivers of a sender, by signal. Only receivers that are connected with
# ``crawler.signals`` are found. To look up receivers for any sender, too, would take too long for
# each request.
_receivers_of: Final = dispatcher.connections.get


def as_meta(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as values for META_KEY. ``rule`` is the path of the rule as written."""
    values = verdict.as_dict()
    del values["robotstxt_url"]  # it can be derived from the URL of the request
    return {**values, "rule": None if verdict.rule is None else verdict.rule.raw}


class Announcer:
    """Sends the signals of one crawl, and writes verdicts to the meta of requests."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._sender = id(crawler)
        self._last: Verdict | None = None
        self._last_meta: dict[str, Any] = {}

    def send_verdict(
        self, request: Request, verdict: Verdict, origin: Origin | None, decision: object
    ) -> None:
        """Write ``verdict`` to the meta of ``request``; send its signal, with ``origin``."""
        # The verdict is nearly always the same object as for the former request, because no rule
        # matches. Then its values are not made again.
        if verdict is not self._last:
            self._last, self._last_meta = verdict, as_meta(verdict)
        request.meta[META_KEY] = self._last_meta.copy()
        if robotstxt_verdict in _receivers_of(self._sender, ()):
            verdict = verdict.with_origin(origin)
            self.send(robotstxt_verdict, request=request, verdict=verdict, decision=decision)

    def send_record(self, record: Record, previous: Record | None, request: Request) -> None:
        """Send the signal of a lookup. ``previous`` is ``record`` if nothing was fetched."""
        self.send(
            robotstxt_fetched,
            origin=record.origin,
            outcome=record.last,
            request=request,
            record=record,
            previous=previous,
            stored=record is previous,
        )

    def send(self, signal: object, **what: Any) -> None:
        """Send ``signal`` with its arguments, if the crawl has a receiver of it."""
        if signal in _receivers_of(self._sender, ()):
            self._crawler.signals.send_catch_log(signal=signal, **what)
