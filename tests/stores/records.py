"""Records of every kind, for what keeps them."""

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.stores.base import Put

ORIGIN = "https://example.com"


def available(origin=ORIGIN, body=b"User-agent: *\nDisallow: /private\n", at=5.0):
    seen = Evidence(at, f"{origin}/robots.txt", 200, size=len(body), cache_control="max-age=60")
    outcome = Available(body, seen)
    return Record(origin_of(origin), outcome, outcome)


def unavailable(origin=ORIGIN, at=6.0):
    return Record(origin_of(origin), Unavailable(Evidence(at, f"{origin}/robots.txt", 404)))


def unreachable(origin=ORIGIN, at=9.0, copy=None):
    seen = Evidence(at, f"{origin}/robots.txt", 503, retry_after="5")
    return Record(origin_of(origin), Unreachable(seen), copy, 3.0, 6.0, 2, at + 10)


def every():
    """Records of each kind, each with a later fetch than the one before it."""
    large = available(body=bytes(range(256)) * 2_000, at=7.0)
    return [available(), unavailable(), unreachable(at=6.5), large, unreachable(copy=large.copy)]


def put(record):
    state, body = record.encode()
    return Put(str(record.origin), state, body, record.last.evidence.at)
