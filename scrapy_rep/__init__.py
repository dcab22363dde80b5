"""Robots.txt for Scrapy as RFC 9309 and Google's specification say.

All that is written in settings or imported comes from here, from ``scrapy_rep.signals`` and from
``scrapy_rep.protocol``; everything else is private, and may change.

**From the spider to the wire.** A spider yields a request. Scrapy's scheduler pushes it to
``scheduler/queue.py``, which keeps the requests of each origin in a queue of their own
(``origin_queues.py``), with ``JOBDIR`` on disk (``disk.py``). Before it pops one it asks the gate
(``gate.py``). Of an origin that is not known the gate begins to find out, and the requests stay
where they are; of one that is unreachable they stay until the next try; of all others they may
leave, one slot after the other (``slot_order.py``), as far apart as their sites ask: within a
crawl (``delays.py``), and within a fleet, whose workers take turns (``turns.py``). On its way out a
request is noted to come from the queue (``source.py``). Where nothing but unreachable origins is
left, spiders hear of it (``idle.py``). Workers that share scrapy-redis's queue have the same there
(``redis_queue.py``).

In the engine it comes to ``RobotsTxtMiddleware`` (``downloadermiddlewares/robotstxt.py``), whose
parts are built in ``composition.py``. It takes the note off and asks the decider
(``decision/decider.py``). The decider alone knows the names of the crawler (``product_tokens.py``),
the overrides, and what else may become of a URL on its way (``spellings.py``, ``handlers.py``),
which is judged by the strictest (``strictest.py``); the rules it has from the cache. What is known
and allowed passes at once, in a few microseconds. Of all else a table says what becomes of it
(``transitions.py``): it is dropped, waits (``waits.py``), or goes back to the scheduler.
``drops.py`` counts, logs and signals what is dropped.

Next to the downloader, behind all other middlewares, stands the guard (``guard.py``). It lets a
request pass that is as it was decided on; one whose URL or User-Agent has been changed since is
decided about again, and so is the URL of a response whose download handler followed a redirect.

**Finding out.** ``cache/cache.py`` holds what is known of each origin, as long as it may be used.
What is not known becomes a flight (``flights.py``): one per origin, and all who ask meanwhile wait
for it. It looks into the store, and fetches under a lease, so that of all the workers that use the
store one fetches (``lookup.py``). ``protocol/policy.py`` makes a record of how the fetch ended, and
says of a record, and a time, what may be fetched and until when.

**The robots.txt request.** ``fetch/fetcher.py`` sends an ordinary Scrapy request with
``engine.download_async``, so that proxies, TLS and download handlers are those of the crawl, and
switches off for it what other middlewares do to pages; the guard takes off what they set on all
requests. The answer, or the error, comes back there first: it is decoded, cut to what counts, and
handed to the fetcher past all middlewares. Redirects are followed by hand (``redirects.py``).
Whatever goes wrong is an outcome: nothing is raised but cancellation.

**And back.** All who wait get the verdict on their own URL. The page's response goes to the
callback as Scrapy has it; ``spidermiddlewares/metatags.py`` obeys the robots meta tags in it, and
``spidermiddlewares/usage.py`` what it says about its use, where the crawl has declared purposes.
Extensions listen: the report, the evidence, the figures in the log.

An error of ours anywhere on this way drops the request and says so: nothing is let out that was
not decided about.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_rep.addon import Addon
    from scrapy_rep.cache.cache import Census
    from scrapy_rep.downloadermiddlewares.guard import RobotsTxtFetchMiddleware
    from scrapy_rep.downloadermiddlewares.navigations import keep_from_disallowed
    from scrapy_rep.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
    from scrapy_rep.downloadermiddlewares.subresources import abort_disallowed
    from scrapy_rep.exceptions import (
        CrawlClosingError,
        RobotsTxtDisallowed,
        RobotsUsageDisallowed,
        SettingsError,
    )
    from scrapy_rep.extensions.evidence import RobotsEvidence
    from scrapy_rep.extensions.logstats import RobotsLogStats
    from scrapy_rep.extensions.report import RobotsReport
    from scrapy_rep.robotparser import RobotParser
    from scrapy_rep.robots import Robots
    from scrapy_rep.scheduler.queue import RobotsAwarePriorityQueue
    from scrapy_rep.scheduler.redis_queue import (
        RobotsAwareRedisFifoQueue,
        RobotsAwareRedisLifoQueue,
        RobotsAwareRedisQueue,
    )
    from scrapy_rep.spidermiddlewares.metatags import RobotsTagsMiddleware
    from scrapy_rep.spidermiddlewares.usage import RobotsUsageMiddleware
    from scrapy_rep.spiders import RobotsSitemapMixin, RobotsSitemapSpider

    __version__: str

__all__ = [
    "Addon",
    "Census",
    "CrawlClosingError",
    "RobotParser",
    "Robots",
    "RobotsAwarePriorityQueue",
    "RobotsAwareRedisFifoQueue",
    "RobotsAwareRedisLifoQueue",
    "RobotsAwareRedisQueue",
    "RobotsEvidence",
    "RobotsLogStats",
    "RobotsReport",
    "RobotsSitemapMixin",
    "RobotsSitemapSpider",
    "RobotsTagsMiddleware",
    "RobotsTxtDisallowed",
    "RobotsTxtFetchMiddleware",
    "RobotsTxtMiddleware",
    "RobotsUsageDisallowed",
    "RobotsUsageMiddleware",
    "SettingsError",
    "__version__",
    "abort_disallowed",
    "keep_from_disallowed",
]

# Imported when first asked for, so that scrapy_rep.protocol serves without Scrapy (PEP 562).
_HOMES = {
    "Addon": "scrapy_rep.addon",
    "Census": "scrapy_rep.cache.cache",
    "CrawlClosingError": "scrapy_rep.exceptions",
    "RobotParser": "scrapy_rep.robotparser",
    "Robots": "scrapy_rep.robots",
    "RobotsAwarePriorityQueue": "scrapy_rep.scheduler.queue",
    "RobotsAwareRedisFifoQueue": "scrapy_rep.scheduler.redis_queue",
    "RobotsAwareRedisLifoQueue": "scrapy_rep.scheduler.redis_queue",
    "RobotsAwareRedisQueue": "scrapy_rep.scheduler.redis_queue",
    "RobotsEvidence": "scrapy_rep.extensions.evidence",
    "RobotsLogStats": "scrapy_rep.extensions.logstats",
    "RobotsReport": "scrapy_rep.extensions.report",
    "RobotsSitemapMixin": "scrapy_rep.spiders",
    "RobotsSitemapSpider": "scrapy_rep.spiders",
    "RobotsTagsMiddleware": "scrapy_rep.spidermiddlewares.metatags",
    "RobotsTxtDisallowed": "scrapy_rep.exceptions",
    "RobotsTxtFetchMiddleware": "scrapy_rep.downloadermiddlewares.guard",
    "RobotsTxtMiddleware": "scrapy_rep.downloadermiddlewares.robotstxt",
    "RobotsUsageDisallowed": "scrapy_rep.exceptions",
    "RobotsUsageMiddleware": "scrapy_rep.spidermiddlewares.usage",
    "SettingsError": "scrapy_rep.exceptions",
    "abort_disallowed": "scrapy_rep.downloadermiddlewares.subresources",
    "keep_from_disallowed": "scrapy_rep.downloadermiddlewares.navigations",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("scrapy-rep")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
