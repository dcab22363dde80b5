"""robots.txt for Scrapy, as defined in RFC 9309 and in Google's specification.

The public names, for settings and imports, are in ``scrapy_rep``, ``scrapy_rep.signals`` and
``scrapy_rep.protocol``. Everything else is private, and may change.

**In the scheduler.** Scrapy's scheduler pushes each request to ``scheduler/priority_queue.py``,
which has a queue for each origin (``lanes.py``). With ``JOBDIR`` the queues are on disk
(``requests_on_disk.py``). Before a request is popped, the admission (``admission/admission.py``)
returns why and until when it must wait, if it must: one module for each reason. If robots.txt is
not known, a lookup is started (``lookup.py``). If it is unreachable, requests wait for the next try
(``unreachable.py``). If it has a delay between requests, they wait for their turn (``turn.py``),
and if the site has answered 429 or 503, until a pause is over (``back_off.py``). The queue
remembers which requests wait (``waiting.py``), with one timer for all. Requests that need not wait
are popped from one download slot after the other (``slot_order.py``), with a ticket
(``ticket.py``). If only requests to unreachable origins are left, ``spider_idle`` is sent
(``idle.py``). ``redis_queue.py`` does the same for workers that share a queue of scrapy-redis.

**In the downloader middlewares.** ``RobotsTxtMiddleware`` (``downloadermiddlewares/robotstxt.py``),
whose parts are built in ``composition.py``, reads the ticket and gets the decision from the decider
(``decision/decider.py``). The decider determines the product tokens of the crawler
(``product_tokens.py``), the override of the host, and the forms in which a URL may be sent
(``spellings.py``, ``handlers.py``), of which the strictest verdict counts (``strictest.py``). It
gets the rules from the cache. An allowed request to a known origin passes at once, in a few
microseconds. For all other requests, a table defines whether the request is dropped, waits, or
returns to the scheduler (``transitions.py``, ``waiting_requests.py``). ``drops.py`` counts and logs
dropped requests, and sends their signal.

The guard (``guard.py``) is the last middleware before the downloader. If the URL or User-Agent of a
request has changed since the decision, the request is decided again (``recheck.py``). The URL of a
response is decided, too, if the download handler has followed a redirect itself. The first
middleware (``responses.py``), which is the last to receive responses, does the same for a response
whose URL another middleware has changed.

**On the wire.** ``wire.py`` is called in place of the download handler: no middleware and no
download slot comes after it. If the ticket of a request is not valid any longer, the request is
decided again. If its host has a delay or a pause, the admission is asked once more, and claims the
lease of the host in the store (``admission/host_leases.py``), so that all workers together keep the
delay and the pause. A request that has to wait for long is given back to the scheduler.

**Lookups.** ``cache/cache.py`` has the rules of each origin in memory until they expire. If an
origin is not there, a lookup is started (``flights.py``): one per origin, and all requests of the
origin wait for it. The lookup reads the record of the origin (how the last fetches ended) in the
store. If there is no valid record, it fetches robots.txt with a lease, so that only one of the
workers that share a store fetches the file (``lookup.py``). ``protocol/policy.py`` makes a record
from the outcome of the fetch, and determines what may be fetched according to a record, and until
when.

**The request for robots.txt.** ``fetch/fetcher.py`` sends an ordinary Scrapy request with
``engine.download_async``, so that the proxies, TLS settings and download handlers of the crawl are
used. Meta keys disable most of what other middlewares would do to the request, and the guard
removes what they have set. The guard is also the first to receive the response or the error. It
decodes the text, cuts it to the maximum size, and passes it directly to the fetcher, which follows
redirects (``redirects.py``). After an error the outcome is that robots.txt is unreachable; only a
cancellation is raised.

**Responses.** The response of a page reaches its callback as usual.
``spidermiddlewares/metatags.py`` obeys its robots meta tags. ``spidermiddlewares/usage.py`` obeys
its usage preferences, if the crawl has declared purposes. The extensions only receive signals:
the report, the evidence and the periodic log line.

If an error occurs while a request is decided, the error is logged and the request is dropped. In a
dry run the request is sent.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_rep.addon import Addon
    from scrapy_rep.cache.cache import Census
    from scrapy_rep.downloadermiddlewares.guard import RobotsTxtFetchMiddleware
    from scrapy_rep.downloadermiddlewares.navigations import keep_from_disallowed
    from scrapy_rep.downloadermiddlewares.responses import RobotsTxtResponseMiddleware
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
    from scrapy_rep.robots import Robots, Wait
    from scrapy_rep.scheduler.priority_queue import RobotsAwarePriorityQueue
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
    "RobotsTxtResponseMiddleware",
    "RobotsUsageDisallowed",
    "RobotsUsageMiddleware",
    "SettingsError",
    "Wait",
    "__version__",
    "abort_disallowed",
    "keep_from_disallowed",
]

# These modules are imported when a name is first used (PEP 562), so that scrapy_rep.protocol can be
# used without Scrapy.
_HOMES = {
    "Addon": "scrapy_rep.addon",
    "Census": "scrapy_rep.cache.cache",
    "CrawlClosingError": "scrapy_rep.exceptions",
    "RobotParser": "scrapy_rep.robotparser",
    "Robots": "scrapy_rep.robots",
    "RobotsAwarePriorityQueue": "scrapy_rep.scheduler.priority_queue",
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
    "RobotsTxtResponseMiddleware": "scrapy_rep.downloadermiddlewares.responses",
    "RobotsUsageDisallowed": "scrapy_rep.exceptions",
    "RobotsUsageMiddleware": "scrapy_rep.spidermiddlewares.usage",
    "SettingsError": "scrapy_rep.exceptions",
    "Wait": "scrapy_rep.robots",
    "abort_disallowed": "scrapy_rep.downloadermiddlewares.subresources",
    "keep_from_disallowed": "scrapy_rep.downloadermiddlewares.navigations",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("scrapy-rep")
    if name in _HOMES:
        import_module("scrapy_rep.utils.scrapy_version").check_scrapy()
        return getattr(import_module(_HOMES[name]), name)
    if name == "addon":  # ADDONS has scrapy_rep.addon by mistake; the module reports that
        return import_module("scrapy_rep.addon")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
