"""The admission of a crawl with all that it asks, in made-up time; the network is the test's."""

from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.cache.lookups import Lookups
from scrapy_rep.decision.decider import Decider
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol.record import Record
from scrapy_rep.settings import Options
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.per_crawl import add_part
from tests.made_up_network import LONG, Network, record_of

TIMEOUT = 60.0
DEFERRING = {"REP_DEFER_TIMEOUT": TIMEOUT}


class Parts:
    """The parts of a crawl, as ``CrawlParts`` builds them; ``store`` has the leases of hosts."""

    def __init__(self, crawler, time, *, permits=16, store=None):
        self.crawler = crawler
        self.time = time
        self.options = options = Options.from_settings(crawler.settings)
        self.network = Network(time)
        self.entries = BoundedCache()
        self.lookups = self.network.lookups(self.entries, permits=permits)
        self.cache = self.lookups.cache
        self.overrides = Overrides(options.overrides, time.clock.time)
        self.decider = Decider(crawler, self.lookups, self.overrides)
        self.store = lease_store(time) if store is None else store
        self.admission = Admission(
            crawler,
            self.lookups,
            self.decider,
            options,
            time.clock,
            HostLeases(self.store, time.clock),
        )
        add_part(crawler, self.admission)

    def knows(self, origin, body=None, **how):
        self.put_record(record_of(origin, self.network.outcome(origin, body, **how)))

    def knows_unreachable_for(self, origin, seconds):
        """Put the record of a long outage in memory."""
        now = self.time.wall
        last = self.network.outcome(origin, unreachable=True)
        self.put_record(Record(origin, last, None, now - seconds, seconds, 9, now + LONG))

    def put_record(self, record):
        self.cache.put_record(record.origin, record, self.decider.tokens.default())

    def comes(self, origin, body=None, **how):
        """Let the fetch of ``origin`` end."""
        self.network.ends(origin, self.network.outcome(origin, body, **how))

    @property
    def fetched(self):
        return list(self.network.fetched)

    @property
    def timers(self):
        """When each timer comes, without those that see what is slow or late."""
        return [
            each.at
            for each in self.time.calls
            if not isinstance(getattr(each.call, "__self__", None), Lookups)
        ]


def lease_store(time):
    return WriteBehind(MemoryStore(max_bytes=2**24, clock=lambda: time.now), clock=time.clock)
