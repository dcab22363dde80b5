"""The lookups of a crawl, whose fetches end when the test says so, and how."""

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable, Unreachable
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.bounded import BoundedCache
from tests.waiting import settle

POLICY = Policy(cache_ttl_min=0.0, cache_ttl_max=1e9, retry_delay=1.0, retry_delay_max=1e9)
"""A site is asked again when it says so, and an unreachable one after a second at the earliest."""
LONG = 1_000_000
"""Seconds for which a result is valid if a test does not say."""


def make_lookups(store, clock, *, policy=POLICY, fetch=None, entries=None, **more):
    """Lookups with that store, clock and fetch, and a cache of their own."""
    own = {"jitter": lambda: 0.0, "permits": 16, "name": "worker"}
    own |= {"send_record": lambda *_: None, "lease": 20.0, "read_after": 0.0, **more}
    cache = Cache(BoundedCache() if entries is None else entries, policy, clock, lambda *_: None)
    return Lookups(cache=cache, store=store, fetch=fetch, **own)


class Network:
    """The robots.txt of sites, in made-up time."""

    def __init__(self, time):
        self.time = time
        self.fetched = []
        """The files that were fetched, in order."""
        self.pages = []
        """The requests that waited for them."""
        self.under_way = {}
        """The end of each fetch that is under way, by origin."""
        self.outcomes = {}
        """How fetches end that need not wait, by origin."""

    def lookups(self, entries=None, *, permits=16):
        """Lookups with a store of its own, which fetch here; ``entries`` are those in memory."""
        store = WriteBehind(MemoryStore(max_bytes=2**24), clock=self.time.clock)
        own = {"fetch": self.fetch, "entries": entries, "permits": permits}
        return make_lookups(store, self.time.clock, **own)

    async def fetch(self, origin, page):
        assert origin not in self.under_way
        self.fetched.append(origin)
        self.pages.append(page)
        if origin in self.outcomes:
            return self.outcomes[origin]
        self.under_way[origin] = end = Deferred()
        try:
            return await maybe_deferred_to_future(end)
        finally:
            self.under_way.pop(origin, None)

    def outcome(self, origin, body=None, *, seconds=LONG, unreachable=False, error=None):
        """How a fetch ends now: with ``error``, 503, ``body``, or 404."""
        evidence = {"at": self.time.wall, "url": origin.robotstxt_url}
        if error is not None:
            return Unreachable(Evidence(**evidence, error=error))
        if unreachable:
            return Unreachable(Evidence(**evidence, status=503, retry_after=str(int(seconds))))
        evidence["cache_control"] = f"max-age={int(seconds)}"
        if body is None:
            return Unavailable(Evidence(**evidence, status=404))
        return Available(body, Evidence(**evidence, status=200, size=len(body)))

    def ends(self, origin, result):
        """Let the fetch of ``origin`` end with an outcome, or with an error."""
        end = self.under_way[origin]
        (end.errback if isinstance(result, BaseException) else end.callback)(result)
        settle()


def record_of(origin, outcome):
    """The record after the first fetch."""
    return POLICY.record_after(None, origin, outcome, jitter=0.0)
