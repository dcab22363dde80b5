"""What scrapy-rep tells those who listen, beside Scrapy's own ``robots_parsed``.

Handlers are plain functions: none of these is waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydispatch import dispatcher  # type: ignore[import-untyped] # it has no types

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

robotstxt_verdict: Final = object()
"""``(request, verdict)``: it was decided whether a request may be sent; for each request."""
robotstxt_forbidden: Final = object()
"""``(request, verdict, dropped)``: a request was dropped, or would have been but for a dry run."""
robotstxt_fetched: Final = object()
"""``(origin, outcome, request, record)``: a fetch of robots.txt ended, well or badly."""
robotstxt_loaded: Final = object()
"""``(origin, request, record)``: what robots.txt came to was known from the store."""
robotstxt_changed: Final = object()
"""``(origin, old, new, request)``: a robots.txt is another one than before."""
robotstxt_overridden: Final = object()
"""``(request, override)``: an entry of REP_OVERRIDES decided in place of robots.txt."""
robotstxt_differs: Final = object()
"""``(request, verdict, builtin_allows)``: in a dry run, the built-in would decide otherwise."""


def has_receivers(crawler: Crawler, signal: object) -> bool:
    """Return whether anybody listens to ``signal`` of ``crawler``.

    Cheap, as it is asked for every request: those who connected past ``crawler.signals`` to any
    sender at all are not looked for.
    """
    return signal in dispatcher.connections.get(id(crawler), ())
